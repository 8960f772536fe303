"""The scores of scripted experts through the action space: in recordings, in open worlds, and with hidden gains."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Measurements, Sizes
from roadworthy.policy.experts import DriveExpert, LogExpert
from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.generate.pack import generate_pack
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import EpisodeConfig, HiddenConfig, Mode, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import SOURCE, X, Y

OPEN = SimConfig(mode=Mode.OPEN, episode=EpisodeConfig(1, 400))
HIDDEN = HiddenConfig(steering_gain=(0.6, 1.4), brake_gain=(0.5, 1.0))
SETTLING_S = (0.8, 3.0)  # settling times of experts that know the gains, and of those that do not


def experts(found: Measurements, sizes: Sizes) -> None:
    """Run every scenario of a generated pack once: recorded, open, and open with hidden gains."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "towns.pack"
        generate_pack(GenerateConfig(count=sizes["scenarios"], seed=7), path)
        with Pack(path) as pack:
            _recorded(found, pack)
            env = _start(pack, OPEN)
            scores = _scores(found, "open worlds", env, DriveExpert(env))
            found.figures |= {"open worlds: score": _round(scores.mean()), "open worlds: egos": scores.size}
            for settling_s in SETTLING_S:
                _oracle(found, pack, settling_s)


def _start(pack: Pack, config: SimConfig) -> DriveEnv:
    """Run scenario w with seed w in world w, once."""
    env = DriveEnv(pack, len(pack), config, sampling=False)
    for world in range(len(pack)):
        env.assign(world, world, world)
    env.reset()
    return env


def _scores(found: Measurements, stage: str, env: DriveEnv, expert: LogExpert | DriveExpert) -> NDArray[np.float64]:
    """Return the scores of all egos, (rows,), in the order of rows; only the expert is timed."""
    env.step(expert.act())  # the first call compiles
    while len(env.resting_worlds) < env.world_count:
        with found.stage(f"{stage}: act"):
            actions = expert.act()
        env.step(actions)
    ended = env.ended_episodes()
    return ended.figures[np.argsort(ended.rows), env.figure_names.index("score")].astype(np.float64)


def _recorded(found: Measurements, pack: Pack) -> None:
    """Drive all vehicles of a recording at once."""
    env = _start(pack, SimConfig())
    driven = np.argwhere(env.signals.active.reshape(len(pack), -1))
    sources = env.agent_flags[:, SOURCE].copy()
    scores = _scores(found, "recordings", env, LogExpert(env))
    off = []
    for world, slot in driven:
        recording, source = pack[int(world)], sources[world, slot]
        path = recording.positions[source, :, :2][recording.valid[source]].astype(np.float64)
        off.append(_distance(env.agents[world, [X, Y], slot].astype(np.float64), path))
    found.figures |= {
        "recordings: score": _round(scores.mean()),
        "recordings: vehicles": scores.size,
        "recordings: share that ends within 0.5 m of the path": _round(np.mean(np.array(off) <= 0.5)),
    }


def _oracle(found: Measurements, pack: Pack, settling_s: float) -> None:
    """Run the same episodes with and without knowledge of the gains; the interval is over worlds."""
    means = []
    for knows_gains in (False, True):
        env = _start(pack, SimConfig(mode=OPEN.mode, episode=OPEN.episode, hidden=HIDDEN))
        expert = DriveExpert(env, knows_gains=knows_gains, settling_s=settling_s)
        scores = _scores(found, "hidden gains", env, expert)
        means.append(scores.reshape(len(pack), -1).mean(axis=1))
    delta, name = means[1] - means[0], f"hidden gains, settling in {settling_s:g} s"
    found.figures |= {
        f"{name}: score, gains unknown": _round(means[0].mean()),
        f"{name}: score, gains known": _round(means[1].mean()),
        f"{name}: delta": _round(delta.mean()),
        f"{name}: delta +-, 95%": _round(1.96 * delta.std(ddof=1) / np.sqrt(len(delta))) if len(delta) > 1 else None,
    }


def _distance(point: NDArray[np.float64], path: NDArray[np.float64]) -> float:
    """Return the distance from a point to a line through points (n, 2)."""
    begin, way = path[:-1], np.diff(path, axis=0)
    square = np.maximum((way**2).sum(axis=1), 1e-12)
    share = np.clip(((point - begin) * way).sum(axis=1) / square, 0.0, 1.0)
    return float(np.hypot(*(begin + share[:, None] * way - point).T).min())


def _round(value: float | np.floating) -> float:
    return round(float(value), 4)
