"""Invented runs and trainings for tests of the viewer, made with the real writer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from roadworthy.metrics.driving import driving_metrics
from roadworthy.record import EpisodeResult, Run, RunWriter
from tests.metrics.driven import episode
from tests.report.made_up import HEADER

CLASSES = ("cut_in", "hard_stop", "lane_change", "merge", "roundabout", "unprotected_left")
HOSTILE = "<img src=x onerror=alert(1)><script>document.title='taken'</script>"


def results(
    count: int, seed: int = 0, replicates: int = 1, egos: int = 2, trials: int = 1, **changes: Any
) -> list[EpisodeResult]:
    """Return episodes whose success depends on their class and on the grip."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        scenario, replicate = divmod(number, replicates)
        behavior = CLASSES[scenario % len(CLASSES)]
        grip = round(float(rng.uniform(0.4, 1.0)), 4)
        chance = 0.25 + 0.7 * grip - 0.08 * (scenario % len(CLASSES))
        rows = []
        for _ in range(egos):
            score = float(rng.random() < chance)
            hit = float(score == 0.0 and rng.random() < 0.6)
            rows.append(
                {
                    "score": score,
                    "goal_reached": score,
                    "goal_rate": round(0.5 + 0.5 * score, 3),
                    "collisions": hit,
                    "at_fault_collisions": hit,
                    "infractions": 1.0 - score,
                    "departures": 1.0 - score - hit,
                    "timed_out": 0.0,
                    "distance_m": round(float(rng.normal(220.0, 30.0)), 2),
                    "closed_loop_score": round(0.9 * score + 0.1 * float(rng.random()), 4),
                    "drivable_area": 1.0 - (1.0 - score) * hit,
                    "comfort": round(float(rng.uniform(0.6, 1.0)), 4),
                    "length": float(rng.integers(60, 90)),
                }
            )
        outcomes = {
            name: float(np.mean([row[name] for row in rows]))
            for name in ("score", "collisions", "distance_m", "comfort")
        }
        name = f"{behavior}-{scenario:05}"
        found.append(
            episode(
                name,
                [[row] * trials for row in rows],
                replicate,
                (behavior,),
                outcomes={**outcomes, "failed_spawns": 0.0},
                factors={"grip": grip, "haste": round(float(rng.uniform(0.8, 1.2)), 4), "partner": f"p{number % 3}"},
                **changes,
            )
        )
    return found


def ledger_of(rows: Sequence[EpisodeResult], maps: int = 0) -> pa.Table:
    """Return the ledger of some episodes; maps: how many maps their scenarios are on, 0 for one each."""
    scenarios = [result.episode.scenario_id for result in rows]
    columns = {"episode_id": [result.episode.episode_id for result in rows], "scenario_id": scenarios}
    if maps:
        columns["cluster"] = [f"map-{sum(name.encode()) % maps:03}" for name in scenarios]
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def write_run(
    root: Path,
    rows: Sequence[EpisodeResult],
    evaluator: str = "town",
    policy: str = "best",
    maps: int = 0,
    **header: Any,
) -> Run:
    """Return a sealed run of these episodes."""
    ledger = ledger_of(rows, maps)
    with RunWriter.start(root, evaluator, policy, {**HEADER, **header}, ledger, new=True) as writer:
        for result in rows:
            writer.append(result)
        writer.seal(driving_metrics)
    return Run(writer.folder)


def write_training(folder: Path, updates: int = 40) -> Path:
    """Write the curves of a training; return its folder."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"worlds": 64, "seed": 3}))
    lines = []
    for update in range(1, updates + 1):
        figures = {"score": 1.0 - 0.9**update, "collision_rate": 0.5 * 0.95**update}
        line = {"update": update, "step": 10_000 * update, "steps": 10_000 * updates, "seconds": 2.0 * update}
        losses = {"policy_loss": 0.1 / update, "value_loss": 1.0 / update, "entropy": 2.0 - 0.01 * update}
        lines.append(
            json.dumps({**line, "steps_per_s": 5000.0, "learning_rate": 3e-4, "losses": losses, "figures": figures})
        )
    (folder / "progress.jsonl").write_text("\n".join(lines) + "\n")
    return folder
