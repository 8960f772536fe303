"""Adapters of DriveEnv to other interfaces: Gymnasium's Env and VectorEnv, PettingZoo's ParallelEnv.

Both packages are optional, so adapters are imported on first use. Adapters return copies, which the caller may keep.
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
