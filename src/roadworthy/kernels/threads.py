"""Parallel loops and the threads that run them."""

from __future__ import annotations

from typing import Any

from roadworthy.kernels.installed import load_numba

_numba = load_numba()
prange: Any = _numba.prange
MAX_THREADS: int = _numba.config.NUMBA_NUM_THREADS


def set_threads(count: int) -> None:
    """Set how many threads the parallel kernels that this thread calls may use; at most MAX_THREADS are used."""
    _numba.set_num_threads(min(count, MAX_THREADS))
