"""Small environments, policies and metrics for tests of jobs, found by name as anybody's are."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from roadworthy.policy.protocol import Batch, PolicyInfo, PolicyTimeout

QUICK, SLOW = 8, 48  # steps of an episode that succeeds and of one that fails
BITS = 8  # of the number that a picture shows
SIDE = 64  # of a picture, in pixels


class Corridor(gymnasium.Env[Any, Any]):
    """Half of the episodes succeed, after few steps; the others take long. The seed alone decides."""

    metadata = {"render_modes": [], "task": "walk down a corridor", "embodiment": "feet"}  # noqa: RUF012
    observation_space = spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, chance: float = 0.5, breaks_at: str = "", step: int = 37) -> None:
        if breaks_at == "build":
            raise RuntimeError("no such corridor")
        self._chance, self._breaks_at, self._breaking_step = chance, breaks_at, step

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if self._breaks_at == "reset":
            raise RuntimeError("the door is locked")
        if self._breaks_at == "hang in reset" and seed is not None and seed % 3 == 0:
            time.sleep(3600.0)
        self._will_succeed = bool(self.np_random.random() < self._chance)
        self._place = float(self.np_random.normal())
        self._steps = 0
        return self._seen(), {"instruction": "walk"}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._breaking_step:
            if self._breaks_at == "step":
                raise RuntimeError("the floor gave way")
            if self._breaks_at == "process":
                os.kill(os.getpid(), signal.SIGKILL)
            if self._breaks_at == "hang":
                time.sleep(3600.0)
            if self._breaks_at == "deaf hang":  # as in a library that never comes back to Python
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
                time.sleep(3600.0)
        self._place += float(self.np_random.normal()) * 0.01 + 0.1 * int(action)
        is_over = self._steps >= (QUICK if self._will_succeed else SLOW)
        info = {"is_success": self._will_succeed} if is_over else {}
        return self._seen(), float(action), is_over and self._will_succeed, is_over and not self._will_succeed, info

    def _seen(self) -> Any:
        return np.array([np.clip(self._place, -10.0, 10.0), self._steps / SLOW], np.float32)


class Lamp(gymnasium.Env[Any, Any]):
    """Succeeds if the lamp is bright enough; brightness and color are factors that it is built with."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, brightness: float = 1.0, color: str = "white") -> None:
        self._brightness, self._color = brightness, color

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        factors = {"brightness": self._brightness, "color": self._color} | (options or {}).get("factors", {})
        self._needed = {"white": 0.2, "red": 0.6}[factors["color"]]
        self._shown = float(factors["brightness"])
        return np.array([self._shown], np.float32), {"factors": {**factors, "hidden": float(self.np_random.random())}}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        success = self._shown > self._needed
        return np.array([self._shown], np.float32), float(success), True, False, {"outcomes": {"success": success}}


class SwitchableLamp(Lamp):
    """The same, but reset takes the factors."""

    metadata = {"render_modes": [], "factors": ("brightness", "color")}  # noqa: RUF012


class DyingCinema(gymnasium.Env[Any, Any]):
    """Its renderer takes the process down, as OpenGL does without a display; which picture it dies at is a setting."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = spaces.Discrete(1000)
    action_space = spaces.Discrete(2)

    def __init__(self, dies_at: int = 1, render_mode: str | None = None) -> None:
        self._dies_at, self._pictures, self.render_mode = dies_at, 0, render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self._steps, 1.0, self._steps == 5, False, {"is_success": True}

    def render(self) -> Any:
        self._pictures += 1
        if self._pictures >= self._dies_at:
            os.abort()
        return number_picture(self._steps)


class Cinema(gymnasium.Env[Any, Any]):
    """Shows on two cameras, and by render(), which step it is: frames can be told apart after encoding."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 12, breaks_at: int = -1, side: int = SIDE, render_mode: str | None = None) -> None:
        self._length, self._breaks_at, self._side, self.render_mode = length, breaks_at, side, render_mode
        picture = spaces.Box(0, 255, (side, side, 3), np.uint8)
        cameras = spaces.Dict({"left": picture, "right": picture})
        self.observation_space = spaces.Dict({"cameras": cameras, "state": spaces.Discrete(1000)})

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        self._mark = int(self.np_random.integers(100))
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._breaks_at:
            raise RuntimeError("the film tore")
        is_over = self._steps >= self._length
        return self._seen(), 0.0, is_over, False, {"outcomes": {"success": self._mark % 2}} if is_over else {}

    def render(self) -> Any:
        return number_picture(self._steps, self._side)

    def _seen(self) -> Any:
        left = number_picture(self._steps, self._side)
        return {"cameras": {"left": left, "right": 255 - left}, "state": self._steps}


def number_picture(number: int, side: int = SIDE) -> Any:
    """A picture of a number: stripes, white where its bits are set."""
    picture = np.zeros((side, side, 3), np.uint8)
    width = side // BITS
    for bit in range(BITS):
        if number >> bit & 1:
            picture[:, bit * width : (bit + 1) * width] = 255
    return picture


def number_in(picture: Any) -> int:
    """The number that a picture shows."""
    width = picture.shape[1] // BITS
    middle = picture[picture.shape[0] // 2, width // 2 :: width].mean(axis=1)[:BITS]
    return int(sum(int(value > 127) << bit for bit, value in enumerate(middle)))


def corridors(num_envs: int, mode: str, env: str = "Corridor", **arguments: Any) -> VectorEnv[Any, Any, Any]:
    """A vector env with this autoreset mode."""
    make = partial(globals()[env], **arguments)
    return SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode[mode])


def undeclared(num_envs: int) -> VectorEnv[Any, Any, Any]:
    """A vector env that does not say how it resets."""
    envs = corridors(num_envs, "NEXT_STEP")
    envs.metadata = {}
    return envs


def three() -> VectorEnv[Any, Any, Any]:
    """A vector env of a number that nobody can choose."""
    return corridors(3, "NEXT_STEP")


class Remembering:
    """A policy whose action depends on everything that it saw in the episode; it can raise at a given call."""

    def __init__(self, breaks_at: int = -1) -> None:
        self._calls, self._breaks_at = 0, breaks_at

    def start(self, info: PolicyInfo) -> None:
        self._seen = np.zeros(info.row_count)

    def reset(self, rows: Any) -> None:
        self._seen[rows] = 0.0

    def act(self, batch: Batch) -> Any:
        self._calls += 1
        if self._calls == self._breaks_at:
            raise RuntimeError("the policy lost its mind")
        assert batch.instructions is not None
        firsts = batch.seeds % 7 + [len(text or "") for text in batch.instructions]
        self._seen[batch.rows] += np.where(batch.steps == 0, firsts, 0) + np.abs(batch.observations).sum(axis=1)
        return (self._seen[batch.rows] * 10.0).astype(np.int64) % 3


class Forgetful(Remembering):
    """Can't be reached when its second episode begins."""

    def __init__(self) -> None:
        super().__init__()
        self._resets = 0

    def reset(self, rows: Any) -> None:
        self._resets += 1
        if self._resets == 2:
            raise PolicyTimeout("nobody answers")
        super().reset(rows)


def half_of_the_steps(ended: Any) -> float:
    """A metric."""
    return ended.steps / 2.0


def broken_metric(ended: Any) -> float:
    """A metric that raises."""
    raise ZeroDivisionError("nothing to divide by")
