"""Simulated futures of one scenario, from the simulator or from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.errors import UsageError
from roadworthy.scenario.schema import Floats, Longs, Scenario


@dataclass(frozen=True, eq=False)
class Rollouts:
    """R simulations of the same A agents over the S steps that follow the current one.

    Coordinates are those of the scenario's source, as in the challenge; see `from_scenario_frame`.
    """

    agent_ids: Longs  # (A,) the source's number of each agent
    x: Floats  # (R, A, S) m, centre of the box
    y: Floats  # (R, A, S)
    z: Floats  # (R, A, S)
    heading: Floats  # (R, A, S) rad

    def __post_init__(self) -> None:
        shapes = {name: getattr(self, name).shape for name in ("x", "y", "z", "heading")}
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

    @property
    def count(self) -> int:
        return len(self.x)

    @property
    def steps(self) -> int:
        return self.x.shape[2]

    @classmethod
    def of(cls, agent_ids: ArrayLike, x: ArrayLike, y: ArrayLike, z: ArrayLike, heading: ArrayLike) -> Rollouts:
        """Rollouts of anything that NumPy makes arrays of."""
        motion = (np.asarray(values, np.float32) for values in (x, y, z, heading))
        return cls(np.asarray(agent_ids, np.int64), *motion)

    @classmethod
    def from_scenario_frame(
        cls, scenario: Scenario, agents: Sequence[int] | NDArray[np.integer], positions: Floats, headings: Floats
    ) -> Rollouts:
        """Rollouts of the scenario's agents with these numbers, positions (R, A, S, 3) in the frame of its own map."""
        x, y, z = np.moveaxis(positions.astype(np.float64) + scenario.map.origin, -1, 0)
        return cls.of(scenario.agent_ids[np.asarray(agents, np.int64)], x, y, z, headings)

    def for_agents(self, agent_ids: Longs, scenario_id: str) -> Rollouts:
        """The same rollouts with the agents in another order; each must be there, and nobody else."""
        missing = np.setdiff1d(agent_ids, self.agent_ids)
        surplus = np.setdiff1d(self.agent_ids, agent_ids)
        if missing.size or surplus.size:
            faults = [
                f"{what} {_listed(ids)}" for what, ids in (("lack", missing), ("have besides", surplus)) if ids.size
            ]
            raise UsageError(
                f"scenario {scenario_id!r}: the rollouts {' and '.join(faults)}; expected exactly the "
                f"{len(agent_ids)} agents that are there at the current step"
            )
        order = np.argsort(self.agent_ids)
        places = order[np.searchsorted(self.agent_ids, agent_ids, sorter=order)]
        return Rollouts(agent_ids, *(values[:, places] for values in (self.x, self.y, self.z, self.heading)))


def _listed(ids: Longs) -> str:
    shown = ", ".join(map(str, ids[:5]))
    return f"agent{'s' if len(ids) > 1 else ''} {shown}{f' and {len(ids) - 5} more' if len(ids) > 5 else ''}"
