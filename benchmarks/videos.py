"""Videos of traces: the speed of drawing and encoding, and the memory that it takes."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import Measurements, Sizes, resident_bytes
from roadworthy.evaluation.ledger import EpisodeSpec, plan_ledger
from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.policy.protocol import Batch, PolicyInfo
from roadworthy.record import EpisodeResult
from roadworthy.render.config import VIEWS
from roadworthy.render.counts import agent_to_follow
from roadworthy.render.episode_video import ObservationFrames, write_videos
from roadworthy.render.resimulate import Resimulation, light_states
from roadworthy.render.video import Mp4Writer
from roadworthy.render.views import EpisodeScene
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack, PackWriter
from roadworthy.sim.config import AtGoal, EpisodeConfig, GoalConfig, Mode, OpenConfig, SimConfig

FULL_HD = (1920, 1080)
SMALL = (320, 180)


class _Cruise:
    """Drives straight ahead with slowly increasing speed."""

    def start(self, info: PolicyInfo) -> None:
        assert info.env is not None
        self._action = np.array(info.env.action_choices, np.float32) // 2

    def act(self, batch: Batch) -> Any:
        return self._action + np.outer(batch.steps % 40 == 0, (1.0, 0.0))


def speed(found: Measurements, sizes: Sizes) -> None:
    """Measure frames per second on one core at 1080p, drawn and encoded, for each view."""
    with tempfile.TemporaryDirectory() as folder:
        scene = _Scene(Path(folder), sizes["steps"])
        rates: dict[str, list[float]] = {view: [] for view in VIEWS}
        write_videos(
            scene.scene,
            {view: Path(folder) / f"{view}.mp4" for view in VIEWS},
            2,
            FULL_HD,
            1.0,
            scene.observation_frames(),
        )
        for _ in range(sizes["repeats"]):
            for view in VIEWS:
                began = time.process_time()
                with found.stage(view):
                    (video,) = write_videos(
                        scene.scene, {view: Path(folder) / "film.mp4"}, 10**6, FULL_HD, 1.0, scene.observation_frames()
                    )
                rates[view].append(video.frames / (time.process_time() - began))
        for name, each in rates.items():
            found.figures[f"{name}: frames a second"] = round(statistics.median(each), 1)
            found.figures[f"{name}: the slowest film"] = round(min(each), 1)


def memory(found: Measurements, sizes: Sizes) -> None:
    """Measure the resident memory while many long videos are written, sequentially and all at once."""
    with tempfile.TemporaryDirectory() as folder:
        scene, resident = _Scene(Path(folder), sizes["steps"]), []
        rounds = -(-sizes["videos"] // len(VIEWS))
        with found.stage("one after another"):
            for number in range(rounds):
                paths = {view: Path(folder) / f"{number}_{view}.mp4" for view in VIEWS}
                write_videos(scene.scene, paths, 10**6, SMALL, 1.0, scene.observation_frames())
                resident.append(resident_bytes() or 0)
        found.figures["frames of each"] = scene.scene.trace.frame_count
        found.figures["MB after the first films"] = round(resident[0] / 1e6, 1)
        found.figures["MB after the last"] = round(resident[-1] / 1e6, 1)
        found.figures["MB at most"] = round(max(resident) / 1e6, 1)
        slope = np.add.outer(np.arange(SMALL[1]), np.arange(SMALL[0])).astype(np.uint8)
        pictures = [np.stack([slope, slope, slope + shift], axis=2) for shift in (0, 60)]
        resident = []
        with found.stage("all at once"), ExitStack() as stack:
            writers = [stack.enter_context(Mp4Writer(Path(folder) / f"{k}.mp4", 10)) for k in range(sizes["videos"])]
            for step, picture in zip(range(sizes["steps"]), itertools.cycle(pictures), strict=False):
                for writer in writers:
                    writer.add(picture)
                if step % 100 == 99 or step == sizes["steps"] - 1:
                    resident.append(resident_bytes() or 0)
        found.figures["at once: MB after 100 frames"] = round(resident[0] / 1e6, 1)
        found.figures["at once: MB after all"] = round(resident[-1] / 1e6, 1)


class _Scene:
    """A long episode in a town."""

    def __init__(self, folder: Path, steps: int) -> None:
        with PackWriter(folder / "town.pack") as writer:
            writer.add(generate_scenario(7, "protected_left", 0, 91))
        pack = Pack(folder / "town.pack")
        config = SimConfig(
            mode=Mode.OPEN,
            episode=EpisodeConfig(trial_steps=steps),
            open=OpenConfig(agents=16, traffic=16),
            goal=GoalConfig(at_goal=AtGoal.NEW_GOAL),
        )
        self._episode: EpisodeSpec = plan_ledger(pack, [0], 1, 0).episodes[0]
        results: list[EpisodeResult] = []
        spec = DrivingSpec("film", pack.path, config, _Cruise, worlds=1)
        run_episodes(spec, spec.make_env(threads=1), one_by_one([self._episode]), results.append)
        trace = results[0].trace
        assert trace is not None
        self._resimulation = Resimulation(pack, config)
        lights = light_states(pack[0], 0, self._episode.seed, trace, config, self._resimulation)
        self.scene = EpisodeScene(trace, pack[0], lights, agent_to_follow(trace), config.goal.radius_m, "a benchmark")

    def observation_frames(self) -> ObservationFrames:
        """Return the observations from the first frame."""
        seen: Iterator[Any] = self._resimulation.observations(self.scene.trace, 0, self._episode.seed)
        return ObservationFrames(self._resimulation.layout, seen)
