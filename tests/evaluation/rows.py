"""The results of a run, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import Ledger
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.policy.protocol import Policy
from roadworthy.record.episodes import PLACE_FIELDS, EpisodeResult
from roadworthy.record.traces import Trace
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import ControlConfig, EpisodeConfig, SimConfig

SHORT = SimConfig(episode=EpisodeConfig(1, 40), control=ControlConfig(rows=4))


def spec_of(pack: Pack, make_policy: Callable[[], Policy], worlds: int = 4, env: SimConfig = SHORT) -> DrivingSpec:
    """Return a spec for the worlds of a pack."""
    return DrivingSpec("test", pack.path, env, make_policy, worlds)


class Results(list[EpisodeResult]):
    """Results in the order of their coming."""

    def rows(self) -> dict[str, Any]:
        """What must not depend on where, when and beside whom an episode was run."""
        assert len({result.episode.episode_id for result in self}) == len(self), "an episode came twice"
        return {result.episode.episode_id: comparable(result) for result in self}

    def cover(self, ledger: Ledger) -> bool:
        """Whether there is one for every episode."""
        return sorted(result.episode.episode_id for result in self) == sorted(e.episode_id for e in ledger)

    def failed(self) -> dict[str, str]:
        """The reasons of those that failed."""
        return {r.episode.episode_id: r.episode.error or "" for r in self if r.episode.status == "failed"}


def comparable(result: EpisodeResult) -> Any:
    """A result without the place and time of its making."""
    row = {name: value for name, value in asdict(result.episode).items() if name not in PLACE_FIELDS}
    return row, result.agents, result.trials, None if result.trace is None else bits_of(result.trace)


def bits_of(trace: Trace) -> dict[str, Any]:
    """A trace as bytes."""
    told: dict[str, Any] = {}
    for name, value in vars(trace).items():
        if isinstance(value, np.ndarray):
            told[name] = (value.shape, value.dtype.str, value.tobytes())
        elif isinstance(value, dict):
            told[name] = {key: column.tobytes() for key, column in value.items()}
        else:
            told[name] = value
    return told
