"""The loop that steps Gymnasium environments until their episodes have ended.

No episode counts because it ended first: each episode that starts runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import OnResult, RunError
from roadworthy.evaluation.runners.gym.batch import Begun, Broken, EnvBatch
from roadworthy.evaluation.runners.gym.in_flight import CUT_OFF, Failure, InFlight
from roadworthy.evaluation.runners.gym.outcomes import Metric, measured
from roadworthy.evaluation.runners.gym.plan import seed_of
from roadworthy.evaluation.runners.gym.spec import GymSpec
from roadworthy.evaluation.runners.gym.stretch import Stretch
from roadworthy.evaluation.runners.gym.videos import GymRecorder
from roadworthy.policy import protocol
from roadworthy.policy.protocol import Batch, Policy, PolicyTimeout, stack

TakeSpec = Callable[[int], EpisodeSpec | None]  # the next episode of an environment


class GymLoop:
    """Runs episodes, one after another in each environment."""

    def __init__(
        self,
        spec: GymSpec,
        batch: EnvBatch,
        policy: Policy,
        recorder: GymRecorder | None,
        metrics: Mapping[str, Metric],
        on_result: OnResult,
        process: int = 0,
        step: int = 0,
    ) -> None:
        self._spec, self._job, self._process = spec, spec.job, process
        self._batch, self._policy, self._recorder = batch, policy, recorder
        self._metrics, self._on_result = metrics, on_result
        self._in_flight: dict[int, InFlight] = {}
        self._stretches: dict[int, Stretch] = {}  # by environment, where the run is counted in steps
        self._failures_in_a_row = 0
        self.step = step  # of the whole batch

    def run(self, take: TakeSpec) -> None:
        """Run episodes until there are none."""
        self._begin_all(take)
        while self._in_flight:
            self._advance(take)
            if not self._batch.resets_itself:
                self._begin_all(take)

    def run_steps(self, take: TakeSpec, steps: int) -> None:
        """Make a number of steps in every environment; episodes that run then are cut off."""
        for env in range(self._batch.count):
            stretch = take(env)
            if stretch is not None:
                self._stretches[env] = Stretch(stretch)
        try:
            self._begin_all(self._next_attempt)
            for _ in range(steps):
                self._advance(self._next_attempt)
                if not self._batch.resets_itself:
                    self._begin_all(self._next_attempt)
        except RunError:
            self._end_stretches()
            raise
        self._end_stretches()

    def _end_stretches(self) -> None:
        for episode in list(self._in_flight.values()):
            self._end(episode, CUT_OFF, is_counted=False)
        for stretch in self._stretches.values():
            self._on_result(stretch.result(self._job.name, self._process))

    def _next_attempt(self, env: int) -> EpisodeSpec | None:
        """Return the next episode in the stretch of an environment."""
        if env not in self._stretches:
            return None
        stretch, number = self._stretches[env].spec, self._stretches[env].begun
        self._stretches[env].begun += 1
        seed = seed_of(self._job, number, stretch.episode_id)
        return replace(stretch, episode_id=f"{stretch.episode_id}-{number}", seed=seed)

    def _advance(self, take: TakeSpec) -> None:
        """Make one step in every environment with an episode."""
        envs = sorted(self._in_flight)
        changes = self._batch.step(self._act(envs))
        self.step += 1
        for env in envs:
            change = changes.get(env)
            if change is not None and change.moved is not None and env in self._in_flight:
                self._in_flight[env].add(change.moved)
        if self._recorder is not None:
            self._recorder.follow(
                [self._in_flight[env] for env in envs if env in self._in_flight and changes[env].moved]
            )
        for env, change in changes.items():
            episode = self._in_flight.get(env)
            if episode is not None and change.broken is not None:
                self._end(episode, change.broken)
            elif episode is not None and change.moved is not None and episode.is_over(self._job.max_steps):
                self._end(episode)
            following = take(env) if change.begun is not None else None
            if change.begun is not None and following is not None:
                self._batch.watch.begin(env, following, self.step)
                self._start(env, following, change.begun)

    def _act(self, envs: list[int]) -> Mapping[int, Any]:
        """Return the actions of environments; the episodes fail for which the policy does not answer."""
        while envs:
            try:
                with self._batch.watch.acting():
                    actions = self._policy.act(self._policy_batch(envs))
            except PolicyTimeout as error:
                lost = [env for env in envs if error.rows is None or env in error.rows]
                for env in lost:
                    self._end(self._in_flight[env], str(error), is_counted=env == lost[-1])  # one failure of the policy
                envs = [env for env in envs if env not in lost]
                continue
            if len(actions) != len(envs):
                raise RunError(f"the policy gave {len(actions)} actions for {len(envs)} envs, expected one for each")
            return dict(zip(envs, actions, strict=True))
        return {}

    def _policy_batch(self, envs: list[int]) -> Batch:
        """Return the batch of these environments."""
        episodes = [self._in_flight[env] for env in envs]
        infos = [episode.begun.info if episode.last is None else episode.last.info for episode in episodes]
        return Batch(
            stack(self._batch.info.observation_space, [episode.observation for episode in episodes]),
            np.array([bool(info.get("active", True)) for info in infos]),
            np.array(envs),
            np.array([episode.spec.seed for episode in episodes], np.uint64),
            np.array([len(episode.rewards) for episode in episodes]),
            [episode.instruction for episode in episodes],
        )

    def _begin_all(self, take: TakeSpec) -> None:
        """Start the next episode of every free environment; an environment that can't start it has failed in it."""
        while True:
            due: dict[int, EpisodeSpec] = {}
            for env in range(self._batch.count):
                spec = take(env) if env not in self._in_flight else None
                if spec is not None:
                    due[env] = spec
            if not due:
                return
            for env, spec in due.items():
                self._batch.watch.begin(env, spec, self.step)
            for env, begun in self._batch.begin(due).items():
                if isinstance(begun, Broken):
                    episode = InFlight(due[env], env, self.step, self._job.instruction, Begun(None, {}))
                    self._batch.watch.end(env)
                    self._finish(episode, begun)
                else:
                    self._start(env, due[env], begun)
            if self._batch.resets_itself:
                return  # another reset would cut off the episodes that have started

    def _start(self, env: int, spec: EpisodeSpec, begun: Begun) -> None:
        given = begun.info.get("instruction")
        instruction = self._job.instruction or (given if isinstance(given, str) else None)
        episode = self._in_flight[env] = InFlight(spec, env, self.step, instruction, begun)
        try:
            protocol.reset(self._policy, np.arange(self._batch.count) == env)
        except PolicyTimeout as error:
            self._end(episode, str(error))
            return
        if self._recorder is not None:
            self._recorder.begin(episode)
            self._recorder.follow([episode])

    def _end(self, episode: InFlight, failure: Failure | None = None, *, is_counted: bool = True) -> None:
        """End an episode; failure: why it could not be finished."""
        del self._in_flight[episode.env]
        self._batch.watch.end(episode.env)
        self._finish(episode, failure, is_counted=is_counted)

    def _finish(self, episode: InFlight, failure: Failure | None, *, is_counted: bool = True) -> None:
        """Hand over the result of an episode, or add it to its stretch."""
        outcomes, errors = ({}, {}) if failure is not None else measured(episode.ended(), self._metrics)
        paths: dict[str, str] = {}
        if self._recorder is not None:
            recording = self._recorder.end(episode, outcomes)
            paths = {f"video_{camera}": path for camera, path in recording.paths.items()}
            errors |= {f"video_{camera}": error for camera, error in recording.errors.items()}
        if episode.env in self._stretches:
            self._stretches[episode.env].add(episode, outcomes, None if failure == CUT_OFF else failure, paths, errors)
        else:
            self._on_result(episode.result(self._spec, outcomes, failure, paths, errors, self._process))
        self._failures_in_a_row = 0 if failure is None else self._failures_in_a_row + is_counted
        if self._failures_in_a_row >= self._job.failures:
            assert failure is not None
            error, details = (failure.error, failure.traceback) if isinstance(failure, Broken) else (failure, "")
            raise RunError(f"{self._failures_in_a_row} episodes in a row failed, the last with {error}", details)
