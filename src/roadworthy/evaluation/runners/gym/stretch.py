"""A stretch: a fixed number of steps in one environment, with all episodes in it.

In a run that is counted in steps, the number of episodes that end depends on their length: a mean over those that
happened to end favors short ones. So the unit of count is the stretch: its row holds the means over the episodes that
ended in it, and each of these is listed as an attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import episode_row
from roadworthy.evaluation.runners.gym.batch import Broken
from roadworthy.evaluation.runners.gym.in_flight import Failure, InFlight
from roadworthy.evaluation.watch import Whereabouts
from roadworthy.record import AgentRow, EpisodeResult


@dataclass
class Stretch:
    """The steps of one environment so far."""

    spec: EpisodeSpec
    begun: int = 0  # episodes that have started
    steps: int = 0
    wall_s: float = 0.0
    attempts: list[AgentRow] = field(default_factory=list)  # episodes that ended, by their numbers in the stretch
    unfinished: list[dict[str, Any]] = field(default_factory=list)  # episodes that were cut off or failed, and where
    instructions: list[str] = field(default_factory=list)
    failure: Failure | None = None
    artifacts: dict[str, str] = field(default_factory=dict)
    artifact_errors: dict[str, str] = field(default_factory=dict)
    env: int = 0

    def add(
        self,
        episode: InFlight,
        outcomes: Mapping[str, float | None],
        failure: Failure | None,
        artifacts: Mapping[str, str],
        artifact_errors: Mapping[str, str],
    ) -> None:
        """Add an episode that has ended, or was cut off because no steps are left."""
        count, number = len(episode.rewards), int(episode.spec.episode_id.rpartition("-")[2])
        first, last = self.steps, self.steps + count - 1
        if outcomes:
            self.attempts.append(AgentRow(self.spec.episode_id, 0, number, first, last, dict(outcomes)))
        elif count:
            self.unfinished.append({"attempt": number, "first_step": first, "last_step": last})
        self.env = episode.env
        self.steps += count
        self.failure = self.failure or failure
        self.artifacts |= {f"{name}_{number}": path for name, path in artifacts.items()}
        self.artifact_errors |= {f"{name}_{number}": error for name, error in artifact_errors.items()}
        if episode.instruction and episode.instruction not in self.instructions:
            self.instructions.append(episode.instruction)
        self.wall_s += episode.wall_s

    def result(self, evaluator: str, process: int = 0) -> EpisodeResult:
        """Return its row, with the attempts."""
        names = dict.fromkeys(name for row in self.attempts for name in row.figures)
        more: dict[str, Any] = {"instruction": "; ".join(self.instructions)} if self.instructions else {}
        more |= {"unfinished": self.unfinished} if self.unfinished else {}
        row = episode_row(
            self.spec,
            evaluator,
            Whereabouts(self.env, self.spec.scenario, 0, self.steps, self.wall_s),
            process,
            trials=len(self.attempts),
            status="completed" if self.failure is None else "failed",
            error=self.failure.error if isinstance(self.failure, Broken) else self.failure,
            outcomes={name: self._mean(name) for name in names} | {"episodes": float(len(self.attempts))},
            artifacts=self.artifacts,
            artifact_errors=self.artifact_errors,
            more=more,
        )
        return EpisodeResult(row, tuple(self.attempts))

    def _mean(self, name: str) -> float | None:
        values = [value for row in self.attempts if (value := row.figures.get(name)) is not None]
        return float(np.mean(values)) if values else None
