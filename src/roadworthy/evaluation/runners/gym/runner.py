"""Run episodes in Gymnasium environments: build them, and build new ones where a rebuild or a factor requires it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from roadworthy.errors import UsageError, summary_of
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import NextSpec, OnResult
from roadworthy.evaluation.runners.gym.batch import EnvBatch, SingleEnvs, split_factors
from roadworthy.evaluation.runners.gym.environments import open_envs, unprefer_egl
from roadworthy.evaluation.runners.gym.loop import GymLoop
from roadworthy.evaluation.runners.gym.outcomes import load_metrics
from roadworthy.evaluation.runners.gym.spec import GymSpec
from roadworthy.evaluation.runners.gym.videos import GymRecorder
from roadworthy.evaluation.watch import Watch
from roadworthy.policy import protocol
from roadworthy.policy.load import load_policy
from roadworthy.policy.per_world import start_in_gymnasium
from roadworthy.record.artifacts import add_artifact


class GymRunner:
    """Runs episodes in one batch of environments after the other: others are built for each rebuild.

    They are also built again for factors that an environment can't be given at its reset.
    """

    def __init__(self, spec: GymSpec, watch: Watch, process: int) -> None:
        self._spec, self._job, self._watch, self._process = spec, spec.job, watch, process
        self._render_fault = spec.render_fault
        self._metrics = load_metrics(self._job.metrics)
        self._recorder = GymRecorder(spec) if self._job.videos is not None else None
        self._batch: EnvBatch | None = None
        self._built_for: tuple[int, dict[str, Any]] | None = None
        self._step = 0  # steps of the batch
        self._open()

    def run(self, next_spec: NextSpec, on_result: OnResult) -> None:
        """Run episodes until there are none."""
        if self._batch is None:
            self._open()
        specs = _Peekable(next_spec)
        try:
            while (first := next(filter(None, map(specs.peek, self._shares())), None)) is not None:
                self._run_build(specs, first, on_result)
        except BaseException:
            self.close()  # their state is unknown
            raise

    def close(self) -> None:
        """Close the environments. Errors change no result, and must not hide an earlier error."""
        batch, self._batch, self._built_for = self._batch, None, None
        if batch is None:
            return
        if self._recorder is not None:
            self._recorder.close()
        try:
            protocol.close(self._policy)
            with self._drawing():  # a renderer is closed, too
                batch.close()
        except Exception as error:
            add_artifact(self._spec.folder, None, "closing of the envs", error=f"{type(error).__name__}: {error}")

    def _shares(self) -> list[tuple[int, int] | None]:
        """Return the share of each environment; None where any environment runs any episode."""
        has_shares = self._job.steps is not None or (self._batch is not None and self._batch.resets_itself)
        return [(env, self._job.envs) if has_shares else None for env in range(self._job.envs)]

    def _build_of(self, episode: EpisodeSpec) -> tuple[int, dict[str, Any]]:
        """Return what the environments of an episode are built for: its rebuild, and factors that reset can't take."""
        batch = self._batch
        if batch is None or isinstance(batch, SingleEnvs):
            return episode.replicate, {}
        at_reset, at_build = split_factors(episode.factors, batch.info.metadata)
        return episode.replicate, dict(episode.factors) if at_reset and batch.resets_itself else at_build

    def _run_build(self, specs: _Peekable, first: EpisodeSpec, on_result: OnResult) -> None:
        """Run the episodes that the same environments can run."""
        build, job = self._build_of(first), self._job
        if self._built_for != build and (self._built_for is not None or build[1]):
            self.close()
            self._open(build[1])
        if self._built_for != build:
            self._built_for, self._step = build, 0
        batch = self._batch
        assert batch is not None
        shares = self._shares()

        def take(env: int) -> EpisodeSpec | None:
            """Return the next episode of an environment, if these environments can run it."""
            episode = specs.peek(shares[env])
            return specs.take(shares[env]) if episode is not None and self._build_of(episode) == build else None

        loop = GymLoop(
            self._spec, batch, self._policy, self._recorder, self._metrics, on_result, self._process, self._step
        )
        if job.steps is not None:
            loop.run_steps(take, job.steps)
        else:
            loop.run(take)
        self._step = loop.step

    def _open(self, factors: Mapping[str, Any] | None = None) -> None:
        """Build the environments, and load the policy for them."""
        batch = self._batch = self._build(factors)
        if self._job.max_steps is not None and batch.resets_itself:
            raise UsageError(
                f"max_steps is {self._job.max_steps}, but this vector environment resets itself, so its episodes can't "
                "be ended from outside; build it with a time limit of its own"
            )
        self._spec.describe(batch.info.metadata)
        batch.watch = self._watch
        self._policy = start_in_gymnasium(partial(load_policy, self._job.policy, self._job.policy_config), batch.info)
        if self._recorder is not None:
            self._recorder.watch(batch, self._render_fault)

    def _build(self, factors: Mapping[str, Any] | None) -> EnvBatch:
        """Build the environments; if that works only without a renderer, videos of render() are missing."""
        try:
            with self._drawing():
                return open_envs(self._job, factors, renders=self._render_fault is None)
        except Exception as error:
            if self._recorder is None or self._render_fault is not None:
                raise
            unprefer_egl()
            try:
                batch = open_envs(self._job, factors, renders=False)
            except Exception:
                raise error from None
            self._render_fault = f"the envs can't be built with a renderer: {summary_of(error)}"
            return batch

    def _drawing(self) -> AbstractContextManager[None]:
        """Note that a renderer may work, where this job has one."""
        has_renderer = self._render_fault is None and self._job.videos is not None and self._job.videos.has_render
        return self._watch.rendering() if has_renderer else nullcontext()


class _Peekable:
    """Episodes of an engine, of which the next one can be seen before it is taken."""

    def __init__(self, next_spec: NextSpec) -> None:
        self._next = next_spec
        self._seen: dict[tuple[int, int] | None, EpisodeSpec] = {}  # by share

    def peek(self, share: tuple[int, int] | None) -> EpisodeSpec | None:
        """Return the next episode of a share."""
        if share not in self._seen and (episode := self._next(share)) is not None:
            self._seen[share] = episode
        return self._seen.get(share)

    def take(self, share: tuple[int, int] | None) -> EpisodeSpec:
        """Take the episode that was seen."""
        return self._seen.pop(share)
