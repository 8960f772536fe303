"""How fast an env is on its device: steps, stages, memory, and how near that is to what the memory allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from roadworthy.sim.backends import cpu
from roadworthy.sim.env import DriveEnv

_ACTIONS = 16  # different ones, taken in turn
_COPIED_BYTES = 2**28


@dataclass(frozen=True)
class Speed:
    """What a run of steps came to. Rates count active agents only.

    A step's seconds are the median on the CPU and the mean on a GPU, the starts of episodes included; a stage's are the
    mean. On a GPU each stage is timed as a graph of its own, over and over from the same state.
    """

    device: str
    worlds: int
    rows: int
    active_share: float
    step_s: float
    stages_s: dict[str, float]
    memory: dict[str, int]  # DriveEnv.memory
    written_bytes: int  # observations that a step writes
    copy_bytes_s: float  # what the device copies in a second, reading and writing counted

    @property
    def agent_steps_s(self) -> float:
        return self.rows * self.active_share / self.step_s

    @property
    def written_bytes_s(self) -> float:
        return self.written_bytes / self.step_s


def measure(env: DriveEnv, steps: int, report: Callable[[int, int], None] = lambda done, total: None) -> Speed:
    """Run an env with random actions and time it, as a whole and stage by stage. It goes on from a reset."""
    is_gpu = env.device != "cpu"
    wait = _waiting(is_gpu)
    env.reset(seed=0)
    actions = _random_actions(env, is_gpu)
    for k in range(3):  # kernels are compiled, loaded and captured
        env.step(actions[k])
    wait()
    seconds, active = [], 0.0
    for k in range(steps):
        began = time.perf_counter()
        env.step(actions[k % _ACTIONS])
        if not is_gpu or k % 50 == 49:
            wait()
        seconds.append(time.perf_counter() - began)
        if k % 10 == 0:
            active += float(env.signals.active.sum()) / env.row_count
        report(k + 1, steps)
    wait()
    step_s = _time_of(lambda: env.step(actions[0]), steps, wait) if is_gpu else median(seconds)
    stages: Sequence[str] = env.batch.stage_names if is_gpu else list(cpu.STAGES)
    stages_s = {}
    for name in stages:
        run = _captured(partial(env.run_stages, [name])) if is_gpu else partial(env.run_stages, cpu.STAGES[name])
        stages_s[name] = _time_of(run, max(steps // 10, 3), wait)
    share = active / len(range(0, steps, 10))
    return Speed(
        device=env.device,
        worlds=env.world_count,
        rows=env.row_count,
        active_share=share,
        step_s=step_s,
        stages_s=stages_s,
        memory=env.memory(),
        written_bytes=int(env.row_count * share * env.observation_layout.size * 4),
        copy_bytes_s=_copy_speed(is_gpu),
    )


def _random_actions(env: DriveEnv, is_gpu: bool) -> list[Any]:
    choices = env.action_choices
    generator, shape = np.random.default_rng(0), (_ACTIONS, env.row_count, 2)
    drawn = generator.uniform(-1, 1, shape) if choices is None else generator.integers(0, choices, shape)
    actions = drawn.astype(np.float32)
    if not is_gpu:
        return list(actions)
    import torch

    return list(torch.from_numpy(actions).to(env.observations.device))


def _waiting(is_gpu: bool) -> Callable[[], None]:
    """What waits until the device has done everything."""
    if not is_gpu:
        return lambda: None
    import torch

    return torch.cuda.synchronize if torch.cuda.is_available() else lambda: None


def _captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """The same as a graph, without the time that launching from Python takes; where there is a GPU to capture it."""
    import torch

    if not torch.cuda.is_available():
        return call
    call()  # what is compiled and loaded on the first call can't be captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def _time_of(call: Callable[[], Any], times: int, wait: Callable[[], None]) -> float:
    """Seconds of one of many calls in a row."""
    call()
    wait()
    began = time.perf_counter()
    for _ in range(times):
        call()
    wait()
    return (time.perf_counter() - began) / times


def _copy_speed(is_gpu: bool) -> float:
    if is_gpu:
        import torch

        source = torch.zeros(_COPIED_BYTES, dtype=torch.uint8, device="cuda" if torch.cuda.is_available() else "cpu")
        target = torch.empty_like(source)
        return 2 * _COPIED_BYTES / _time_of(lambda: target.copy_(source), 10, _waiting(True))
    there, here = np.zeros(_COPIED_BYTES, np.uint8), np.ones(_COPIED_BYTES, np.uint8)
    return 2 * _COPIED_BYTES / _time_of(lambda: np.copyto(here, there), 3, lambda: None)
