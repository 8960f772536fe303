"""Driving in the simulator: the base class of evaluators that run scenarios of a pack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.config import EvaluatorConfig, Memory
from roadworthy.evaluation.evaluator import EvalRequest, StartedRun, ended_on_error, run_ledger
from roadworthy.evaluation.ledger import episode_seed, plan_ledger
from roadworthy.evaluation.policy_ref import PolicyRef, coplayer_files, policy_maker
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.metrics.closed_loop import closed_loop_figures
from roadworthy.metrics.driving import driving_metrics
from roadworthy.metrics.extensions import NamedTraceFigures, named_metrics
from roadworthy.metrics.trace_figures import TraceFigures
from roadworthy.policy.compiling import ensure_network_compiled
from roadworthy.record import Run, RunWriter
from roadworthy.render.run_videos import record_videos
from roadworthy.scenario.pack import Pack
from roadworthy.sim.compiling import ensure_simulator_compiled
from roadworthy.sim.config import AtGoal, Mode


class DrivingEvaluator:
    """Runs scenarios of a pack in the simulator. Subclasses differ in their scenarios and their metrics.

    The settings of their worlds are in their config class alone (`fixed`), so that `--explain` shows what runs.
    """

    config_type: ClassVar[type[EvaluatorConfig]] = EvaluatorConfig

    def choose(self, pack: Pack, name: str, config: EvaluatorConfig) -> list[int]:
        """Return the numbers of the scenarios of a section: all with its tag, or as many as it asks for."""
        tag = config.source.tag
        numbers = list(range(len(pack))) if tag is None else pack.select(tag).tolist()
        return sample(pack, numbers, config.episodes, config.seed, name)

    def metrics(self, run: Run, traced: Run | None = None) -> Mapping[str, Any]:
        """Return all figures of a run whose episodes have all ended.

        traced: the run with the traces and scenarios, if it is another one: re-scoring writes new rows.
        """
        return driving_metrics(run, named_metrics(run.header["config"].get("metrics", ())))

    def followed(self, run: Run, episode_id: str) -> int | None:
        """Return the agent that filmstrips of an episode follow; None for the ego with the worst result."""
        return None

    def evaluate(self, request: EvalRequest) -> Run:
        """Write the ledger, run its episodes, and seal the run."""
        config = request.config
        started = self.start(request)
        with started.writer as writer:
            run_ledger(started.spec, started.ledger, writer, request.engine, request.progress)
            writer.seal(started.metrics)
        run = Run(writer.folder)
        if config.render is not None:
            record_videos(run, config.render, config.env, request.policy.epoch, request.policy.step)
        return run

    def start(self, request: EvalRequest) -> StartedRun:
        """Write the ledger of a run, or resume an interrupted one, before any episode runs."""
        config = request.config
        named_metrics(config.metrics)  # an unknown name is an error before anything is written
        path = request.pack or config.source.fetch(request.progress)
        with Pack(path) as pack:
            if request.pack is None:
                scenarios = self.choose(pack, request.ledger_name or request.name, config)
            else:
                scenarios = list(range(len(pack)))
            ledger = request.arrange(plan_ledger(pack, scenarios, config.replicates, config.seed))
        ensure_simulator_compiled(path, config.env)  # before the run starts, whose seconds are recorded
        if request.policy.checkpoint is not None and config.device == "cpu":
            ensure_network_compiled()
        writer = RunWriter.start(
            request.out,
            request.name,
            request.policy.name,
            request.header(),
            ledger.table(),
            pack=path,
            scenarios=scenarios,
            new=request.is_new,
        )
        with ended_on_error(writer):
            request.on_started(writer.folder)
            _require_same_coplayers(request, Run(writer.folder))
            spec = self.spec(request.name, writer.pack, request.policy, config)
            if len(writer.done) < len(ledger):
                _require_no_faults(request, spec)
        return StartedRun(spec, ledger, writer, self.metrics)

    def trace_figures(self, config: EvaluatorConfig) -> tuple[TraceFigures, ...]:
        """Return the functions that compute figures from traces, when episodes end and when runs are re-scored.

        Where agents start from recordings, that is the closed-loop score. With `respawn` there are none: a trace does
        not separate one attempt from the next, and egos that never failed would stand for all.
        """
        has_one_attempt = config.env.goal.at_goal is not AtGoal.RESPAWN
        return (closed_loop_figures,) if config.env.mode is Mode.REPLAY and has_one_attempt else ()

    def spec(self, name: str, pack: Path, policy: PolicyRef, config: EvaluatorConfig) -> DrivingSpec:
        """Return what a process needs to run episodes of a section."""
        return replace(driving_spec(name, pack, policy, config), trace_figures=self.all_trace_figures(config))

    def all_trace_figures(self, config: EvaluatorConfig) -> tuple[TraceFigures, ...]:
        """Return the evaluator's own functions of traces and those of the metrics that the section names."""
        named = (NamedTraceFigures(config.metrics),) if config.metrics else ()
        return (*self.trace_figures(config), *named)


def driving_spec(name: str, pack: Path, policy: PolicyRef, config: EvaluatorConfig) -> DrivingSpec:
    """Return what a process needs to run driving episodes of a policy."""
    return DrivingSpec(
        name,
        pack,
        config.env,
        policy_maker(policy, config),
        config.worlds,
        config.device,
        forgets_trials=config.memory is Memory.TRIAL,
    )


def _require_no_faults(request: EvalRequest, spec: DrivingSpec) -> None:
    """Refuse a policy whose actions depend on more than the episode."""
    faults = request.engine.probe(spec)
    if faults and spec.device == "cpu":  # on a GPU sums depend on the batch; `audit` counts the effect
        raise RoadworthyError(f"the policy {request.policy.spec!r} can't be evaluated: {'; '.join(faults)}")


def _require_same_coplayers(request: EvalRequest, run: Run) -> None:
    """Refuse to resume a run with other co-players."""
    for before, now in zip(run.header.get("coplayers", ()), coplayer_files(request.config), strict=True):
        if before != now:
            raise UsageError(f"the co-player {now['spec']} was replaced since {run.folder} was started; use --new")


def sample(pack: Pack, numbers: Sequence[int], count: int | None, seed: int, name: str) -> list[int]:
    """Return a sample of scenarios in the pack's order; the same seed and name give the same sample.

    Each scenario has its own rank, so a larger sample contains the smaller ones.
    """
    if not numbers:
        raise UsageError(f"{pack.path} has no scenario for {name!r}")
    if count is None or count == len(numbers):
        return list(numbers)
    if count > len(numbers):
        raise UsageError(
            f"episodes is {count}, but {pack.path} has {len(numbers)} scenarios for {name!r}; for more episodes set "
            "replicates, which runs each of them several times"
        )
    places = [episode_seed(seed, f"{name}/{pack.ids[number]}", 0) for number in numbers]
    return sorted(numbers[k] for k in np.argsort(np.array(places, np.uint64))[:count])
