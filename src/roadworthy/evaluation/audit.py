"""Audit a run: do its outcomes change with the number of worlds, the order of episodes or the engine?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.engines.workers import WorkersEngine
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.recorded import RecordedRun
from roadworthy.evaluation.replay import first_difference
from roadworthy.evaluation.runners.driving.rows import are_rows_equal
from roadworthy.record import EpisodeResult


@dataclass(frozen=True)
class Audited:
    """The effect of running the sample in another way."""

    way: str
    episodes: int
    flips: tuple[str, ...]
    # Episodes in which the score of an ego changed.
    other_rows: tuple[str, ...]
    # Episodes in which any figure changed.
    other_motion: tuple[str, ...]
    # Episodes whose motion is not the same bit for bit, of those with a trace.


def audit(
    recorded: RecordedRun,
    episodes: int,
    *,
    seed: int = 0,
    workers: int = 2,
    checkpoint: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Audited]:
    """Run a sample of the completed episodes in several other ways and count what changes.

    workers: the number of processes; 0 leaves out the way that uses them.
    """
    before = {r.episode.episode_id: r for r in recorded.run.results() if r.episode.status == "completed"}
    if not before:
        raise UsageError(f"{recorded.run.folder}: no episode was completed, so there is nothing to audit")
    names = sorted(before)
    draw = np.random.default_rng(seed)
    picked = [names[k] for k in draw.permutation(len(names))[:episodes]]
    audited, done = [], 0
    ways = list(_ways(recorded, picked, workers, draw))
    for way, engine, worlds, order in ways:
        results: list[EpisodeResult] = []

        def keep(result: EpisodeResult, results: list[EpisodeResult] = results) -> None:
            nonlocal done
            results.append(result)
            done += 1
            progress(done, len(ways) * len(picked))

        try:
            engine.run(recorded.spec(checkpoint, worlds), order, keep, completed=len(before))
        finally:
            engine.close()
        audited.append(_compare(recorded, way, before, results))
    return audited


def _ways(
    recorded: RecordedRun, picked: Sequence[str], workers: int, draw: np.random.Generator
) -> Iterator[tuple[str, EpisodeEngine, int, list[EpisodeSpec]]]:
    sample = [recorded.ledger[name] for name in picked]
    yield "one world", InlineEngine(), 1, sample
    yield f"{len(sample)} worlds, backwards", InlineEngine(), len(sample), sample[::-1]
    if workers == 0:
        return
    shuffled = [sample[k] for k in draw.permutation(len(sample))]
    yield f"{workers} processes, shuffled", WorkersEngine(workers), 3, shuffled


def _compare(
    recorded: RecordedRun, way: str, before: dict[str, EpisodeResult], results: list[EpisodeResult]
) -> Audited:
    flips, other_rows, other_motion = [], [], []
    for result in results:
        name = result.episode.episode_id
        old = before[name]
        if [row.figures["score"] for row in old.agents] != [row.figures["score"] for row in result.agents]:
            flips.append(name)
        if not are_rows_equal(old, result):
            other_rows.append(name)
        if result.trace is not None and "trace" in old.episode.artifacts:
            if first_difference(recorded.run.trace(name), result.trace) is not None:
                other_motion.append(name)
    return Audited(way, len(results), tuple(flips), tuple(other_rows), tuple(other_motion))
