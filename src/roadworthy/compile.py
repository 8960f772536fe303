"""Numba's compiler with the project's settings, and a cache that notices every change.

Numba's own cache looks only at the file of the function that is compiled, not at the files of the functions it calls.
So the cache lives in a folder named by a hash of all of the package's sources that contain kernels.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _kernel_sources_hash() -> str:
    root = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source:
            digest.update(str(path.relative_to(root)).encode() + b"\0" + source)
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: below ROADWORTHY_CACHE, else below the user's cache folder."""
    base = os.environ.get("ROADWORTHY_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "roadworthy"
    )
    return Path(base) / "numba" / _kernel_sources_hash()


numba.config.CACHE_DIR = str(cache_folder())


def kernel(function: Function) -> Function:
    """Compile for one core on first call: IEEE arithmetic (the same bytes everywhere), no GIL, cached on disk."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
