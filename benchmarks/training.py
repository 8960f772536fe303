"""Training end to end: agent-steps per second, shares of time, and memory, for different sizes of batches.

Uses the preset of a GPU if there is one, otherwise the preset for two cores. On a GPU each variant runs in its own
process, so that memory of the variant before does not count in its peak.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.runner import Measurements, Sizes
from roadworthy.config import load
from roadworthy.policy.checkpoint import load_checkpoint, save_policy
from roadworthy.policy.spec import BASELINES
from roadworthy.sources import parse_source
from roadworthy.training.config import TrainConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.progress import Progress
from roadworthy.training.train import preset_path


def train_memoryless(found: Measurements, sizes: Sizes) -> None:
    """Train a policy without memory: the preset, other horizons, batches and numbers of worlds, and two partners."""
    worlds = _worlds(sizes)
    with tempfile.TemporaryDirectory() as folder:
        partners = [str(_baseline(Path(folder) / "one", 0.0)), str(_baseline(Path(folder) / "other", 1e-3))]
        for name, overrides in {
            "preset": [],
            "half the horizon": ["ppo.horizon=32"],
            "twice the horizon": ["ppo.horizon=128"],
            "16 minibatches": ["ppo.num_minibatches=16"],
            "half the worlds": [f"worlds={max(worlds // 2, 1)}"],
            "twice the worlds": [f"worlds={2 * worlds}"],
            "half co-players": ["env.control.ego_share=0.5"],
            "half co-players, two partners": ["env.control.ego_share=0.5", f"coplayers.checkpoints={partners}"],
        }.items():
            _train(found, name, _preset(), sizes, overrides)


def train_transformer(found: Measurements, sizes: Sizes) -> None:
    """Train a transformer over episodes of two trials: the preset, then twice the length and more observations."""
    overrides = [] if torch.cuda.is_available() else ["device=cpu", "ppo.precision=float32"]
    _train(found, "preset", "adaptive", sizes, overrides)
    longer = {
        "env.episode.trial_steps": 201,
        "policy.transformer.context": 402,
        "ppo.horizon": 67,
        "ppo.num_minibatches": 16,
        "env.control.rows": 8,
        "env.open.agents": 8,
        "env.open.traffic": 0,
        "env.observe.partners": 31,
        "env.observe.partner_range_m": 100.0,
        "env.observe.lanes": 64,
        "env.observe.edges": 64,
        "env.observe.lights": 4,
    }
    _train(found, "context 402", "adaptive", sizes, [*overrides, *(f"{key}={value}" for key, value in longer.items())])


def _preset() -> str:
    return "default" if torch.cuda.is_available() else "fast"


def _worlds(sizes: Sizes) -> int:
    """Return the number of worlds; CPU cores are busy with fewer."""
    return sizes["worlds"] if torch.cuda.is_available() else max(sizes["worlds"] // 32, 2)


def _baseline(folder: Path, noise: float) -> Path:
    """Save the shipped baseline with noise on its weights, as a distinct checkpoint."""
    checkpoint = load_checkpoint(BASELINES / "town")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in checkpoint.policy.parameters():
            weights.add_(noise * torch.randn(weights.shape, generator=generator))
    return save_policy(folder, checkpoint.policy)


def _train(found: Measurements, name: str, preset: str, sizes: Sizes, overrides: list[str]) -> None:
    """Train for some updates; add the measurements under the name of the variant."""
    if not torch.cuda.is_available():
        measured = _measure(name, preset, sizes, overrides)
    else:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            measured = process.submit(_measure, name, preset, dict(sizes), overrides).result()
        print(f"  {measured.figures}", file=sys.stderr, flush=True)
    found.seconds |= measured.seconds
    found.figures |= measured.figures


def _measure(name: str, preset: str, sizes: Sizes, overrides: list[str]) -> Measurements:
    found, worlds, updates = Measurements(), _worlds(sizes), sizes["updates"]
    given = [
        f"scenarios=generate:town?count={sizes['scenarios']}&seed=1",
        f"worlds={worlds}",
        f"steps={10**12}",
        *([f"ppo.num_minibatches={worlds}"] if worlds < 64 else []),  # at least one row each
    ]
    config = load(preset_path(preset), TrainConfig, [*given, *overrides])
    pack = parse_source(config.scenarios).fetch()
    is_gpu = config.device != "cpu"
    warm = 3 if is_gpu else 1  # updates before the clock runs: the first ones compile
    rates: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(config, pack, Path(folder))
        _time(found, f"{name}: collect", trainer.collector, "collect", is_gpu)
        _time(found, f"{name}: learn", trainer.learner, "update", is_gpu)

        def note(progress: Progress) -> None:
            rates.append((time.perf_counter(), progress.step))

        trainer.run(note, lambda: len(rates) >= warm + updates)
    (start, first), (end, last) = rates[warm - 1], rates[-1]
    found.figures[f"{name}: agent-steps/s"] = round((last - first) / (end - start))
    steps = trainer.env.row_count * config.ppo.horizon * updates
    found.figures[f"{name}: share of steps that count"] = round((last - first) / steps, 3)
    for part in ("collect", "learn"):
        found.seconds[f"{name}: {part}"] = found.seconds[f"{name}: {part}"][warm:]
    seconds = {part: median(found.seconds[f"{name}: {part}"]) for part in ("collect", "learn")}
    found.figures[f"{name}: share of collecting"] = round(seconds["collect"] / sum(seconds.values()), 3)
    if is_gpu:
        found.figures[f"{name}: peak MiB"] = round(torch.cuda.max_memory_allocated() / 2**20)
    return found


def _time(found: Measurements, stage: str, owner: Any, method: str, is_gpu: bool) -> None:
    """Measure the calls of a method as repetitions of a stage."""
    call: Callable[..., Any] = getattr(owner, method)

    def timed(*arguments: Any, **named: Any) -> Any:
        with found.stage(stage):
            result = call(*arguments, **named)
            if is_gpu:
                torch.cuda.synchronize()
        return result

    setattr(owner, method, timed)
