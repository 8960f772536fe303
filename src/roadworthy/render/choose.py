"""Choose the episodes of a run that get videos."""

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
    """Return the ids of the episodes that `config` selects, in the order of selection.

    results: in the order of the ledger. Episodes that did not complete are never chosen; episodes without the outcome
    only with `first` and `random`.
    """
    if isinstance(config.choose, tuple):
        return list(config.choose)
    rows = [result for result in results if result.episode.status == "completed"]
    if config.choose == "random":
        rows.sort(key=lambda result: _random_key(config.seed, epoch, result.episode.episode_id))
    elif config.choose != "first":
        rows = [result for result in rows if result.episode.outcomes.get(outcome) is not None]
        if config.choose == "failed":
            rows = [result for result in rows if has_failed(result, outcome)]
        rows = _worst_first(rows, outcome)
    return _taken(rows, config)


def has_failed(result: EpisodeResult, outcome: str = "score") -> bool:
    """Return whether any ego of an episode failed; without rows of egos, the episode's mean decides."""
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
    """Return the first episodes, or the first of each scenario, up to the configured number."""
    if config.scenarios is None:
        return [result.episode.episode_id for result in rows[: config.episodes]]
    first: dict[str, str] = {}
    for result in rows:
        first.setdefault(result.episode.scenario_id, result.episode.episode_id)
    return list(first.values())[: config.scenarios]


def _random_key(seed: int, epoch: int, episode_id: str) -> bytes:
    """Return the sort key of a random order that does not depend on the other episodes."""
    return hashlib.blake2b(f"{seed}/{epoch}/{episode_id}".encode(), digest_size=16).digest()
