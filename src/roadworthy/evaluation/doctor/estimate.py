"""Time one step of the worlds of a section, and estimate the time and memory of the whole section."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.doctor.findings import Finding, State
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator
from roadworthy.evaluation.policy_ref import policy_maker, policy_ref
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.evaluation.sections import evaluator_class
from roadworthy.policy import protocol
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.processes import available_cores

_WARM_STEPS, _TIMED_STEPS = 3, 10


def kind_of(config: EvaluatorConfig) -> object:
    """Return what decides the cost of a step: sections with equal values are tried once."""
    path = config.source.path if config.scenarios is not None else None
    drivers = config.policy, config.coplayers
    return config.type, path, config.env, config.worlds, config.engine, config.workers, config.device, drivers


def estimate(what: str, configs: Sequence[EvaluatorConfig], policy: str | None) -> Finding:
    """Estimate the cost of sections whose steps cost the same."""
    config = configs[0]
    evaluator = evaluator_class(config.type)()
    if not isinstance(evaluator, DrivingEvaluator):
        return Finding(what, State.OK, f"{config.type} does not run in the simulator; no step was tried")
    path, counts = _some_scenarios(configs)
    worlds = min(config.worlds, max(counts))
    spec = DrivingSpec(what, path, config.env, _policy_maker(config, policy), worlds, config.device)
    step_s, world_bytes = _try(spec)
    processes = 1 if config.engine == "inline" else config.workers or available_cores()
    batches = sum(-(-count // (worlds * processes)) for count in counts)
    steps = config.episode.trials * config.episode.trial_steps
    seconds, process_bytes = batches * steps * step_s, _resident_bytes()
    message = (
        f"{sum(counts)} episodes of at most {steps} steps: at most about {_duration(seconds)} with {worlds} worlds"
        f"{f' in each of {processes} processes' if processes > 1 else ''} "
        f"({step_s * 1e3:.1f} ms a step); about {processes * process_bytes / 1e9:.1f} GB of memory, "
        f"{world_bytes / 1e6:.0f} MB of it worlds"
    )
    figures: dict[str, Any] = {
        "episodes": sum(counts),
        "steps": steps,
        "step_s": step_s,
        "seconds": seconds,
        "world_bytes": world_bytes,
        "process_bytes": process_bytes,
        "processes": processes,
    }
    return Finding(what, State.OK, message, figures)


def _policy_maker(config: EvaluatorConfig, policy: str | None) -> Any:
    spec = config.policy_for(policy)
    return policy_maker(policy_ref("random") if spec is None else policy_ref(spec, config.policy_config), config)


def _some_scenarios(configs: Sequence[EvaluatorConfig]) -> tuple[Path, list[int]]:
    """Return a pack for trying a step, and the number of episodes of each section.

    If the pack is not generated yet, a pack of one scenario is generated for the trial.
    """
    source = configs[0].source
    if source.recipe is not None and not source.is_there:
        recipe = source.recipe
        path = replace(source, recipe=replace(recipe, count=1, classes=recipe.classes[:1])).fetch()
        there = [recipe.count // len(recipe.classes) if config.source.tag else recipe.count for config in configs]
    else:
        path = source.path
        with Pack(path) as pack:
            tags = [config.source.tag for config in configs]
            there = [len(pack) if tag is None else len(pack.select(tag)) for tag in tags]
    planned = [config.replicates * (config.episodes or count) for config, count in zip(configs, there, strict=True)]
    return path, planned


def _try(spec: DrivingSpec) -> tuple[float, int]:
    """Return the seconds of a step with the policy, and the bytes of the worlds."""
    env, policy = spec.make_env(), spec.make_policy()
    worlds = np.arange(env.world_count)
    env.assign(worlds.tolist(), (worlds % len(env.pack)).tolist(), worlds.tolist())
    protocol.start(policy, PolicyInfo.of_drive_env(env))
    seeds = np.repeat(worlds.astype(np.uint64), env.rows_per_world)
    seconds = []
    for number in range(_WARM_STEPS + _TIMED_STEPS):
        began = time.perf_counter()
        env.step(policy.act(drive_batch(env, seeds, np.full(env.row_count, number))))
        seconds.append(time.perf_counter() - began)
    size = sum(env.memory().values())
    env.close()
    return median(seconds[_WARM_STEPS:]), size


def _resident_bytes() -> int:
    """Return the peak memory of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
