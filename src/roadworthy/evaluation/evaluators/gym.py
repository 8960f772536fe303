"""`gym`: episodes in any Gymnasium environment, single or vector, as jobs run them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from roadworthy.config import plain
from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluator import Order
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.evaluation.runners.gym.job import Job, SweepConfig, VideoConfig
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.evaluation.runners.gym.render_probe import render_fault
from roadworthy.jobs.run import Errand
from roadworthy.record import Run, RunWriter


@dataclass(frozen=True, kw_only=True)
class GymConfig(EvaluatorConfig):
    """Settings of a job, beside those that all evaluators share: `worlds` are envs side by side.

    A section runs `episodes` times `replicates` episodes, and builds the environments again for each replicate.

    `policy` is named as jobs name theirs; none: the checkpoint that is evaluated.
    """

    needs_scenarios: ClassVar[bool] = False
    has_references: ClassVar[bool] = False

    environment: str
    # "gym:Ant-v5", "drive:town" or "drive:FILE.pack", "module:make_env", or a name that a package declares.
    arguments: dict[str, Any] = field(default_factory=dict)
    # Handed to whatever makes the environment.
    max_steps: int | None = None
    # An episode ends after so many steps at the latest.
    instruction: str | None = None
    # What the policy is told to do; none: what the environment says.
    videos: VideoConfig | None = None
    # None: no videos.
    sweep: SweepConfig | None = None
    # Factors that vary between episodes.

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes is None:
            raise ConfigError("episodes is missing, expected how many to run")
        if self.render is not None:
            raise ConfigError("render is for driving; a section of type gym has videos instead")
        for name in ("time_limit_s", "memory_limit_gb"):
            if getattr(self, name) != getattr(EvaluatorConfig, name):  # the default
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, but a section of type gym runs in this process, which nobody "
                    "could end; leave it out, or run it as a job (roadworthy jobs), where time_limit_s ends an env "
                    "that hangs"
                )

    def job(self, name: str, policy: str) -> Job:
        """The job that the section describes."""
        assert self.episodes is not None  # see __post_init__
        return Job(
            name=name,
            environment=self.environment,
            arguments=self.arguments,
            policy=policy,
            policy_config=self.policy_config,
            episodes=self.episodes * self.replicates,
            rebuilds=self.replicates,
            envs=self.worlds,
            max_steps=self.max_steps,
            seed=self.seed,
            instruction=self.instruction,
            metrics=self.metrics,
            videos=self.videos,
            sweep=self.sweep,
        )


class Gym:
    """Carries a job out as a section of an evaluation."""

    config_type: ClassVar[type[EvaluatorConfig]] = GymConfig

    def evaluate(self, order: Order) -> Run:
        """Write the ledger, carry it out, and seal the run."""
        assert isinstance(order.config, GymConfig)
        job = order.config.job(order.name, order.policy.spec)
        ledger = plan(job)
        header = {**order.header(), "job": plain(job)}
        with RunWriter.start(
            order.out, order.name, order.policy.name, header, ledger.table(), new=order.is_new
        ) as writer:
            order.on_begun(writer.folder)
            errand = Errand(job, writer, len(ledger), order.progress, render_fault=render_fault(job))
            errand.play(list(ledger))
            writer.seal(figures)
        if errand.metric_fault:
            raise RoadworthyError(errand.metric_fault)
        return Run(writer.folder)
