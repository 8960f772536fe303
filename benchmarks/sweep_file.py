"""Measure the coverage of the analysis of a sweep in Arena's format, in an environment with a known truth.

150 jobs, one for each of 50 values of light and three objects, of two episodes each. With seeds of their own, and with
one seed that every job gives, where 300 episodes repeat two draws; these are analyzed as they are, and blindly.
"""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from benchmarks.runner import Measurements, Sizes
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.jobs.files import read_jobs
from roadworthy.sensitivity.factors import Categorical, Continuous
from roadworthy.sensitivity.rows import Rows, make_rows
from roadworthy.sensitivity.surface import SurfaceConfig, fit

BEST = {"box": (400.0, 900.0), "can": (1000.0, 700.0), "ball": (1700.0, 1200.0)}  # light of each object, and its width
OBJECTS = tuple(BEST)
LIGHTS = np.linspace(0.0, 2000.0, 50)
FACTORS = (Continuous("light", 0.0, 2000.0), Categorical("object", OBJECTS))
FIRST_SEED = 1000


def chance_of(light: float, object: str) -> float:
    """Return the true probability of success."""
    best, width = BEST[object]
    return 0.1 + 0.8 * math.exp(-(((light - best) / width) ** 2))


MEAN = float(np.mean([chance_of(light, name) for light in np.linspace(0.0, 2000.0, 2001) for name in OBJECTS]))


class LitTable(gymnasium.Env[Any, Any]):
    """Succeeds with a probability that depends on light and object; the seed decides the draw."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, light: float, object: str) -> None:
        self._chance = chance_of(light, object)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._success = bool(self.np_random.random() < self._chance)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 0.0, True, False, {"outcomes": {"success": self._success}}


def write_sweep(path: Path, seed: int | None = None, file_seed: int | None = None) -> Path:
    """Write the jobs file; seed: given by each job, file_seed: by the file."""
    jobs = [
        {
            "name": f"light_{light:.0f}_{name}",
            "policy_type": "zero_action",
            "num_episodes": 2,
            "arena_env_args": {"environment": f"{__name__}:LitTable", "light": light, "object": name},
            **({} if seed is None else {"seed": seed}),
        }
        for light in LIGHTS.tolist()
        for name in OBJECTS
    ]
    path.write_text(json.dumps({"jobs": jobs} | ({} if file_seed is None else {"seed": file_seed})))
    return path


def sweep_rows(path: Path) -> list[dict[str, Any]]:
    """Run the episodes of a sweep file with the seeds of its ledger, without run folders."""
    rows = []
    for job in read_jobs(path).jobs:
        env = LitTable(**job.arguments)
        for number, episode in enumerate(plan(job)):
            env.reset(seed=episode.seed)
            outcomes = env.step(0)[4]["outcomes"]
            place = {"job_name": job.name, "episode_idx": number, "seed": episode.seed}
            rows.append({**place, "arena_env_args": job.arguments, "outcomes": outcomes})
    return rows


def held(rows: Rows) -> tuple[float, bool]:
    """Return the share of the true curve of light in its 90% band, and whether the band of the mean covers it."""
    surface = fit(rows, SurfaceConfig())
    band, rate = surface.marginal(0), surface.rate()
    true = np.mean([[chance_of(2000.0 * unit, name) for unit in surface.grid(0)] for name in OBJECTS], axis=0)
    return float(np.mean((band.low <= true) & (true <= band.high))), bool(rate.low <= MEAN <= rate.high)


def sweep_files(found: Measurements, sizes: Sizes) -> None:
    """Measure the coverage of the curve of light and of the mean, over sweeps with different seeds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.json"
        for name in ("own seeds", "one seed", "one seed, taken as independent"):
            curves, means = [], []
            for seed in range(FIRST_SEED, FIRST_SEED + sizes["repeats"]):
                write_sweep(path, **({"file_seed": seed} if name == "own seeds" else {"seed": seed}))
                rows = make_rows(sweep_rows(path), FACTORS, "success")
                rows = replace(rows, seeds=None) if name.endswith("independent") else rows
                if np.ptp(rows.outcome) == 0.0:
                    continue  # both draws succeed everywhere, so the analysis says that there is not enough data
                with found.stage(name):
                    share, holds_mean = held(rows)
                curves.append(share)
                means.append(holds_mean)
            if curves:
                found.figures |= {
                    f"{name}: sweeps": len(curves),
                    f"{name}: curve held": round(float(np.mean(curves)), 3),
                    f"{name}: mean held": round(float(np.mean(means)), 3),
                }
