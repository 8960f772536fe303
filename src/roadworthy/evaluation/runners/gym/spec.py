"""What a process needs to run the episodes of a run in Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import failed_result
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.watch import Watch, Whereabouts
from roadworthy.record import EpisodeResult
from roadworthy.record.files import read_json, write_json
from roadworthy.sensitivity.sampling import densities, sweep_factors

if TYPE_CHECKING:
    from roadworthy.evaluation.runners.gym.runner import GymRunner

METADATA = "environment.json"  # in the run folder
DESCRIBED = ("task", "embodiment")


@dataclass(frozen=True)
class GymSpec:
    """The environments of a run, and the policy that acts in them."""

    job: Job
    folder: Path
    # The run folder, for videos.
    recorded: tuple[str, ...] | None = None
    # Episodes to record as videos; None if that is decided when they start.
    render_fault: str | None = None
    # Why render() can't be called; None if it can, as far as is known.

    @property
    def evaluator(self) -> str:
        """The name of the run."""
        return self.job.name

    @property
    def watched(self) -> int:
        """The number of environments whose time is measured one by one."""
        return self.job.envs

    @cached_property
    def density(self) -> dict[str, float]:
        """How densely the factors of a sweep are drawn."""
        return densities(sweep_factors(self.job.sweep.factors)) if self.job.sweep is not None else {}

    def open(self, watch: Watch, *, process: int = 0, most: int | None = None, threads: int | None = None) -> GymRunner:
        """Return a runner with environments of its own; see `RunnerSpec.open`."""
        from roadworthy.evaluation.runners.gym.runner import GymRunner

        return GymRunner(self, watch, process)

    def probe(self) -> tuple[str, ...]:
        """Return no faults: policies are probed in the simulator only."""
        return ()

    def failed(self, episode: EpisodeSpec, reason: str, at: Whereabouts | None = None) -> EpisodeResult:
        """Return the result of an episode whose process was lost."""
        return failed_result(episode, self.evaluator, reason, at, more=self.more(self.job.instruction))

    def without_renderer(self, reason: str) -> GymSpec | None:
        """Return a spec that does not call render(), after it ended a process."""
        if self.render_fault is not None:
            return None
        return replace(self, render_fault=f"the renderer died: {reason}; episodes are run without it")

    def more(self, instruction: str | None) -> dict[str, Any]:
        """Return columns of rows that only Gymnasium runs have."""
        values: dict[str, Any] = {"instruction": instruction, "density": self.density or None}
        return {name: value for name, value in values.items() if value is not None}

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Keep what the environment reports about itself in the run folder."""
        write_json(
            self.folder / METADATA, {key: value for key in DESCRIBED if isinstance(value := metadata.get(key), str)}
        )


def described(folder: Path) -> dict[str, Any]:
    """Return what the environment of a run reported about itself."""
    try:
        return read_json(folder / METADATA)
    except (OSError, RoadworthyError):
        return {}
