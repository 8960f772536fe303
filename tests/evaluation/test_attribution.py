"""The simulator's at-fault collisions, and those that the closed-loop score finds in traces, are the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadworthy.metrics.closed_loop.collisions import collisions
from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import ego_trial
from roadworthy.sim.config import ControlConfig, EpisodeConfig, GoalConfig
from roadworthy.sim.state import EVENT_AT_FAULT
from tests.evaluation.actors import Wander
from tests.evaluation.rows import SHORT
from tests.evaluation.test_run_episodes import run
from tests.sim.scenes import Actor, pack_of, scene


@pytest.mark.row("CL-1")
def test_the_simulator_and_the_closed_loop_score_attribute_alike(tmp_path: Path) -> None:
    """Random driving in dense traffic across the joint of two lanes, in two trials: every contact of every ego."""
    rng = np.random.default_rng(4)
    scenes = []
    for number in range(20):
        places = 70.0 + 7.0 * np.repeat(np.arange(3), 2) + rng.uniform(-1, 1, 6)
        cars = [
            Actor(x, 1.75 * (-1) ** k + rng.normal(0, 0.4), float(rng.uniform(2, 12)), float(rng.normal(0, 0.05)))
            for k, x in enumerate(places.tolist())
        ]
        scenes.append(scene(*cars, id=f"crowd-{number:02}", steps=61))
    pack = pack_of(tmp_path / "crowds.pack", *scenes)
    env = replace(
        SHORT, episode=EpisodeConfig(2, 30), control=ControlConfig(rows=4), goal=GoalConfig(radius_m=0.1), init_steps=0
    )
    seen: Counter[tuple[str, bool]] = Counter()
    for result in run(pack, Wander(), env, worlds=10):
        trace = result.trace
        assert trace is not None
        scenario = pack[pack.ids.index(result.episode.scenario_id)]
        lane_map = LaneMap.of(scenario.map)
        for row in result.trials:
            motion = ego_trial(trace, scenario, row.agent, row.trial)
            assert motion is not None
            found = collisions(motion, LanePlaces.of(lane_map, motion.ego))
            assert row.figures["at_fault_collisions"] == sum(hit.at_fault for hit in found.found)
            events = trace.events[trace.trial(row.trial), row.agent]
            frames = np.flatnonzero(events & EVENT_AT_FAULT).tolist()
            assert frames == sorted({hit.frame for hit in found.found if hit.at_fault})
            seen.update((hit.kind.name, hit.at_fault) for hit in found.found)
    assert min(seen[kind] for kind in (("FRONT", True), ("REAR", False), ("LATERAL", True), ("LATERAL", False))) >= 3
