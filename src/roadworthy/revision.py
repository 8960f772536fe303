"""The revision of the running code, for checkpoints and records."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any


@cache
def revision() -> dict[str, Any]:
    """Return the commit of the package's working tree and whether it has changes; None if there is no commit."""
    folder = Path(__file__).parent
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None or _git(folder, "ls-files", "--error-unmatch", __file__) is None:
        return {"commit": None, "is_dirty": None}
    return {"commit": commit, "is_dirty": bool(_git(folder, "status", "--porcelain", "--", str(folder)))}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
