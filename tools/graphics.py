"""Make sure that MuJoCo can render: install missing packages as root, otherwise say what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from roadworthy.errors import DeviceError
from roadworthy.robot.graphics import INSTALL, Renderer


def main() -> int:
    """Render one picture; on failure, install Debian packages as root and try again."""
    fault = _fault()
    if fault is None:
        return 0
    may_install = shutil.which("apt-get") is not None and os.geteuid() == 0
    if not may_install:
        print(f"{fault}\nAs root on Debian or Ubuntu: {INSTALL}", file=sys.stderr)
        return 1
    print(f"MuJoCo can't draw yet: {INSTALL}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], [*INSTALL.split(), "-qq"]):
        if subprocess.run(command, env=environment, check=False).returncode:
            print(f"{' '.join(command)} failed; install these packages by hand: {INSTALL}", file=sys.stderr)
            return 1
    # Only a new process finds libraries that were missing when this process looked for them.
    fault = None if subprocess.run([sys.executable, __file__, "--check"], check=False).returncode == 0 else fault
    if fault is not None:
        print(fault, file=sys.stderr)
    return int(fault is not None)


def _fault() -> str | None:
    try:
        Renderer("<mujoco/>", 16)
    except DeviceError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(int(_fault() is not None) if "--check" in sys.argv else main())
