"""Evaluators: from a section's settings to a finished run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.config import EXECUTION_KEYS, EvaluatorConfig
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.ledger import Ledger, episode_seed, plan_ledger
from roadworthy.evaluation.policy_ref import PolicyRef, coplayer_files, task_of
from roadworthy.evaluation.runners.driving.spec import Task
from roadworthy.metrics.closed_loop import closed_loop_figures
from roadworthy.metrics.driving import driving_metrics
from roadworthy.metrics.extensions import NamedTraceFigures, named_metrics
from roadworthy.metrics.trace_figures import TraceFigures
from roadworthy.record import EpisodeResult, Run, RunWriter
from roadworthy.render.run_videos import record_videos
from roadworthy.scenario.pack import Pack
from roadworthy.sim.compiling import ensure_simulator_compiled
from roadworthy.sim.config import AtGoal, Mode

Progress = Callable[[int, int], None]  # how many episodes have ended, of how many


@dataclass(frozen=True)
class Order:
    """One evaluation that is wanted."""

    name: str
    # Of the section.
    config: EvaluatorConfig
    policy: PolicyRef
    out: Path
    # Run folders go to <out>/<name>/.
    engine: EpisodeEngine
    origins: Mapping[str, str] = field(default_factory=dict)
    # Where each setting came from.
    ledger_name: str | None = None
    # The section by whose name scenarios are drawn, where it is another: a control runs the episodes of its subject.
    is_new: bool = False
    # Begin another run even if an unfinished one is there.
    progress: Progress = lambda done, total: None
    on_begun: Callable[[Path], None] = lambda folder: None
    # Told the run folder as soon as there is one.
    role: str | None = None
    # What a reference run is to the run that it belongs to: its floor or its ceiling.

    def header(self) -> dict[str, Any]:
        """What run.json keeps: settings that decide what happens under `config`, the others under `carried_out`."""
        settings = self.config.as_plain()
        return {
            "config": {key: value for key, value in settings.items() if key not in EXECUTION_KEYS},
            "carried_out": {key: value for key, value in settings.items() if key in EXECUTION_KEYS},
            "origins": dict(self.origins),
            "coplayers": coplayer_files(self.config),
            **self.policy.header(),
            **({} if self.role is None else {"role": self.role}),
        }


class Evaluator(Protocol):
    """What the entry point group `roadworthy.evaluators` names: a class that is made without arguments."""

    config_type: ClassVar[type[EvaluatorConfig]]

    def evaluate(self, order: Order) -> Run:
        """Carry out an order, or go on with one that was cut short; whatever goes wrong with the whole is raised."""


class DrivingEvaluator:
    """Drives scenarios of a pack in the simulator. Kinds of it differ in what they choose and count.

    How their worlds are set is told by their config class alone (`fixed`), so that what is explained is what runs.
    """

    config_type: ClassVar[type[EvaluatorConfig]] = EvaluatorConfig

    def choose(self, pack: Pack, name: str, config: EvaluatorConfig) -> list[int]:
        """The scenarios that a section owes, by number: all that have its tag, or as many as it asks for."""
        tag = config.source.tag
        numbers = list(range(len(pack))) if tag is None else pack.select(tag).tolist()
        return sample(pack, numbers, config.episodes, config.seed, name)

    def metrics(self, run: Run, traced: Run | None = None) -> Mapping[str, Any]:
        """Every figure of a run whose episodes have all ended.

        traced: the run whose traces and scenarios are meant, where it is another: re-scoring makes new rows of them.
        """
        return driving_metrics(run, named_metrics(run.header["config"].get("metrics", ())))

    def followed(self, run: Run, episode_id: str) -> int | None:
        """Whom filmstrips of an episode follow, by its place in the trace; None: the ego that did worst."""
        return None

    def evaluate(self, order: Order) -> Run:
        """Write the ledger, carry it out, and seal the run."""
        config = order.config
        named_metrics(config.metrics)  # an unknown name is an error before anything is written
        path = config.source.fetch(order.progress)
        with Pack(path) as pack:
            scenarios = self.choose(pack, order.ledger_name or order.name, config)
            ledger = plan_ledger(pack, scenarios, config.replicates, config.seed)
        ensure_simulator_compiled(path, config.env)  # before the run starts, whose seconds are recorded
        with RunWriter.start(
            order.out,
            order.name,
            order.policy.name,
            order.header(),
            ledger.table(),
            pack=path,
            scenarios=scenarios,
            new=order.is_new,
        ) as writer:
            order.on_begun(writer.folder)
            _require_same_partners(order, Run(writer.folder))
            self._carry_out(order, ledger, writer)
            writer.seal(self.metrics)
        run = Run(writer.folder)
        if config.render is not None:
            record_videos(run, config.render, config.env, order.policy.epoch, order.policy.step)
        return run

    def trace_figures(self, config: EvaluatorConfig) -> tuple[TraceFigures, ...]:
        """Return the functions that compute figures from traces, when episodes end and when runs are re-scored.

        Where agents start from recordings, that is the closed-loop score. With `respawn` there are none: a trace does
        not separate one attempt from the next, and egos that never failed would stand for all.
        """
        has_one_attempt = config.env.goal.at_goal is not AtGoal.RESPAWN
        return (closed_loop_figures,) if config.env.mode is Mode.REPLAY and has_one_attempt else ()

    def task(self, name: str, pack: Path, policy: PolicyRef, config: EvaluatorConfig) -> Task:
        """Return what a process needs to run episodes of a section."""
        return replace(task_of(name, pack, policy, config), trace_figures=self.all_trace_figures(config))

    def all_trace_figures(self, config: EvaluatorConfig) -> tuple[TraceFigures, ...]:
        """Return the evaluator's own functions of traces and those of the metrics that the section names."""
        named = (NamedTraceFigures(config.metrics),) if config.metrics else ()
        return (*self.trace_figures(config), *named)

    def _carry_out(self, order: Order, ledger: Ledger, writer: RunWriter) -> None:
        config = order.config
        owed = [episode for episode in ledger if episode.episode_id not in writer.done]
        done = len(ledger) - len(owed)
        order.progress(done, len(ledger))
        if not owed:
            return

        def keep(result: EpisodeResult) -> None:
            nonlocal done
            writer.append(result)
            done += 1
            order.progress(done, len(ledger))

        task = self.task(order.name, writer.pack, order.policy, config)
        faults = order.engine.probe(task)
        if faults and task.device == "cpu":  # on a GPU sums depend on the batch; `audit` counts what comes of it
            raise RoadworthyError(f"the policy {order.policy.spec!r} can't be evaluated: {'; '.join(faults)}")
        order.engine.run(task, owed, keep, completed=done)


def _require_same_partners(order: Order, run: Run) -> None:
    """A run that is gone on with must not change its partners half way."""
    for before, now in zip(run.header.get("coplayers", ()), coplayer_files(order.config), strict=True):
        if before != now:
            raise UsageError(f"the co-player {now['spec']} was replaced since {run.folder} was begun; use --new")


def sample(pack: Pack, numbers: Sequence[int], count: int | None, seed: int, name: str) -> list[int]:
    """So many of these scenarios, in the pack's order: the same ones for the same seed and name, every time.

    Each scenario has its own place in line, so that a larger sample holds the smaller one.
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
