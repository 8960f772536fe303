"""Scripted policies for tests of evaluation: good ones, and each kind of bad one."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.policy.protocol import Batch, PolicyInfo

COAST = (4, 6)  # no acceleration, straight on
SPEED_UP = (6, 6)
BRAKE = (0, 6)
BAD_ONE_IN = 8  # by its seed: episodes that bad policies can't stand


class Cruise:
    """Keeps its speed."""

    def start(self, info: PolicyInfo) -> None:
        assert info.env is not None
        self.env = info.env

    def act(self, batch: Batch) -> Any:
        return np.tile(np.float32(COAST), (len(batch), 1))

    def reset(self, rows: NDArray[np.bool_]) -> None:
        pass


class Coin(Cruise):
    """Succeeds, and quickly, where it starts at 9 m/s or more; elsewhere it stands until the time is up."""

    def start(self, info: PolicyInfo) -> None:
        super().start(info)
        ego = self.env.observation_layout["ego"]
        self._speed, self._scale = ego.column("speed"), next(f.scale for f in ego.features if f.name == "speed")
        self._is_quick = np.zeros(self.env.row_count, np.bool_)

    def act(self, batch: Batch) -> Any:
        begins = batch.steps == 0
        self._is_quick[begins] = batch.observations[begins, self._speed] * self._scale >= 9.0
        return np.where(self._is_quick[:, None], np.float32(SPEED_UP), np.float32(BRAKE))


class Wander(Cruise):
    """Draws actions by episode, agent and step, and has a memory of what it did."""

    def start(self, info: PolicyInfo) -> None:
        super().start(info)
        self._memory = np.zeros(self.env.row_count, np.int64)

    def act(self, batch: Batch) -> Any:
        agents = np.arange(len(batch)) % self.env.rows_per_world
        mixed = (
            (batch.seeds >> np.uint64(8)).astype(np.int64) + 7919 * agents + 104729 * batch.steps + 31 * self._memory
        )
        self._memory += np.where(batch.active, mixed % 5, 0)
        return np.stack([2 + mixed % 5, 4 + mixed // 7 % 5], axis=1).astype(np.float32)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        self._memory[rows] = 0


def bad_rows(active: NDArray[np.bool_], seeds: NDArray[np.uint64], steps: NDArray[np.int64]) -> bool:
    """Whether some active row is at the third step of an episode that a bad policy can't stand: one in eight."""
    return bool(np.any(active & (seeds % BAD_ONE_IN == 0) & (steps == 3)))


class Raises(Wander):
    """Raises in one episode of eight."""

    def act(self, batch: Batch) -> Any:
        if bad_rows(batch.active, batch.seeds, batch.steps):
            raise ValueError("this policy can't drive here")
        return super().act(batch)


class Hangs(Wander):
    """Never returns in one episode of eight."""

    def act(self, batch: Batch) -> Any:
        while bad_rows(batch.active, batch.seeds, batch.steps):
            time.sleep(0.05)
        return super().act(batch)


class Dies(Wander):
    """Is killed in one episode of eight, as by a machine without memory."""

    def act(self, batch: Batch) -> Any:
        if bad_rows(batch.active, batch.seeds, batch.steps):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().act(batch)


class Hoards(Wander):
    """Takes more and more memory in one episode of eight."""

    def act(self, batch: Batch) -> Any:
        self._hoard = []
        while bad_rows(batch.active, batch.seeds, batch.steps):
            self._hoard.append(np.ones(4_000_000))
            time.sleep(0.03)
        return super().act(batch)


class AlwaysHangs(Cruise):
    """Never returns."""

    def act(self, batch: Batch) -> Any:
        while True:
            time.sleep(0.05)


class AlwaysHoards(Cruise):
    """Takes more and more memory, and never returns."""

    def act(self, batch: Batch) -> Any:
        self._hoard = []
        while True:
            self._hoard.append(np.ones(4_000_000))
            time.sleep(0.03)


class AlwaysDies(Cruise):
    """Is killed at once."""

    def act(self, batch: Batch) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class AlwaysRaises(Cruise):
    """Can't be made to drive."""

    def start(self, info: PolicyInfo) -> None:
        raise ValueError("this policy drives nowhere")


class Slow(Wander):
    """Takes its time, so that it can be interrupted."""

    def act(self, batch: Batch) -> Any:
        time.sleep(0.002)
        return super().act(batch)
