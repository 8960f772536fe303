"""An episode simulated again from its trace gives bit-identical observations and states of lights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.errors import RoadworthyError
from roadworthy.render.resimulate import Resimulation, light_states
from roadworthy.scenario.schema import LightState
from roadworthy.sim.config import ObserveConfig
from tests.render.drives import OPEN, TRIALS, VEHICLES, drive


@pytest.mark.row("VID-1")
@pytest.mark.parametrize("config", [TRIALS, OPEN, VEHICLES], ids=["trials", "open", "vehicles"])
def test_resimulated_observations_equal_those_of_the_policy(towns, config):
    result, policy = drive(towns, config)
    trace = result.trace
    frames = list(Resimulation(towns, config).observations(trace, 0, result.episode.seed))
    assert len(frames) == trace.frame_count
    acted = [frame for frame in range(trace.frame_count) if frame + 1 not in trace.trial_starts]  # all but trials' last
    assert len(acted) == len(policy.given)
    for frame, (observations, active) in zip(acted, policy.given, strict=True):
        seen, drives = frames[frame], active[: len(frames[frame].has_seen)]
        np.testing.assert_array_equal(seen.observations[drives], observations[: len(drives)][drives])
        # A row that does not continue saw something still only where its own episode has just ended.
        is_last = trace.active[frame, : len(drives)] & ~trace.active[frame + 1, : len(drives)]
        np.testing.assert_array_equal(
            seen.has_seen & ~drives, is_last if config.episode.trials == 1 else False & drives
        )
        assert seen.has_seen[drives].all()


def test_a_trace_that_differs_in_its_last_bits_is_followed(towns):
    result, _ = drive(towns, TRIALS)
    trace = result.trace
    nudged = replace(trace, x=np.nextafter(trace.x, np.float32(np.inf)))
    frames = list(Resimulation(towns, TRIALS).observations(nudged, 0, result.episode.seed))
    exact = list(Resimulation(towns, TRIALS).observations(trace, 0, result.episode.seed))
    for one, other in zip(frames, exact, strict=True):
        np.testing.assert_allclose(one.observations, other.observations, atol=1e-3)


def test_a_trace_of_another_world_is_refused(towns):
    result, _ = drive(towns, TRIALS)
    moved = replace(result.trace, x=result.trace.x + np.float32(3.0))
    with pytest.raises(RoadworthyError, match=r"in frame 1, agent 0 is 3\.00 m from its trace"):
        list(Resimulation(towns, TRIALS).observations(moved, 0, result.episode.seed))
    with pytest.raises(RoadworthyError, match="was the pack or the config replaced"):
        list(Resimulation(towns, TRIALS).observations(result.trace, 1, result.episode.seed))


def test_lights_of_open_worlds_show_what_agents_see(towns):
    config = replace(OPEN, observe=ObserveConfig(lights=16), disturb=type(OPEN.disturb)())
    result, _ = drive(towns, config)
    resimulation = Resimulation(towns, config)
    trace, scenario = result.trace, towns[0]
    states = light_states(scenario, 0, result.episode.seed, trace, config, resimulation)
    words = {"is_red": LightState.STOP, "is_amber": LightState.CAUTION, "is_green": LightState.GO}
    block, checked = resimulation.layout["lights"], 0
    for frame, seen in enumerate(resimulation.observations(trace, 0, result.episode.seed)):
        trial = int(np.searchsorted(trace.trial_starts, frame, side="right")) - 1
        for agent in np.flatnonzero(seen.has_seen):
            values = dict(zip((f.name for f in block.features), block.of(seen.observations[agent]), strict=True))
            cos, sin = np.cos(trace.heading[frame, agent]), np.sin(trace.heading[frame, agent])
            for k in np.flatnonzero(values["is_red"] + values["is_amber"] + values["is_green"]):
                ahead, left = 100.0 * values["x"][k], 100.0 * values["y"][k]
                at = [
                    trace.x[frame, agent] + ahead * cos - left * sin,
                    trace.y[frame, agent] + ahead * sin + left * cos,
                ]
                near = np.hypot(*(scenario.light_stops[:, :2] - at).T) < 0.05
                shown = {state for word, state in words.items() if values[word][k] > 0.5}
                assert shown <= set(states[near, frame - trace.trial_starts[trial]].tolist())
                checked += 1
    assert checked > 100


def test_recorded_lights_go_out_where_the_recording_ends(towns, scene):
    states = light_states(towns[0], 0, 0, scene.trace, replace(TRIALS, init_steps=85), None)
    assert states.shape == (len(towns[0].light_lanes), 15)
    np.testing.assert_array_equal(states[:, :6], towns[0].light_states[:, 85:])
    assert (states[:, 6:] == LightState.UNKNOWN).all()
