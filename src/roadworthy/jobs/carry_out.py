"""Carrying out a job's episodes in a batch of envs: the one loop for every kind of env.

Nothing is counted because it ended first: the episodes that are owed are given to envs, and all of them are played to
their ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.jobs.batch import Begun, Broken, EnvBatch
from roadworthy.jobs.episode import Underway
from roadworthy.policy import protocol
from roadworthy.policy.protocol import Batch, Policy, PolicyTimeout, stack

CUT_OFF = "cut off: the job's steps were made"

Report = Callable[[Underway, Broken | str | None], None]  # an episode is over; why, if it could not be finished


class JobFailure(RoadworthyError):
    """A job can't be carried out any further; what has ended before stays."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details  # a traceback


class Camera(Protocol):
    """Whoever films episodes."""

    def begin(self, episode: Underway) -> None:
        """An episode has begun."""

    def follow(self, episodes: Sequence[Underway]) -> None:
        """These episodes have begun or made a step."""


class Shares:
    """Which env plays which of the episodes that are owed.

    Any env takes the next one if it can be told what to play; if not, episode k belongs to env k modulo their number.
    """

    def __init__(self, owed: Sequence[EpisodeSpec], batch: EnvBatch) -> None:
        shared = deque(owed)
        self._queues = [deque(owed[k :: batch.count]) if batch.resets_itself else shared for k in range(batch.count)]

    def next(self, env: int) -> EpisodeSpec | None:
        """The next episode of an env, None if nothing is left for it."""
        return self._queues[env].popleft() if self._queues[env] else None

    @property
    def is_empty(self) -> bool:
        return not any(self._queues)


class Streams:
    """Episodes without end, of a source for each env."""

    is_empty = False

    def __init__(self, sources: Sequence[Iterator[EpisodeSpec]]) -> None:
        self._sources = sources

    def next(self, env: int) -> EpisodeSpec | None:
        return next(self._sources[env], None)


class Player:
    """Plays episodes, one after another in each env."""

    def __init__(
        self,
        batch: EnvBatch,
        policy: Policy,
        shares: Shares | Streams,
        report: Report,
        camera: Camera | None = None,
        *,
        instruction: str | None = None,
        max_steps: int | None = None,
        failures: int = 3,
    ) -> None:
        if max_steps is not None and batch.resets_itself:
            raise UsageError(
                f"max_steps is {max_steps}, but this vector env resets itself, so nobody else can end its episodes; "
                "build it with a time limit of its own"
            )
        self._batch, self._policy, self._report, self._camera = batch, policy, report, camera
        self._instruction, self._max_steps, self._most_failures = instruction, max_steps, failures
        self._shares = shares
        self._underway: dict[int, Underway] = {}
        self._failures_in_a_row = 0
        self.step = 0  # made so far, of the whole batch

    def play(self) -> None:
        """Play everything that is owed."""
        self._begin_all()
        while self._underway or not self._shares.is_empty:
            self._advance()
            if not self._batch.resets_itself:
                self._begin_all()

    def play_steps(self, steps: int) -> None:
        """Play so many steps in every env; what is under way then is cut off."""
        self._begin_all()
        for _ in range(steps):
            self._advance()
            if not self._batch.resets_itself:
                self._begin_all()
        for episode in list(self._underway.values()):
            self._end(episode, CUT_OFF, is_counted=False)

    def give_up(self, reason: Broken | str) -> None:
        """Report all that is under way as failed."""
        for episode in list(self._underway.values()):
            self._end(episode, reason, is_counted=False)

    def _advance(self) -> None:
        """One step of every env that plays."""
        envs = sorted(self._underway)
        actions = self._act(envs)
        changes = self._batch.step(actions)
        self.step += 1
        for env in envs:
            moved = changes[env].moved if env in changes else None
            if moved is not None and env in self._underway:
                self._underway[env].add(moved)
        if self._camera is not None:
            self._camera.follow([self._underway[env] for env in envs if env in self._underway and changes[env].moved])
        for env, change in changes.items():
            episode = self._underway.get(env)
            if episode is not None and change.broken is not None:
                self._end(episode, change.broken)
            elif episode is not None and change.moved is not None and episode.is_over(self._max_steps):
                self._end(episode, None)
            following = self._shares.next(env) if change.begun is not None else None
            if change.begun is not None and following is not None:
                self._batch.watch.begin(env, following, self.step)
                self._start(env, following, change.begun)

    def _act(self, envs: list[int]) -> Mapping[int, Any]:
        """Actions of all envs that play; episodes whose policy does not answer fail, all of them by one failure."""
        while envs:
            try:
                actions = self._policy.act(self._policy_batch(envs))
            except PolicyTimeout as error:
                lost = [env for env in envs if error.rows is None or env in error.rows]
                for env in lost:
                    self._end(self._underway[env], str(error), is_counted=env == lost[-1])
                envs = [env for env in envs if env not in lost]
                continue
            if len(actions) != len(envs):
                raise UsageError(f"the policy gave {len(actions)} actions for {len(envs)} envs, expected one for each")
            return dict(zip(envs, actions, strict=True))
        return {}

    def _policy_batch(self, envs: list[int]) -> Batch:
        """Return what the policy is given of these envs."""
        episodes = [self._underway[env] for env in envs]
        infos = [episode.begun.info if episode.last is None else episode.last.info for episode in episodes]
        return Batch(
            stack(self._batch.info.observation_space, [episode.observation for episode in episodes]),
            np.array([bool(info.get("active", True)) for info in infos]),
            np.array(envs),
            np.array([episode.owed.seed for episode in episodes], np.uint64),
            np.array([len(episode.rewards) for episode in episodes]),
            [episode.instruction for episode in episodes],
        )

    def _begin_all(self) -> None:
        """Give every free env its next episode; an env that can't begin one has failed in it."""
        while True:
            due: dict[int, EpisodeSpec] = {}
            for env in range(self._batch.count):
                owed = self._shares.next(env) if env not in self._underway else None
                if owed is not None:
                    due[env] = owed
            if not due:
                return
            for env, owed in due.items():
                self._batch.watch.begin(env, owed, self.step)
            for env, begun in self._batch.begin(due).items():
                if isinstance(begun, Broken):
                    self._batch.watch.end(env)
                    self._fail(Underway(due[env], env, self.step, self._instruction, Begun(None, {})), begun)
                else:
                    self._start(env, due[env], begun)
            if self._batch.resets_itself:
                return  # to begin once more would cut short what has begun

    def _start(self, env: int, owed: EpisodeSpec, begun: Begun) -> None:
        told = begun.info.get("instruction")
        instruction = self._instruction or (told if isinstance(told, str) else None)
        episode = Underway(owed, env, self.step, instruction, begun)
        self._underway[env] = episode
        try:
            protocol.reset(self._policy, np.arange(self._batch.count) == env)
        except PolicyTimeout as error:
            self._end(episode, str(error))
            return
        if self._camera is not None:
            self._camera.begin(episode)
            self._camera.follow([episode])

    def _end(self, episode: Underway, reason: Broken | str | None, is_counted: bool = True) -> None:
        del self._underway[episode.env]
        self._batch.watch.end(episode.env)
        if reason is None:
            self._failures_in_a_row = 0
            self._report(episode, None)
        elif is_counted:
            self._fail(episode, reason)
        else:
            self._report(episode, reason)

    def _fail(self, episode: Underway, reason: Broken | str) -> None:
        self._report(episode, reason)
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._most_failures:
            words = reason.error if isinstance(reason, Broken) else reason
            details = reason.traceback if isinstance(reason, Broken) else ""
            raise JobFailure(f"{self._failures_in_a_row} episodes in a row failed, the last with {words}", details)
