"""Run an episode of a run again with its policy, and find where its motion differs from the recorded one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.evaluation.recorded import RecordedRun
from roadworthy.evaluation.runners.driving.capture import MOTION
from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
from roadworthy.record import EpisodeResult, Trace
from roadworthy.sim.state import EVENT_AT_FAULT

_COLUMNS = (*MOTION, "present", "actions", "events")


@dataclass(frozen=True)
class Difference:
    """The first place at which two motions of an episode differ."""

    trial: int
    step: int
    # Of the trial; 0 is its start.
    agent: int
    column: str
    recorded: float
    repeated: float

    def __str__(self) -> str:
        return (
            f"trial {self.trial}, step {self.step}, agent {self.agent}: {self.column} is {self.repeated:.9g}, "
            f"recorded was {self.recorded:.9g}"
        )


def replay(recorded: RecordedRun, episode_id: str, checkpoint: str | None = None) -> EpisodeResult:
    """Run an episode again, alone in one world, and return its result."""
    spec = recorded.spec(checkpoint, worlds=1)
    results: list[EpisodeResult] = []
    run_episodes(spec, spec.make_env(threads=1), one_by_one([recorded.ledger[episode_id]]), results.append)
    return results[0]


def first_difference(recorded: Trace, repeated: Trace) -> Difference | None:
    """Return where two motions of an episode start to differ; None if they are the same bit for bit."""
    frames = min(recorded.frame_count, repeated.frame_count)
    places = []
    for name in _COLUMNS:
        one, other = getattr(recorded, name)[:frames], getattr(repeated, name)[:frames]
        if name == "events" and not recorded.judges_fault:
            other = other & ~np.uint16(EVENT_AT_FAULT)
        if one.shape != other.shape:
            return Difference(0, 0, 0, "number of agents", recorded.agent_count, repeated.agent_count)
        differs = one.view(np.uint32) != other.view(np.uint32) if one.dtype.kind == "f" else one != other
        found = np.argwhere(differs)
        if len(found):
            places.append((int(found[0][0]), int(found[0][1]), name, tuple(found[0])))
    if places:
        frame, agent, name, place = min(places)
        trial, step = _when(recorded, frame)
        values = (float(getattr(trace, name)[place]) for trace in (recorded, repeated))
        return Difference(trial, step, agent, name, *values)
    if recorded.trial_starts.tolist() != repeated.trial_starts.tolist():
        trial, step = _when(recorded, frames - 1)
        return Difference(trial, step, 0, "number of frames", recorded.frame_count, repeated.frame_count)
    return None


def _when(trace: Trace, frame: int) -> tuple[int, int]:
    trial = int(np.searchsorted(trace.trial_starts, frame, side="right")) - 1
    return trial, frame - int(trace.trial_starts[trial])
