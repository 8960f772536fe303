"""The simulator on the CPU: steps, stages, larger worlds, exchange of scenarios, memory, time to the first step."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Measurements, Sizes
from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.assemble import assemble
from roadworthy.scenario.generate.recording import cut, record
from roadworthy.scenario.generate.scenarios import SETTLING_STEPS
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.towns import TownPlan, build_town
from roadworthy.scenario.generate.traffic.simulate import DT
from roadworthy.scenario.generate.traffic.tables import lay_out
from roadworthy.scenario.pack import Pack, PackWriter
from roadworthy.scenario.schema import FeatureKind
from roadworthy.sim.backends import cpu
from roadworthy.sim.config import ControlConfig, Mode, ObserveConfig, OpenConfig, SimConfig
from roadworthy.sim.env import DriveEnv

STEPS_IN_TURN = 20  # one env, then the other, so that noise of the machine falls on both
FIRST_STEP = """
import sys, time
start = time.perf_counter()
from roadworthy.sim.config import Mode, SimConfig
from roadworthy.sim.env import DriveEnv
import numpy as np
env = DriveEnv(sys.argv[1], 4, SimConfig(mode=Mode.OPEN))
env.reset()
env.step(np.zeros((env.row_count, 2)))
print(time.perf_counter() - start)
"""


def sim_cpu(found: Measurements, sizes: Sizes) -> None:
    """Random driving in open worlds on different maps."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_towns(Path(folder) / "towns.pack", 2 * sizes["worlds"], (3, 3))
        _steps(found, path, sizes["worlds"], sizes["agents"], sizes["steps"])
        _exchange(found, path, sizes["worlds"], sizes["agents"], sizes["exchanges"])


def sim_cpu_large(found: Measurements, sizes: Sizes) -> None:
    """More agents, larger maps, more worlds."""
    with tempfile.TemporaryDirectory() as folder:
        large = write_towns(Path(folder) / "large.pack", sizes["large maps"], (7, 6))
        towns = write_towns(Path(folder) / "towns.pack", sizes["maps"], (3, 3))
        steps = sizes["steps"]
        for name, path, worlds, agents in (
            ("8 worlds x 128, large maps", large, 8, 128),
            ("8 worlds x 32, large maps", large, 8, 32),
            ("8 worlds x 128, towns", towns, 8, 128),
            (f"{sizes['worlds']} worlds x 32, towns", towns, sizes["worlds"], 32),
        ):
            env = _open_env(path, worlds, agents, threads=1)
            env.reset()
            choices = _random_actions(env, 4)
            for k in range(steps):
                with found.stage(name):
                    env.step(choices[k % len(choices)])
            found.figures[f"{name}: agent-steps/s"] = round(env.signals.active.sum() / _median(found, name))


def write_towns(path: Path, count: int, streets: tuple[int, int]) -> Path:
    """A pack of towns with some traffic."""
    with PackWriter(path) as writer:
        seed = 0
        while count:
            rng = np.random.default_rng([7, seed])
            seed += 1
            try:
                network = build_town(rng, TownPlan(streets=streets))
            except GenerationError:
                continue
            steps = 91
            scene = Scene(network, lay_out(network), rng, SETTLING_STEPS + steps + 96, DT)
            scene.sdc = scene.put_car(network.entries[0], 10.0)
            scene.fill(cars=24)
            writer.add(cut(record(scene), assemble(network), SETTLING_STEPS, steps, id=f"town-{seed}", tags=()))
            count -= 1
    return path


def _open_env(pack: Pack | Path, worlds: int, agents: int, threads: int, sampling: bool = True) -> DriveEnv:
    config = SimConfig(
        mode=Mode.OPEN,
        control=ControlConfig(rows=agents),
        open=OpenConfig(agents=agents),
        observe=ObserveConfig(),
    )
    return DriveEnv(pack, worlds, config, seed=7, threads=threads, sampling=sampling)


def _random_actions(env: DriveEnv, count: int) -> NDArray[np.float32]:
    choices = env.action_choices
    assert choices is not None
    return np.random.default_rng(0).integers(0, choices, (count, env.row_count, 2)).astype(np.float32)


def _steps(found: Measurements, path: Path, worlds: int, agents: int, steps: int) -> None:
    """Whole steps with one and two threads in turn, then stage by stage."""
    envs = {threads: _open_env(path, worlds, agents, threads) for threads in (1, 2)}
    actions = _random_actions(envs[1], 16)
    for env in envs.values():
        env.reset()
        env.step(actions[0])
    active = 0
    for first in range(0, steps, STEPS_IN_TURN):
        for threads, env in envs.items():
            for k in range(first, min(first + STEPS_IN_TURN, steps)):
                active += int(env.signals.active.sum()) if threads == 1 else 0
                with found.stage(f"step, {threads} thread{'s'[: threads - 1]}"):
                    env.step(actions[k % len(actions)])
    env = envs[1]
    seconds = {threads: sum(found.seconds[name]) for threads, name in ((1, "step, 1 thread"), (2, "step, 2 threads"))}
    for k in range(2 * STEPS_IN_TURN):
        env.set_actions(actions[k % len(actions)])
        for name, stage in cpu.STAGES.items():
            with found.stage(f"stage: {name}"):
                env.run_stages(stage)
    memory = env.memory()
    segments = [
        sum(len(road_map.polyline(f)) - 1 for f in range(road_map.features(FeatureKind.ROAD_EDGE).stop))
        for road_map in (env.pack.map(m) for m in range(env.pack.map_count))
    ]
    found.figures |= {
        "agent-steps/s, 1 thread": round(active / seconds[1]),
        "agent-steps/s, 2 threads": round(active / seconds[2]),
        "2 threads against 1": round(seconds[1] / seconds[2], 3),
        "share of active agents": round(active / (steps * env.row_count), 4),
        "numbers observed": env.observation_layout.size,
        "checksum of observations": zlib.crc32(envs[2].observations.tobytes()),
        "road segments per map": round(float(np.mean(segments))),
        "maps": env.pack.map_count,
        "bytes per world": memory["worlds"] // worlds,
        "observation bytes per world": memory["observations"] // worlds,
        "scenario bytes in all": memory["scenarios"],
        "map bytes in all": memory["maps"],
    }


def _exchange(found: Measurements, path: Path, worlds: int, agents: int, exchanges: int) -> None:
    """All worlds get another scenario at once: maps never seen, then maps known."""
    for _ in range(exchanges):
        with Pack(path) as pack:
            env = _open_env(pack, worlds, agents, threads=1, sampling=False)
            for name, first in (("load", 0), ("exchange, unseen maps", worlds), ("exchange, known maps", 0)):
                for world in range(worlds):
                    env.assign(world, (first + world) % len(pack), world)
                with found.stage(name) if name != "load" else nullcontext():
                    env.reset()


def first_step(found: Measurements, sizes: Sizes) -> None:
    """A new process, from the import to the end of the first step: nothing compiled, then everything."""
    with tempfile.TemporaryDirectory() as cache:
        path = write_towns(Path(cache) / "towns.pack", sizes["maps"], (3, 3))
        for name in ("first step, nothing compiled", "first step, compiled"):
            output = subprocess.run(
                [sys.executable, "-c", FIRST_STEP, str(path)],
                env=os.environ | {"ROADWORTHY_CACHE": cache},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            found.seconds.setdefault(name, []).append(float(output))


def _median(found: Measurements, stage: str) -> float:
    return float(np.median(found.seconds[stage]))
