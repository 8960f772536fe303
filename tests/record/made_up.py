"""Invented episodes for tests of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from roadworthy.record import AgentRow, EpisodeResult, EpisodeRow, Trace, TrialRow

HEADER: dict[str, Any] = {"config": {"episodes": 6, "env": {"dt": 0.1}}, "checkpoint": None}


def ledger(count: int = 6, replicates: int = 1) -> pa.Table:
    """Return a ledger with this number of scenarios and replicates."""
    rows = [
        {
            "episode_id": f"town-{number}-r{replicate}",
            "scenario": number,
            "scenario_id": f"town-{number}",
            "seed": 2**63 + number,
            "replicate": replicate,
            "factors": "{}",
        }
        for replicate in range(replicates)
        for number in range(count)
    ]
    kinds = [("episode_id", pa.string()), ("scenario", pa.int32()), ("scenario_id", pa.string())]
    kinds += [("seed", pa.uint64()), ("replicate", pa.int32()), ("factors", pa.string())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def ids(table: pa.Table) -> list[str]:
    """Return the episodes of a ledger."""
    return list(table["episode_id"].to_pylist())


def result(
    episode_id: str,
    scores: Sequence[float | None] = (1.0, 0.0),
    trials: int = 1,
    has_trace: bool = True,
    **changes: Any,
) -> EpisodeResult:
    """Return an episode with one ego per score, the same in all trials."""
    scenario_id, _, replicate = episode_id.rpartition("-r")
    number = int(scenario_id.rpartition("-")[2])
    values = {
        "episode_id": episode_id,
        "evaluator": "town",
        "scenario_id": scenario_id,
        "seed": 2**63 + number,
        "replicate": int(replicate),
        "world": number % 3,
        "slot": 0,
        "first_step": 10 * number,
        "last_step": 10 * number + 4 * trials,
        "steps": 4 * trials,
        "trials": trials,
        "status": "completed",
        "wall_s": 0.25,
        "tags": ("merge", "hard_stop")[: 1 + number % 2],
        "factors": {"grip": 0.8, "object": "box"},
        "outcomes": {"score": next((score for score in scores if score is not None), None), "comfort": float("nan")},
        **changes,
    }
    agents = tuple(
        AgentRow(episode_id, a, 0, 0, 4 * trials - 1, {"score": s, "distance_m": 100.0 * (a + 1), "comfort": None})
        for a, s in enumerate(scores)
    )
    rows = tuple(
        TrialRow(episode_id, a, 0, k, 4 * k, 4 * k + 3, {"score": s, "collisions": 0.0})
        for a, s in enumerate(scores)
        for k in range(trials)
    )
    return EpisodeResult(EpisodeRow(**values), agents, rows, trace(episode_id, number) if has_trace else None)


def trace(episode_id: str, seed: int = 0, frames: int = 9, agents: int = 3, is_discrete: bool = True) -> Trace:
    """Return random motion in two trials, with arbitrary float32 values."""
    rng = np.random.default_rng(seed)

    def floats() -> np.ndarray[Any, np.dtype[np.float32]]:
        values = rng.normal(0.0, 100.0, (frames, agents)).astype(np.float32)
        values.flat[: min(4, values.size)] = (np.nan, -0.0, np.inf, np.float32(1e-45))[: min(4, values.size)]
        return values

    actions = rng.integers(0, 13, (frames, agents, 2))
    return Trace(
        episode_id=episode_id,
        scenario_id=episode_id.rpartition("-r")[0],
        dt=0.1,
        trial_starts=np.array([0, frames // 2, frames], np.int32),
        x=floats(),
        y=floats(),
        heading=floats(),
        speed=floats(),
        present=rng.random((frames, agents)) < 0.7,
        active=rng.random((frames, agents)) < 0.5,
        events=rng.integers(0, 1 << 16, (frames, agents)).astype(np.uint16),
        actions=actions.astype(np.int8 if is_discrete else np.float32),
        length=rng.random(agents).astype(np.float32),
        width=rng.random(agents).astype(np.float32),
        kinds=np.ones(agents, np.int8),
        roles=np.zeros(agents, np.int8),
        sources=np.arange(agents, dtype=np.int32),
        goals=rng.random((agents, 2, 2)).astype(np.float32),
        goal_counts=np.full(agents, 2, np.int32),
        extra={"steering": floats()},
    )
