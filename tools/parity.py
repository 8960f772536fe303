"""Compare the simulator on both devices: `python -m tools.parity PACK` on a machine with a GPU.

From the CPU's state, one step on each device has to give floats equal to 1e-5 (relative, or absolute below 1) and the
same flags. Rows that differ are counted, since a quantity may lie within rounding of its threshold; more than one in
10,000 is a failure. Then both run by themselves, and the script prints how far they diverge. On the GPU, trials and
slots have to be equal bit for bit. With NUMBA_ENABLE_CUDASIM=1 numba-cuda's simulator replaces the GPU, which takes a
second per step of a tiny world.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.sim.config import (
    ControlConfig,
    DisturbConfig,
    EpisodeConfig,
    Mode,
    ObserveConfig,
    OpenConfig,
    Others,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import LENGTH, X, Y

TOLERANCE = 1e-5
FLAGS = ("active", "trial_ended", "episode_ended", "timed_out")
_DISTURBED = DisturbConfig(clean=False, blind_rate=0.2, phantom_brake_rate=0.2, dropout=0.1, action_noise=0.1)


def cases(trials: int, steps: int, agents: int, observe: ObserveConfig) -> dict[str, SimConfig]:
    """Return the cases: recorded and open worlds, with and without reactive traffic and disturbances."""
    episode = EpisodeConfig(trials=trials, trial_steps=steps)
    recorded = SimConfig(init_steps=10, episode=episode, control=ControlConfig(rows=agents), observe=observe)
    opened = SimConfig(mode=Mode.OPEN, episode=episode, open=OpenConfig(agents=agents, traffic=agents), observe=observe)
    return {
        "replay": recorded,
        "replay with idm": replace(recorded, control=ControlConfig(rows=agents, others=Others.IDM)),
        "open": opened,
        "open, disturbed": replace(opened, disturb=_DISTURBED),
    }


@dataclass
class Parity:
    """The result of the comparison of two envs."""

    steps: int = 0
    rows: int = 0
    worst: float = 0.0  # the largest difference of a float, relative above 1, absolute below 1
    differing_rows: int = 0  # rows with a float outside of the tolerance
    differing_flags: int = 0

    @property
    def share(self) -> float:
        """The share of rows with any difference."""
        return (self.differing_rows + self.differing_flags) / max(self.rows, 1)


def host(array: Any) -> NDArray[Any]:
    """Return a copy on the host."""
    return np.array(array if isinstance(array, np.ndarray) else array.cpu().numpy())


def random_actions(env: DriveEnv, count: int, seed: int) -> NDArray[np.float32]:
    """Return random actions, (count, rows, 2), each repeated for some steps so that agents move."""
    assert env.action_choices is not None
    drawn = np.random.default_rng(seed).integers(0, env.action_choices, (count // 5 + 1, env.row_count, 2))
    return np.repeat(drawn, 5, axis=0)[:count].astype(np.float32)


def step_by_step(cpu: DriveEnv, gpu: DriveEnv, steps: int) -> Parity:
    """Run every step on both devices from the CPU's state."""
    found = Parity()
    cpu.reset(seed=5)
    gpu.reset(seed=5)
    for actions in random_actions(cpu, steps, 7):
        gpu.restore(cpu.snapshot())
        cpu.step(actions)
        gpu.step(actions)
        _compare(cpu, gpu, found)
    return found


def _compare(cpu: DriveEnv, gpu: DriveEnv, found: Parity) -> None:
    found.steps += 1
    found.rows += cpu.row_count
    is_other = np.zeros(cpu.row_count, np.bool_)
    for flag in FLAGS:
        is_other |= host(getattr(cpu.signals, flag)) != host(getattr(gpu.signals, flag))
    found.differing_flags += int(is_other.sum())
    for mine, other in ((cpu.observations, gpu.observations), (cpu.rewards, gpu.rewards)):
        a, b = host(mine).astype(np.float64), host(other).astype(np.float64)
        off = (np.abs(a - b) / np.maximum(np.abs(a), 1.0)).reshape(len(a), -1).max(axis=1)[~is_other]
        found.worst = max(found.worst, float(off.max(initial=0.0)))
        found.differing_rows += int((off > TOLERANCE).sum())


def apart(cpu: DriveEnv, gpu: DriveEnv, steps: int) -> dict[str, float]:
    """Return the distances of agents between both devices in m, if both run independently."""
    cpu.reset(seed=5)
    gpu.reset(seed=5)
    for actions in random_actions(cpu, steps, 7):
        cpu.step(actions)
        gpu.step(actions)
    a, b = cpu.agents, host(gpu.agents)[:, :, : cpu.agents.shape[2]]
    off = np.hypot(a[:, X] - b[:, X], a[:, Y] - b[:, Y])[a[:, LENGTH] > 0]
    return {f"p{q}": float(np.percentile(off, q)) for q in (50, 90, 99, 100)}


def are_trials_equal(env: DriveEnv, steps: int, trials: int) -> bool:
    """Return whether the observations of all trials are bit-identical under equal actions."""
    actions, seen = random_actions(env, steps, 3), []
    start = host(env.reset(seed=9))
    for _ in range(trials):
        trial = [start]
        for one in actions:
            env.step(one)
            trial.append(host(env.observations))
        seen.append(np.stack(trial[:-1]))  # the last observation belongs to the next trial or episode
    return all(np.array_equal(seen[0], other) for other in seen[1:])


def are_slots_equal(alone: DriveEnv, among_others: DriveEnv, slot: int, steps: int) -> bool:
    """Return whether an episode is bit-identical alone and in a slot among others."""
    rows = slice(slot * among_others.rows_per_world, (slot + 1) * among_others.rows_per_world)
    for env, world in ((alone, 0), (among_others, slot)):
        env.reset(seed=1)
        env.assign(world, 0, 77, now=True)
    actions, is_equal = random_actions(alone, steps, 3), True
    everyone = random_actions(among_others, steps, 4)
    everyone[:, rows] = actions
    for one, many in zip(actions, everyone, strict=True):
        alone.step(one)
        among_others.step(many)
        is_equal &= np.array_equal(host(alone.observations), host(among_others.observations)[rows])
    return is_equal


def main() -> None:
    """Compare all cases over whole episodes, print a line for each, and exit with 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack")
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--steps", type=int, default=91)
    parser.add_argument("--scenarios", type=int, default=8)
    parser.add_argument("--case", action="append")
    asked = parser.parse_args()
    numbers, is_same = list(range(asked.scenarios)), True
    for name, config in cases(asked.trials, asked.steps, asked.agents, ObserveConfig()).items():
        if asked.case and name not in asked.case:
            continue
        make = {
            device: lambda worlds, device=device, config=config: DriveEnv(
                asked.pack, worlds, config, device=device, scenarios=numbers
            )
            for device in ("cpu", "cuda")
        }
        cpu, gpu = make["cpu"](asked.worlds), make["cuda"](asked.worlds)
        steps = asked.trials * asked.steps
        parity = step_by_step(cpu, gpu, steps)
        one = {
            "case": name,
            "steps": parity.steps,
            "rows": parity.rows,
            "worst": parity.worst,
            "rows beyond 1e-5": parity.differing_rows,
            "rows with another flag": parity.differing_flags,
            "apart after a trial, m": apart(cpu, gpu, asked.steps - 1),
            "trials equal": are_trials_equal(gpu, asked.steps, asked.trials),
            "slots equal": are_slots_equal(make["cuda"](1), gpu, asked.worlds - 1, asked.steps),
        }
        is_same &= bool(one["trials equal"] and one["slots equal"] and parity.share <= 1e-4)
        print(json.dumps(one), flush=True)
    raise SystemExit(0 if is_same else 1)


if __name__ == "__main__":
    main()
