"""The installed Numba: whether there is one, its version, and whether the hooks of linking.py fit it."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import warnings
from functools import cache
from importlib.util import find_spec
from types import ModuleType

TESTED_VERSION = "0.68"


def has_numba() -> bool:
    """Return whether Numba is installed, without importing it."""
    try:
        return find_spec("numba") is not None
    except ModuleNotFoundError:
        return False


def numba_version() -> str:
    """Return the version of Numba, or "none"; Numba itself is not imported."""
    return importlib.metadata.version("numba") if has_numba() else "none"


def load_numba() -> ModuleType:
    """Import Numba; without it, raise an error that names the extra that installs it."""
    if not has_numba():
        message = "Numba is not installed; install it with: pip install 'roadworthy[drive]'"
        raise ModuleNotFoundError(message, name="numba")
    return importlib.import_module("numba")


@cache
def load_linking() -> ModuleType | None:
    """Return linking.py, or None where rules compile with plain `njit`: slower to compile, with the same results.

    That is so with another version of Numba than the tested one, and with ROADWORTHY_PLAIN_NUMBA=1.
    """
    if os.environ.get("ROADWORTHY_PLAIN_NUMBA", "0") not in ("", "0"):
        return None
    try:
        if numba_version().startswith(f"{TESTED_VERSION}."):
            return importlib.import_module("roadworthy.kernels.linking")
        reason = f"Numba {numba_version()} is not the tested version {TESTED_VERSION}"
    except (AttributeError, ImportError) as error:
        reason = f"Numba {numba_version()} lacks what linking.py needs ({error})"
    warnings.warn(f"{reason}; kernels compile several times more slowly", RuntimeWarning, stacklevel=2)
    return None
