"""Simulated futures of one scenario, from the simulator or from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.errors import UsageError
from roadworthy.scenario.schema import Floats, Longs, Scenario

MOTION = ("x", "y", "z", "heading")
_MOTION_TYPES = (np.float32, np.float64)  # half precision has steps of meters where maps are


@dataclass(frozen=True, eq=False)
class Rollouts:
    """R simulations of the same A agents over the S steps that follow the current one.

    Coordinates are those of the scenario's source, as in the challenge; see `from_scenario_frame`.
    """

    agent_ids: Longs  # (A,) the source's number of each agent
    x: Floats  # (R, A, S) m, center of the box
    y: Floats  # (R, A, S)
    z: Floats  # (R, A, S)
    heading: Floats  # (R, A, S) rad

    def __post_init__(self) -> None:
        shapes = {name: getattr(self, name).shape for name in MOTION}
        shape = self.x.shape
        if len(shape) != 3 or 0 in shape or set(shapes.values()) != {shape} or self.agent_ids.shape != shape[1:2]:
            given = ", ".join(f"{name} {found}" for name, found in shapes.items())
            raise UsageError(
                f"rollouts have the shapes {given}, agent ids {self.agent_ids.shape}; "
                f"expected (rollouts, agents, steps) for each, none of them 0, and as many ids as agents"
            )
        ids, counts = np.unique(self.agent_ids, return_counts=True)
        if (counts > 1).any():
            raise UsageError(f"rollouts name agent {ids[counts > 1][0]} more than once; expected each agent once")
        for name in MOTION:
            values = getattr(self, name)
            if not np.isfinite(values).all():
                rollout, agent, step = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
                raise UsageError(
                    f"{name} of agent {self.agent_ids[agent]} is {values[rollout, agent, step]} in rollout {rollout} "
                    f"at its step {step}, counted from 0; expected a finite number everywhere"
                )

    @property
    def count(self) -> int:
        return len(self.x)

    @property
    def steps(self) -> int:
        return self.x.shape[2]

    @classmethod
    def of(cls, agent_ids: ArrayLike, x: ArrayLike, y: ArrayLike, z: ArrayLike, heading: ArrayLike) -> Rollouts:
        """Make rollouts from arrays: integers as ids, numbers as motion."""
        ids, motion = np.asarray(agent_ids), [np.asarray(values) for values in (x, y, z, heading)]
        if ids.dtype.kind not in "iu":
            raise UsageError(f"agent ids are {ids.dtype}, expected integers")
        for name, values in zip(MOTION, motion, strict=True):
            if values.dtype not in _MOTION_TYPES:
                expected = " or ".join(str(np.dtype(kind)) for kind in _MOTION_TYPES)
                raise UsageError(f"{name} is {values.dtype}, expected {expected}")
        with np.errstate(over="ignore"):  # values that are too large become infinite, which is refused
            return cls(ids.astype(np.int64), *(values.astype(np.float32, copy=False) for values in motion))

    @classmethod
    def from_scenario_frame(
        cls, scenario: Scenario, agents: Sequence[int] | NDArray[np.integer], positions: Floats, headings: Floats
    ) -> Rollouts:
        """Make rollouts of agents by index from positions (R, A, S, 3) in the frame of the scenario's map."""
        x, y, z = np.moveaxis(positions.astype(np.float64) + scenario.map.origin, -1, 0)
        return cls.of(scenario.agent_ids[np.asarray(agents, np.int64)], x, y, z, headings)

    def for_agents(self, agent_ids: Longs, scenario_id: str) -> Rollouts:
        """Return the rollouts with the agents in another order; the agents must be the same."""
        missing = np.setdiff1d(agent_ids, self.agent_ids)
        surplus = np.setdiff1d(self.agent_ids, agent_ids)
        if missing.size or surplus.size:
            faults = [
                f"{what} {_listed(ids)}" for what, ids in (("lack", missing), ("have besides", surplus)) if ids.size
            ]
            raise UsageError(
                f"scenario {scenario_id!r}: the rollouts {' and '.join(faults)}; expected exactly the "
                f"{len(agent_ids)} agents that are valid at the current step"
            )
        order = np.argsort(self.agent_ids)
        places = order[np.searchsorted(self.agent_ids, agent_ids, sorter=order)]
        return Rollouts(agent_ids, *(values[:, places] for values in (self.x, self.y, self.z, self.heading)))


def _listed(ids: Longs) -> str:
    shown = ", ".join(map(str, ids[:5]))
    return f"agent{'s' if len(ids) > 1 else ''} {shown}{f' and {len(ids) - 5} more' if len(ids) > 5 else ''}"
