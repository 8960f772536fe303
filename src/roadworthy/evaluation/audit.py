"""Audits a run: do its outcomes change with batch size, slots, order or engine?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.engines.workers import WorkersEngine
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.recorded import Recorded
from roadworthy.evaluation.replay import first_difference
from roadworthy.evaluation.runners.driving.rows import are_rows_equal
from roadworthy.record import EpisodeResult


@dataclass(frozen=True)
class Audited:
    """What came of the sample when it was carried out in another way."""

    way: str
    episodes: int
    flips: tuple[str, ...]
    # Episodes in which the score of an ego changed.
    other_rows: tuple[str, ...]
    # Episodes in which any figure changed.
    other_motion: tuple[str, ...]
    # Episodes whose motion is not the same bit for bit, of those with a trace.


def audit(
    recorded: Recorded,
    episodes: int,
    *,
    seed: int = 0,
    workers: int = 2,
    checkpoint: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Audited]:
    """Carry out a sample of the run's completed episodes in several other ways and count what changes.

    workers: processes, where they are used; 0 leaves that way out.
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
            engine.run(recorded.task(checkpoint, worlds), order, keep, completed=len(before))
        finally:
            if isinstance(engine, WorkersEngine):
                engine.close()
        audited.append(_compare(recorded, way, before, results))
    return audited


def _ways(
    recorded: Recorded, picked: Sequence[str], workers: int, draw: np.random.Generator
) -> Iterator[tuple[str, EpisodeEngine, int, list[EpisodeSpec]]]:
    owed = [recorded.ledger[name] for name in picked]
    yield "one world", InlineEngine(), 1, owed
    yield f"{len(owed)} worlds, backwards", InlineEngine(), len(owed), owed[::-1]
    if workers == 0:
        return
    shuffled = [owed[k] for k in draw.permutation(len(owed))]
    yield f"{workers} processes, shuffled", WorkersEngine(workers), 3, shuffled


def _compare(recorded: Recorded, way: str, before: dict[str, EpisodeResult], results: list[EpisodeResult]) -> Audited:
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
