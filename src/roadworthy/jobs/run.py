"""Running one job: a run folder with its episodes, and the record of the job beside them."""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from roadworthy import plugins
from roadworthy.config import plain
from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runners.gym.batch import Broken, EnvBatch, SingleEnvs, split_factors
from roadworthy.evaluation.runners.gym.runner import CUT_OFF, JobFailure, Player, Shares, Streams
from roadworthy.evaluation.runners.gym.environments import open_envs, unprefer_egl
from roadworthy.evaluation.runners.gym.in_flight import Metric, Underway, measured
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.evaluation.runners.gym.job import Job, Status
from roadworthy.evaluation.runners.gym.plan import densities, job_seed, plan, seed_of
from roadworthy.jobs.record import JobRecord, write_record
from roadworthy.evaluation.runners.gym.stretch import Stretch
from roadworthy.evaluation.runners.gym.videos import Crew
from roadworthy.evaluation.watch import Watch
from roadworthy.policy import protocol
from roadworthy.policy.load import load_policy
from roadworthy.policy.per_world import start_in_gymnasium
from roadworthy.policy.spec import BASELINE, Kind, checkpoint_folder, kind_of
from roadworthy.record import RunWriter

Progress = Callable[[int, int], None]


def run_job(
    job: Job,
    out: Path,
    *,
    new: bool = False,
    progress: Progress | None = None,
    begun: Callable[[Path], None] | None = None,
    watch: Watch | None = None,
    render_fault: str | None = None,
) -> JobRecord:
    """Carry a job out, or what is left of it; whatever goes wrong is in its record.

    begun: told the run folder as soon as there is one. Ctrl-C and SIGTERM leave an interrupted job and go on upwards.
    watch: where somebody outside sees how long envs take and can end this process; without, no time limit is kept.
    render_fault: why render() can't be called, as told for each video of it; None: it is called where videos want it.
    """
    started = time.monotonic()
    ledger = plan(job)
    header = {"config": job.deciding(), "checkpoint": _checkpoint(job.policy), "job": plain(job)}
    writer = RunWriter.start(out, job.name, job.policy, header, ledger.table(), new=new)
    if begun is not None:
        begun(writer.folder)

    def describe(metadata: Mapping[str, Any]) -> None:
        """Write down what the environment tells: a process that is killed can't do that any more."""
        write_record(JobRecord.of(job, writer.folder, Status.RUNNING, None, None, 0.0, metadata))

    errand = Errand(job, writer, len(ledger), progress, watch, describe, render_fault)
    try:
        errand.play(list(ledger))
        writer.seal(figures)
        error, details = errand.metric_fault, None
        status = Status.FAILED if error else Status.COMPLETED
    except Exception as problem:
        writer.fail(problem)
        status, error, details = Status.FAILED, _words(problem), _details(problem)
    except BaseException:
        writer.interrupt()
        status, error, details = Status.INTERRUPTED, None, None
        raise
    finally:
        record = JobRecord.of(job, writer.folder, status, error, details, time.monotonic() - started, errand.metadata)
        write_record(record)
    return record


@dataclass
class Errand:
    """A job while it is carried out, into a run that was begun for its ledger."""

    job: Job
    writer: RunWriter
    owed_count: int
    progress: Progress | None
    watch: Watch | None = None
    describe: Callable[[Mapping[str, Any]], None] | None = None  # gets the environment's metadata when it is built
    render_fault: str | None = None  # why render() can't be called; None if it can, as far as is known
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of the environment, once it is built
    metrics: dict[str, Metric] = field(default_factory=dict)
    metric_errors: dict[str, str] = field(default_factory=dict)
    crew: Crew | None = None
    is_without_cameras: bool = False

    def play(self, owed: Sequence[EpisodeSpec]) -> None:
        """Carry out every episode that is owed and has not ended; the envs are built again for each rebuild."""
        self.metrics = {
            name.rpartition(":")[2]: plugins.load("roadworthy.metrics", name, "metric") for name in self.job.metrics
        }
        if self.job.videos is not None:
            known = owed if self.job.steps is None else None
            self.crew = Crew(self.job.videos, self.writer.folder, known, job_seed(self.job), self.render_fault)
        for _, build in itertools.groupby(owed, key=lambda episode: episode.replicate):
            left = [episode for episode in build if episode.episode_id not in self.writer.done]
            if left:
                self._play_build(left)
        self._tell()

    def _play_build(self, left: Sequence[EpisodeSpec]) -> None:
        batch = self._open()
        try:
            for factors, group in _groups(left, batch):
                if factors:  # they can't be varied in these envs, so others are built
                    batch.close()
                    batch = self._open(factors)
                self._play_group(batch, group)
        finally:
            self._close(batch)

    def _open(self, factors: Mapping[str, Any] | None = None) -> EnvBatch:
        """Build the envs; where that works only without a renderer, videos of render() are what is missing."""
        try:
            with self._drawing():
                return open_envs(self.job, factors, renders=self.render_fault is None)
        except Exception as error:
            if self.crew is None or self.render_fault is not None:
                raise
            unprefer_egl()
            try:
                batch = open_envs(self.job, factors, renders=False)
            except Exception:
                raise error from None
            self.render_fault = f"the envs can't be built with a renderer: {type(error).__name__}: {error}"
            self.crew.render_fault = self.render_fault
            return batch

    def _drawing(self) -> AbstractContextManager[None]:
        """Mark that a renderer may be at work, where this job has one."""
        has_renderer = self.render_fault is None and self.job.videos is not None and self.job.videos.has_render
        return self.watch.rendering() if self.watch is not None and has_renderer else nullcontext()

    def _close(self, batch: EnvBatch) -> None:
        """Close envs. What goes wrong there changes no result, and must not hide what went wrong before."""
        try:
            with self._drawing():  # a renderer is let go of, too
                batch.close()
        except Exception as error:
            self.writer.add_artifact(None, "closing of the envs", error=f"{type(error).__name__}: {error}")

    def _play_group(self, batch: EnvBatch, left: Sequence[EpisodeSpec]) -> None:
        job = self.job
        if self.watch is not None:
            batch.watch = self.watch
        if not self.metadata and self.describe is not None:
            self.describe(batch.info.metadata)
        self.metadata = batch.info.metadata
        policy = start_in_gymnasium(partial(load_policy, job.policy, job.policy_config), batch.info)
        if self.crew is not None:
            self.crew.watch(batch)
            if not self.crew.cameras and not self.is_without_cameras:
                self.is_without_cameras = True
                self.writer.add_artifact(
                    None, "videos", error="this environment has no pictures among its observations and does not draw"
                )
        stretches = {episode.scenario % job.envs: Stretch(episode) for episode in left} if job.steps else {}
        shares: Shares | Streams = Shares(left, batch)
        if stretches:
            shares = Streams([_stream(job, stretches.get(env)) for env in range(job.envs)])
        player = Player(
            batch,
            policy,
            shares,
            lambda episode, reason: self._report(episode, reason, stretches.get(episode.env)),
            self.crew,
            instruction=job.instruction,
            max_steps=job.max_steps,
            failures=job.failures,
        )
        try:
            if job.steps is not None:
                player.play_steps(job.steps)
            else:
                player.play()
            self._write(stretches.values())
        except Exception as error:
            player.give_up(Broken.of(error))
            self._write(stretches.values())
            raise
        finally:
            if self.crew is not None:
                self.crew.close()
            protocol.close(policy)

    def _report(self, episode: Underway, reason: Broken | str | None, stretch: Stretch | None) -> None:
        """Write down an episode that is over."""
        outcomes: dict[str, float | None] = {}
        errors: dict[str, str] = {}
        if reason is None:
            outcomes, errors = measured(episode.ended(), self.metrics)
            self.metric_errors |= errors
        paths: dict[str, str] = {}
        if self.crew is not None:
            judged = outcomes.get(self.job.videos.outcome) if self.job.videos is not None else None
            filmed = self.crew.end(episode, judged)
            paths = {f"video_{camera}": path for camera, path in filmed.paths.items()}
            errors |= {f"video_{camera}": error for camera, error in filmed.errors.items()}
            for displaced, camera in filmed.displaced:
                self.writer.add_artifact(displaced, f"video_{camera}", error="made room for a worse episode's video")
        if stretch is not None:
            stretch.add(episode, outcomes, None if reason == CUT_OFF else reason, paths, errors)
        else:
            density = densities(self.job.sweep)
            self.writer.append(
                episode.result(
                    self.job.name, outcomes, reason, artifacts=paths, artifact_errors=errors, density=density
                )
            )
            self._tell()

    def _write(self, stretches: Iterable[Stretch]) -> None:
        for stretch in stretches:
            if stretch.steps:
                self.writer.append(stretch.result(self.job.name))
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(len(self.writer.done), self.owed_count)

    @property
    def metric_fault(self) -> str | None:
        """What went wrong in metrics: a job that lacks what was asked for has failed, though its episodes stand."""
        return "; ".join(f"{name} raised {error}" for name, error in self.metric_errors.items()) or None


def _groups(left: Sequence[EpisodeSpec], batch: EnvBatch) -> Iterator[tuple[dict[str, Any], list[EpisodeSpec]]]:
    """Episodes that one batch can play: all of them, but where a vector env can't vary factors, those of equal ones."""
    if isinstance(batch, SingleEnvs):
        yield {}, list(left)
        return
    groups: dict[str, tuple[dict[str, Any], list[EpisodeSpec]]] = {}
    for episode in left:
        at_reset, at_build = split_factors(episode.factors, batch.info.metadata)
        if at_reset and batch.resets_itself:
            at_build = dict(episode.factors)
        groups.setdefault(repr(sorted(at_build.items())), (at_build, []))[1].append(episode)
    yield from groups.values()


def _stream(job: Job, stretch: Stretch | None) -> Iterator[EpisodeSpec]:
    """The episodes of one env, one after another, as long as steps are left."""
    if stretch is None:
        return iter(())
    owed = stretch.owed
    return (
        replace(owed, episode_id=f"{owed.episode_id}-{k}", seed=seed_of(job, k, owed.episode_id))
        for k in itertools.count()
    )


def _checkpoint(policy: str) -> dict[str, Any] | None:
    folder = (
        None if policy.startswith(BASELINE) or kind_of(policy) is not Kind.CHECKPOINT else checkpoint_folder(policy)
    )
    if folder is None:
        return None
    from roadworthy.policy.checkpoint import load_checkpoint

    return {"path": str(folder), "sha256": load_checkpoint(folder).sha256}


def _words(problem: Exception) -> str:
    return str(problem) if isinstance(problem, RoadworthyError) else f"{type(problem).__name__}: {problem}"


def _details(problem: Exception) -> str:
    if isinstance(problem, JobFailure) and problem.details:
        return problem.details
    return "".join(traceback.format_exception(problem))
