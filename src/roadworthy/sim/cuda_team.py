"""A team on a GPU: the threads of a block that serves one world, in kernels that run rules for teams (see team.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from roadworthy.compile import on_gpu
from roadworthy.gpu import IS_SIMULATED, cuda
from roadworthy.sim import team

TEAM = 32  # threads that move in step, a warp


def _size() -> Any:
    return np.int64(TEAM)


def _member() -> Any:
    return np.int64(cuda.threadIdx.x)


def _column(a: int) -> Any:
    return np.int64(cuda.threadIdx.x)


def _wait() -> None:
    cuda.syncthreads()


def _lowest(number: int) -> Any:
    named = cuda.shared.array(TEAM, int64)
    named[cuda.threadIdx.x] = number
    cuda.syncthreads()
    best = named[0]
    for other in range(1, TEAM):
        best = min(best, named[other])
    cuda.syncthreads()
    return best


def _is_any(is_so: bool) -> bool:
    return cuda.syncthreads_or(np.int32(is_so)) != 0


for _alone, _together in (
    (team.size, _size),
    (team.member, _member),
    (team.column, _column),
    (team.wait, _wait),
    (team.lowest, _lowest),
    (team.is_any, _is_any),
):
    # Where Python plays the GPU, functions that ask for their thread have to be told of it.
    on_gpu(cuda.jit(device=True)(_together) if IS_SIMULATED else _together)(_alone)
