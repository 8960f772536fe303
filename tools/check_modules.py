"""Check the types in the viewer's JavaScript with TypeScript, where it is installed; nothing else needs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Return the exit code of the check, 0 if TypeScript is not there."""
    local = ROOT / "node_modules" / ".bin" / "tsc"
    compiler = str(local) if local.exists() else shutil.which("tsc")
    if compiler is None or shutil.which("node") is None:
        print("Types of the viewer's modules are not checked: there is no tsc (npm install --global typescript).")
        return 0
    return subprocess.run([compiler, "--project", str(ROOT / "tools" / "jsconfig.json")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
