"""`gym`: episodes in any Gymnasium environment, single or vectorized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from roadworthy.config import plain
from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.engines import EpisodeEngine
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.evaluator import EvalRequest, StartedRun, ended_on_error, run_ledger
from roadworthy.evaluation.ledger import EpisodeSpec, Ledger
from roadworthy.evaluation.runners.gym.job import Job, SweepConfig, VideoConfig
from roadworthy.evaluation.runners.gym.outcomes import METRIC, load_metrics
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.evaluation.runners.gym.render_probe import render_fault
from roadworthy.evaluation.runners.gym.spec import GymSpec
from roadworthy.evaluation.runners.gym.videos import chosen_episodes, keep_worst, remove_partial
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.progress import Report
from roadworthy.record import Run, RunWriter


@dataclass(frozen=True, kw_only=True)
class GymConfig(EvaluatorConfig):
    """Settings of a job, in addition to those that all evaluators share: `worlds` is the number of parallel envs.

    A section runs `episodes` times `replicates` episodes, and builds the environments again for each replicate.
    """

    needs_scenarios: ClassVar[bool] = False
    has_references: ClassVar[bool] = False

    environment: str
    # "gym:Ant-v5", "drive:town" or "drive:FILE.pack", "module:make_env", or an entry point `roadworthy.environments`.
    arguments: dict[str, Any] = field(default_factory=dict)
    # Arguments of the function or class that makes the environment.
    max_steps: int | None = None
    # Largest number of steps of an episode; by default the environment alone decides.
    instruction: str | None = None
    # Instruction for the policy; by default `info["instruction"]` of the environment.
    videos: VideoConfig | None = None
    # Settings of videos; "none" for no videos.
    sweep: SweepConfig | None = None
    # Factors that vary between episodes.

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes is None:
            raise ConfigError("episodes is missing, expected the number of episodes to run")
        if self.render is not None:
            raise ConfigError("render is for driving; a section of type gym has videos instead")
        for name in ("time_limit_s", "memory_limit_gb"):
            if self.engine == "inline" and getattr(self, name) != getattr(EvaluatorConfig, name):  # the default
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, but the engine inline can't enforce it: it runs episodes in "
                    'this process; set engine = "workers"'
                )

    def job(self, name: str, policy: str) -> Job:
        """Return the job that the section describes."""
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
    """Runs a job as a section of an evaluation."""

    config_type: ClassVar[type[EvaluatorConfig]] = GymConfig

    def evaluate(self, request: EvalRequest) -> Run:
        """Write the ledger, run its episodes, and seal the run."""
        assert isinstance(request.config, GymConfig)
        job, ledger, writer = self._open(request)
        with writer:
            request.on_started(writer.folder)
            fault = run_job_episodes(job, ledger, writer, request.engine, request.progress)
        if fault is not None:
            raise RoadworthyError(fault)
        return Run(writer.folder)

    def start(self, request: EvalRequest) -> StartedRun:
        """Write the ledger of a run, or resume an interrupted one, before any episode runs."""
        job, ledger, writer = self._open(request)
        with ended_on_error(writer):
            request.on_started(writer.folder)
            spec = _spec(job, ledger, writer, request.engine)
        return StartedRun(spec, ledger, writer, outcome_metrics, _same_factors_together(ledger))

    def _open(self, request: EvalRequest) -> tuple[Job, Ledger, RunWriter]:
        assert isinstance(request.config, GymConfig)
        job = request.config.job(request.name, request.policy.spec)
        ledger = request.arrange(plan(job))
        header = {**request.header(), "job": plain(job)}
        writer = RunWriter.start(
            request.out, request.name, request.policy.name, header, ledger.table(), new=request.is_new
        )
        return job, ledger, writer


def run_job_episodes(
    job: Job, ledger: Ledger, writer: RunWriter, engine: EpisodeEngine, progress: Report
) -> str | None:
    """Run the episodes of a job and seal its run. Return the errors of its metrics: without them it has failed."""
    spec = _spec(job, ledger, writer, engine)
    run_ledger(spec, ledger, writer, engine, progress, order=_same_factors_together(ledger))
    writer.seal(outcome_metrics)
    run = Run(writer.folder)
    if job.videos is not None:
        keep_worst(run, job.videos)
    errors = {
        name.removeprefix(METRIC): error
        for result in run.results()
        for name, error in result.episode.artifact_errors.items()
        if name.startswith(METRIC)
    }
    return "; ".join(f"{name} raised {error}" for name, error in errors.items()) or None


def _spec(job: Job, ledger: Ledger, writer: RunWriter, engine: EpisodeEngine) -> GymSpec:
    """Return what a process needs to run the episodes of a job."""
    load_metrics(job.metrics)  # an unknown name is an error before the first episode
    remove_partial(writer.folder)
    # In another process, a renderer that dies is noticed; in this one it has to be tried beforehand.
    fault = render_fault(job) if isinstance(engine, InlineEngine) else None
    return GymSpec(job, writer.folder, chosen_episodes(job, ledger.episodes), fault)


def _same_factors_together(ledger: Ledger) -> Callable[[EpisodeSpec], Any]:
    """Return a key that sorts episodes with equal factors together: environments may be built for them."""
    places: dict[str, int] = {}
    for place, episode in enumerate(ledger):
        places.setdefault(repr(sorted(episode.factors.items())), place)
    return lambda episode: (episode.replicate, places[repr(sorted(episode.factors.items()))])
