"""Lights, stop lines and stop signs, compared with plain NumPy and hand-made paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from roadworthy.kernels import entry
from roadworthy.scenario.schema import RED_STATES, Floats, Ints, LightState
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.red_light import runs_red_light
from roadworthy.sim.rules.stop_sign import passes_stop_sign
from roadworthy.sim.rules.traffic_lights import is_red, light_state
from roadworthy.sim.state import COS, LENGTH, PREVIOUS_X, PREVIOUS_Y, SIGN_AHEAD, SIN, SLOWEST, Maps, Scenarios, X, Y
from tests.scenario.example import LANE_WIDTH_M, example_map
from tests.sim.arena import agents_at, constant_lights, lines_between, maps_of, params, scenarios_of

REPLAY, OPEN = params(is_open=0), params(is_open=1)
RED, GREEN, UNKNOWN = LightState.STOP, LightState.GO, LightState.UNKNOWN


@entry
def is_red_state(shown):
    return is_red(shown)


def test_red_states_are_those_of_the_schema():
    assert [state for state in LightState if is_red_state(int(state))] == list(RED_STATES)


@entry
def states(scenarios, seed, p, states_out):
    for step in range(-1, states_out.shape[0] - 1):
        for light in range(states_out.shape[1]):
            states_out[step + 1, light] = light_state(scenarios, 0, light, step, seed, p)


@entry
def red_lights(agents, scenarios, step, seed, p, runs_out):
    for a in range(agents.shape[1]):
        runs_out[a] = runs_red_light(agents, a, scenarios, 0, step, seed, p)


@entry
def stop_signs(agents, flags, maps, passes_out):
    """Columns are one agent step by step: SIGN_AHEAD and SLOWEST pass from each to the next."""
    for a in range(agents.shape[1]):
        if a > 0:
            flags[SIGN_AHEAD, a], agents[SLOWEST, a] = flags[SIGN_AHEAD, a - 1], agents[SLOWEST, a - 1]
        passes_out[a] = passes_stop_sign(agents, flags, a, maps, 0)


def shown(scenarios: Scenarios, steps: int, p=REPLAY, seed: int = 5) -> NDArray[np.int32]:
    """Return (steps, lights) from step 0 on; before the trial recorded lights are unknown."""
    found = np.full((steps + 1, scenarios.lights.shape[2]), 99, np.int32)
    states(scenarios, np.uint64(seed), p, found)
    if not p.is_open:
        assert (found[0] == UNKNOWN).all()
    return found[1:]


def runs(agents: Floats, scenarios: Scenarios, step: int = 0, p=REPLAY, seed: int = 5) -> list[bool]:
    found = np.full(agents.shape[1], 7, np.int8)
    red_lights(agents, scenarios, step, np.uint64(seed), p, found)
    assert np.isin(found, (0, 1)).all()
    return found.astype(bool).tolist()


def passes(agents: Floats, flags: Ints, maps: Maps) -> list[bool]:
    found = np.full(agents.shape[1], 7, np.int8)
    stop_signs(agents, flags, maps, found)
    return found.astype(bool).tolist()


def drive(fronts: list[float], y: float = 0.0, heading: float = 0.0) -> tuple[Floats, Ints]:
    """Return a car of 4 m whose front is at these x, in steps of 0.1 s. It starts at rest."""
    x = np.array(fronts) - 2.0
    before = np.concatenate([x[:1], x[:-1]])
    agents, flags = agents_at(x, y, heading, length=4.0, speed=(x - before) / 0.1)
    agents[PREVIOUS_X], agents[PREVIOUS_Y] = before, y
    flags[SIGN_AHEAD, 0] = -1
    return agents, flags


# Across a lane to the east at x = 50.
LINE_EAST = lines_between([[[50, 1.75], [50, -1.75]]])


def test_recorded_lights_show_their_frames_and_then_unknown():
    recorded = np.random.default_rng(1).integers(0, 9, (6, 3)).astype(np.uint8)
    found = shown(scenarios_of(np.zeros((5, 3)), recorded), 9)
    np.testing.assert_array_equal(found[:6], recorded)
    assert (found[6:] == UNKNOWN).all()


def program(seconds: float, offset: float, phase: int) -> LightState:
    within = (seconds + offset * 34 - 17 * phase) % 34
    return LightState.GO if within < 12 else LightState.CAUTION if within < 15 else LightState.STOP


def test_lights_of_open_worlds_follow_a_program_of_two_phases():
    junctions, phases = [0, 0, 1, 1, 7], [0, 1, 0, 1, 1]
    scenarios = scenarios_of(np.zeros((5, 5)), junctions=junctions, phases=phases, dt=0.1)
    found = shown(scenarios, 700, OPEN)
    offsets = {j: float(draws.uniform(np.uint64(5), draws.WORLD + j, 0, draws.LIGHTS)) for j in junctions}
    assert len(set(offsets.values())) == 3
    for light, (junction, phase) in enumerate(zip(junctions, phases, strict=True)):
        for step in range(700):
            around = {program(step * 0.1 + rounding, offsets[junction], phase) for rounding in (-1e-3, 1e-3)}
            assert found[step, light] in around
    assert set(found.ravel().tolist()) == {LightState.GO, LightState.CAUTION, LightState.STOP}
    # Crossing directions are never green together.
    for one, other in ((0, 1), (2, 3)):
        assert (np.isin(found[:, one], RED_STATES) | np.isin(found[:, other], RED_STATES)).all()
    assert (shown(scenarios, 700, OPEN, seed=6) != found).any()


@pytest.mark.row("SIM-6")
@pytest.mark.parametrize("state", list(LightState))
def test_crossing_a_line_counts_if_the_light_is_red(state):
    agents, _ = drive([47, 49, 49.9, 50.1, 52])
    crossed = [False, False, False, state in RED_STATES, False]
    assert runs(agents, constant_lights(LINE_EAST, state)) == crossed


def test_lights_are_those_of_the_step():
    agents, _ = drive([49, 51])
    scenarios = scenarios_of(LINE_EAST, [[RED], [GREEN], [RED]])
    assert [runs(agents, scenarios, step)[1] for step in range(4)] == [True, False, True, False]


def test_an_open_worlds_red_light_counts_too():
    agents, _ = drive([49, 51])
    scenarios = scenarios_of(LINE_EAST, junctions=[3], phases=[1])
    expected = np.isin(shown(scenarios, 400, OPEN)[:, 0], RED_STATES)
    assert [runs(agents, scenarios, step, OPEN)[1] for step in range(400)] == expected.tolist()
    assert 0 < expected.sum() < 400


def test_an_agent_standing_at_the_line_has_not_crossed_it():
    red = constant_lights(LINE_EAST, RED)
    assert runs(drive([48, 50, 50, 50.5, 51])[0], red) == [False, False, False, True, False]


def test_only_the_front_within_the_width_and_along_the_direction_counts():
    red = constant_lights(LINE_EAST, RED)
    assert runs(drive([49, 51], y=1.7)[0], red)[1]
    assert not runs(drive([49, 51], y=1.8)[0], red)[1]
    assert not runs(drive([51, 49])[0], red)[1]  # in reverse
    turned, _ = agents_at(52.5, 0.0, np.pi, length=4.0, move=2.0)
    assert not runs(turned, red)[0]  # the other way
    rear, _ = agents_at([53.0, 49.0], 0.0, 0.0, length=4.0, move=2.0)
    assert runs(rear, red) == [False, True]  # the rear crosses, the front crosses
    for degrees, counts in ((55, True), (65, False)):
        heading = np.radians(degrees)
        slanted, _ = agents_at(48.2, -1.5, heading, length=4.0, move=1.0)
        assert runs(slanted, red)[0] == counts


def test_one_green_light_at_a_line_is_enough():
    both = np.concatenate([LINE_EAST, LINE_EAST], axis=1)
    agents, _ = drive([49, 51])
    assert runs(agents, constant_lights(both, RED, RED))[1]
    assert not runs(agents, constant_lights(both, RED, GREEN))[1]
    # The light of the lane beside it is not enough, even if the lines overlap.
    beside = np.concatenate([LINE_EAST, lines_between([[[50, 4.5], [50, 0.9]]])], axis=1)
    agents, _ = drive([49, 51], y=1.0)
    assert runs(agents, constant_lights(beside, RED, GREEN))[1]


@pytest.mark.row("SIM-6")
def test_red_lights_run_are_what_numpy_finds():
    rng = np.random.default_rng(4)
    seen = 0
    for lights in (1, 5, 11, 60):
        place, direction = rng.uniform(-15, 15, (2, lights)), rng.uniform(-np.pi, np.pi, lights)
        half = rng.uniform(1, 3, lights)
        lines = np.stack([*place, np.cos(direction), np.sin(direction), half]).astype(np.float32)
        heading = rng.uniform(-np.pi, np.pi, 3000)
        agents, _ = agents_at(
            *rng.uniform(-20, 20, (2, 3000)), heading, rng.uniform(0.5, 10, 3000), move=rng.uniform(-1, 4, 3000)
        )
        agents[PREVIOUS_X] += rng.normal(0, 0.2, 3000)
        recorded = np.where(rng.random(lights) < 0.7, RED, GREEN)
        x, y, before_x, before_y, length = (
            agents[line].astype(np.float64)[:, None] for line in (X, Y, PREVIOUS_X, PREVIOUS_Y, LENGTH)
        )
        lx, ly, c, s, half = lines.astype(np.float64)
        now = (x - lx) * c + (y - ly) * s + length / 2
        before = (before_x - lx) * c + (before_y - ly) * s + length / 2
        cos, sin = agents[COS].astype(np.float64)[:, None], agents[SIN].astype(np.float64)[:, None]
        # The front when it is on the line, with the heading at the end of the step.
        with np.errstate(divide="ignore", invalid="ignore"):
            share = -before / (now - before)
        front_x = before_x + share * (x - before_x) + cos * length / 2
        front_y = before_y + share * (y - before_y) + sin * length / 2
        side = np.abs((front_y - ly) * c - (front_x - lx) * s)
        angle = cos * c + sin * s
        crossed = (before <= 0) & (now > 0) & (angle >= 0.5) & (side <= half)
        nearest = np.where(crossed, side, np.inf).min(axis=1, initial=np.inf, keepdims=True)
        same = crossed & (side <= nearest + 0.5)
        expected = same.any(axis=1) & ~(same & (recorded == GREEN)).any(axis=1)
        margins = [np.abs(before), np.abs(now), np.abs(angle - 0.5), np.abs(side - half), np.abs(side - nearest - 0.5)]
        is_clear = (np.nan_to_num(np.minimum.reduce(margins), nan=1.0) > 1e-4).all(axis=1)
        found = np.array(runs(agents, scenarios_of(lines, recorded[None])))
        np.testing.assert_array_equal(found[is_clear], expected[is_clear])
        assert is_clear.mean() > 0.9
        seen += expected[is_clear].sum()
    assert seen > 100


@given(st.lists(st.floats(0.0, 1.5), min_size=30, max_size=60), st.floats(-0.008, 0.008), st.floats(-0.25, 0.25))
def test_every_path_over_a_line_crosses_it_exactly_once(lengths, bend, heading):
    # Steps of any length with a turning heading; the last one ends well beyond the line.
    steps = np.array([*lengths, 25.0, 25.0, 25.0])
    headings = heading + bend * np.arange(len(steps))
    agents, _ = agents_at(
        10 + np.cumsum(steps * np.cos(headings)), np.cumsum(steps * np.sin(headings)), headings, length=4.0
    )
    agents[PREVIOUS_X, 1:], agents[PREVIOUS_Y, 1:] = agents[X, :-1], agents[Y, :-1]
    agents[PREVIOUS_X, 0], agents[PREVIOUS_Y, 0] = agents[X, 0], agents[Y, 0]
    wide = lines_between([[[50, 100], [50, -100]]])
    assert sum(runs(agents, constant_lights(wide, RED))) == (agents[X, 0] + 2 <= 50)


SIGN_MAP = maps_of(example_map())  # a stop sign's line across the left lane at x = 50
LEFT = LANE_WIDTH_M / 2


@pytest.mark.row("SIM-6")
@pytest.mark.parametrize(
    ("fronts", "is_fault"),
    [
        ([40, 43, 46, 49, 50.5], True),  # straight through
        ([40, 43, 46, 48, 49, 49.04, 49.3, 50.2], False),  # 0.4 m/s for one step
        ([40, 43, 46, 48, 49, 49.06, 49.3, 50.2], True),  # 0.6 m/s is not a stop
        ([40, 40, 43, 46, 49, 52], True),  # a stop 10 m before the line
        ([43, 43, 46, 49, 52], False),  # one 7 m before it
        ([30, 40, 50.5], True),  # so fast that no step ends close before the line
        ([49.5, 50.5], False),  # starts there, standing
        ([50.5, 51, 52], False),  # starts behind the line
        ([48, 48, 50.5, 49, 51], True),  # stopped, crossed, came back, crossed again without another stop
    ],
)
def test_a_stop_sign_requires_a_stop_close_before_its_line(fronts, is_fault):
    agents, flags = drive(fronts, LEFT)
    assert any(passes(agents, flags, SIGN_MAP)) == is_fault


def test_the_fault_falls_on_the_step_that_crosses_and_the_approach_is_kept():
    agents, flags = drive([40, 43, 46, 49, 51, 54], LEFT)
    agents[SLOWEST, 0] = np.nan
    assert passes(agents, flags, SIGN_MAP) == [False, False, False, False, True, False]
    assert flags[SIGN_AHEAD].tolist() == [-1, 0, 0, 0, -1, -1]
    np.testing.assert_allclose(agents[SLOWEST, 1:4], 30, rtol=1e-5)


def test_a_stop_sign_applies_to_agents_that_cross_its_line():
    right, flags = drive([46, 49, 52], -LEFT)  # in the lane beside it
    assert not any(passes(right, flags, SIGN_MAP))
    assert (flags[SIGN_AHEAD] == -1).all()
    away, flags = agents_at([50.0, 47.0], LEFT, np.pi, length=4.0, move=3.0, speed=30.0)
    assert not any(passes(away, flags, SIGN_MAP))
    assert (flags[SIGN_AHEAD] == -1).all()


@pytest.mark.row("SIM-12")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_agents_with_nan_positions_cross_nothing(bad):
    for lines in ([X], [Y], [X, Y], [PREVIOUS_X], [X, Y, PREVIOUS_X, PREVIOUS_Y]):
        agents, flags = drive([51.0], LEFT)
        agents[lines] = bad
        assert not any(passes(agents, flags, SIGN_MAP))
        assert flags[SIGN_AHEAD, 0] == -1
        assert not any(runs(agents, constant_lights(lines_between([[[50, 2 * LEFT], [50, 0]]]), RED)))
