"""The cache of compiled kernels on disk, which notices every change of the sources.

Numba's own cache looks only at the file of the function that is compiled, not at the files of the functions it calls.
So the kernels of each part of the package (scenario, render, sim, policy) are cached in a folder named by a hash of the
sources of that part, of the parts that it calls, and of what decides how they compile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from roadworthy.kernels.installed import has_numba, load_linking, load_numba, numba_version

_COMPILER = ("kernels/cuda.py", "kernels/decorators.py", "kernels/linking.py", "kernels/vectors.py")
_RULES = ("at_fault.py",)  # outside of the parts
# The parts that each part's kernels call.
_CALLED: dict[str, tuple[str, ...]] = {"policy": ("scenario", "sim")}


@cache
def cache_folder(part: str) -> Path:
    """Return the folder of a part's compiled kernels: below ROADWORTHY_CACHE, else below the user's cache folder."""
    base = os.environ.get("ROADWORTHY_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "roadworthy"
    )
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(numba_version().encode())
    parts = (sorted((root / folder).rglob("*.py")) for folder in sorted({*_CALLED.get(part, ("scenario",)), part}))
    for path in chain((root / name for name in _COMPILER + _RULES), *parts):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    variant = ""
    if has_numba():
        variant = "-checked" if load_numba().config.BOUNDSCHECK else ""  # Numba's own index mixes these up
        variant += "" if load_linking() else "-plain"
    return Path(base) / "numba" / f"{part}-{digest.hexdigest()[:16]}{variant}"


@contextmanager
def caching(function: Callable[..., Any]) -> Iterator[None]:
    """Let Numba choose the folder of our cache for a function that is decorated in this context."""
    config = load_numba().config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder(function.__module__.split(".")[1]))
    try:
        yield
    finally:
        config.CACHE_DIR = before
