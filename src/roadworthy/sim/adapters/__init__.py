"""DriveEnv as others know environments: Gymnasium's Env and VectorEnv, PettingZoo's ParallelEnv.

Both packages are optional, so each adapter is imported when it is asked for. Everything that an adapter returns is a
copy, which the caller may keep.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roadworthy.sim.adapters.gymnasium import DriveGymEnv, DriveVectorEnv
    from roadworthy.sim.adapters.pettingzoo import DriveParallelEnv

__all__ = ["DriveGymEnv", "DriveParallelEnv", "DriveVectorEnv"]

_MODULES = {"DriveGymEnv": "gymnasium", "DriveVectorEnv": "gymnasium", "DriveParallelEnv": "pettingzoo"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
