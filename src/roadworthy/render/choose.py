"""Which episodes of a run get videos."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from roadworthy.render.config import RenderConfig
from roadworthy.render.tally import first_infraction

if TYPE_CHECKING:
    from roadworthy.record.episodes import EpisodeResult
    from roadworthy.record.traces import Trace


def choose_episodes(
    results: Iterable[EpisodeResult],
    config: RenderConfig,
    epoch: int,
    trace: Callable[[str], Trace],
    outcome: str = "score",
) -> list[str]:
    """The ids of the episodes that `config` asks for, in the order in which they were chosen.

    results: in the order of the ledger. Those that did not complete have nothing to show, and those without the outcome
    are neither bad nor good: the former are never chosen, the latter only as `first` and `random`. Equal outcomes are
    told apart by the earliest infraction, for which traces have to be read; those that still are equal by their ids.
    """
    if isinstance(config.choose, tuple):
        return list(config.choose)
    rows = [result for result in results if result.episode.status == "completed"]
    if config.choose == "random":
        rows.sort(key=lambda result: _lot(config.seed, epoch, result.episode.episode_id))
    elif config.choose != "first":
        rows = [result for result in rows if result.episode.outcomes.get(outcome) is not None]
        if config.choose == "failed":
            rows = [result for result in rows if has_failed(result, outcome)]
        return _taken(_worst_first(rows, config, trace, outcome), config)
    return _taken(rows, config)


def has_failed(result: EpisodeResult, outcome: str = "score") -> bool:
    """Whether any ego of an episode failed; where there are no rows of egos, whether the episode's mean says so."""
    scores = [agent.figures.get(outcome) for agent in result.agents]
    return any(score < 1.0 for score in (scores or [result.episode.outcomes.get(outcome)]) if score is not None)


def _worst_first(
    rows: Sequence[EpisodeResult], config: RenderConfig, trace: Callable[[str], Trace], outcome: str
) -> list[EpisodeResult]:
    """The worst episodes in their order; the better ones, which nobody asked for, follow in any order."""
    by_outcome: dict[float, list[EpisodeResult]] = {}
    for result in rows:
        by_outcome.setdefault(float(result.episode.outcomes[outcome] or 0.0), []).append(result)
    ordered: list[EpisodeResult] = []
    for value in sorted(by_outcome):
        equal = by_outcome[value]
        if len(equal) > 1:
            first = {result.episode.episode_id: first_infraction(trace(result.episode.episode_id)) for result in equal}
            equal.sort(key=lambda result: (first[result.episode.episode_id], result.episode.episode_id))
        ordered += equal
        if len(_taken(ordered, config)) == (config.episodes or config.scenarios):
            break  # the others are better
    return ordered


def _taken(rows: Sequence[EpisodeResult], config: RenderConfig) -> list[str]:
    """As many as are asked for, from the front; with `scenarios`, the first of each scenario."""
    if config.scenarios is None:
        return [result.episode.episode_id for result in rows[: config.episodes]]
    first: dict[str, str] = {}
    for result in rows:
        first.setdefault(result.episode.scenario_id, result.episode.episode_id)
    return list(first.values())[: config.scenarios]


def _lot(seed: int, epoch: int, episode_id: str) -> bytes:
    """An episode's place in a random order, which does not depend on what other episodes there are."""
    return hashlib.blake2b(f"{seed}/{epoch}/{episode_id}".encode(), digest_size=16).digest()
