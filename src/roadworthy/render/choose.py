"""Which episodes of a run get videos."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from roadworthy.record.worst import TIE_BREAKERS, sorted_worst_first
from roadworthy.render.config import RenderConfig

if TYPE_CHECKING:
    from roadworthy.record.episodes import EpisodeResult


def choose_episodes(
    results: Iterable[EpisodeResult], config: RenderConfig, epoch: int, outcome: str = "score"
) -> list[str]:
    """The ids of the episodes that `config` asks for, in the order in which they were chosen.

    results: in the order of the ledger. Those that did not complete have nothing to show, and those without the outcome
    are neither bad nor good: the former are never chosen, the latter only as `first` and `random`.
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
        rows = _worst_first(rows, outcome)
    return _taken(rows, config)


def has_failed(result: EpisodeResult, outcome: str = "score") -> bool:
    """Whether any ego of an episode failed; where there are no rows of egos, whether the episode's mean says so."""
    scores = [agent.figures.get(outcome) for agent in result.agents]
    return any(score < 1.0 for score in (scores or [result.episode.outcomes.get(outcome)]) if score is not None)


def _worst_first(rows: Sequence[EpisodeResult], outcome: str) -> list[EpisodeResult]:
    by_id = {result.episode.episode_id: result for result in rows}
    outcomes = {
        f"outcomes.{name}": pa.array([result.episode.outcomes.get(name) for result in by_id.values()], pa.float64())
        for name in (outcome, *TIE_BREAKERS)
    }
    table = pa.table({"episode_id": pa.array(by_id, pa.string()), **outcomes})
    return [by_id[id] for id in sorted_worst_first(table, outcome)["episode_id"].to_pylist()]


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
