"""Each rule finds a valid scenario that was damaged in its way, and no other rule does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import shapely
import shapely.affinity
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.scenario.schema import AgentType, LightState, Scenario
from roadworthy.scenario.validate import (
    GENERATED,
    PROFILES,
    RECORDED,
    RULES,
    FaultCounts,
    Limits,
    PackFault,
    Profile,
    Severity,
    faults,
    profile_named,
    profile_of,
)
from roadworthy.scenario.validate.boxes import overlap_depth
from roadworthy.scenario.validate.surface import Surface
from tests.scenario.example import example_scenario, map_of
from tests.scenario.synthetic import (
    GREEN,
    RED,
    STEPS,
    WIDTH,
    Agent,
    Roads,
    arc,
    crossing,
    freeway_with_ramp,
    make_scenario,
    profile,
    sideways,
    straight,
    straight_loop,
    two_lane_road,
)

AHEAD, TURNING, CYCLIST, WALKER, WAITING = range(5)
LIGHTS = {"ahead 0": GREEN, "ahead 2": GREEN, "right 2": GREEN, "ahead 1": RED, "left 1": RED}


def busy_crossing(**speeds: object) -> Scenario:
    """A car drives ahead, one turns right, a cyclist rides, a pedestrian walks, and a car waits at a red light."""
    roads = crossing()
    ahead, turning = roads.line("in 0", "ahead 0", "out 0"), roads.line("in 2", "right 2", "out 1")
    return make_scenario(
        roads,
        Agent(ahead, 60, speeds.get("ahead", 8.0)),  # type: ignore[arg-type]
        Agent(turning, 60, speeds.get("turning", 5.0)),  # type: ignore[arg-type]
        Agent(roads.line("in 2", "ahead 2", "out 2"), 10, 4.0, -1.0, AgentType.CYCLIST, (1.8, 0.6, 1.7)),
        Agent(straight(20, -8, 90, -8), 0, speeds.get("walker", 1.3), 0, AgentType.PEDESTRIAN, (0.6, 0.6, 1.8)),  # type: ignore[arg-type]
        Agent(roads.line("in 1"), 85, 0.0),
        lights=LIGHTS,
    )


def rules(scenario: Scenario) -> set[str]:
    found = faults(scenario, GENERATED)
    assert all(fault.severity is Severity.ERROR for fault in found)
    return {fault.rule for fault in found}


def with_agent(scenario: Scenario, agent: int, **changes: object) -> Scenario:
    """Return the scenario with other positions, headings, velocities or validity of one agent."""
    arrays = {name: getattr(scenario, name).copy() for name in changes}
    for name, value in changes.items():
        arrays[name][agent] = value
    return replace(scenario, **arrays)


def with_light(scenario: Scenario, lane: str, state: LightState) -> Scenario:
    states = scenario.light_states.copy()
    states[list(LIGHTS).index(lane)] = state
    return replace(scenario, light_states=states)


def standing_in_the_way() -> Scenario:
    return with_agent(busy_crossing(), WAITING, positions=[20, -1.75, 0], headings=0.0)


def standing_over_the_curb() -> Scenario:
    scenario = busy_crossing()
    return with_agent(scenario, WAITING, positions=scenario.positions[WAITING] + np.float32([1.5, 0, 0]))


def driving_over_a_red_light() -> Scenario:
    return with_light(busy_crossing(), "ahead 0", LightState.STOP)


def green_for_all() -> Scenario:
    return with_light(busy_crossing(), "ahead 1", LightState.GO)


def running() -> Scenario:
    return busy_crossing(walker=4.5)


def accelerating_too_hard() -> Scenario:
    time = np.clip(np.arange(STEPS) * 0.1 - 2, 0, 3)
    return busy_crossing(ahead=4 + 7 * (time / 2 - 3 / (4 * np.pi) * np.sin(2 * np.pi * time / 3)))


def accelerating_at_once() -> Scenario:
    return busy_crossing(ahead=profile((0, 6), (3, 6), (4, 9), (9, 9)))


def turning_too_fast() -> Scenario:
    return busy_crossing(turning=profile((0, 8.5), (9, 8.5)))


def turning_too_tightly() -> Scenario:
    return make_scenario(crossing(), Agent(arc(0, 0, 1.5, 0, 720, spacing=0.05), 0.1, 1.8))


def sliding() -> Scenario:
    scenario = busy_crossing()
    return with_agent(scenario, CYCLIST, headings=scenario.headings[CYCLIST] + np.float32(0.12))


def turning_on_the_spot() -> Scenario:
    scenario = busy_crossing()
    headings = scenario.headings[WAITING] + np.float32(0.2) * (np.arange(STEPS) > 40)
    return with_agent(scenario, WAITING, headings=headings)


def telling_a_wrong_velocity() -> Scenario:
    scenario = busy_crossing()
    return with_agent(scenario, AHEAD, velocities=scenario.velocities[AHEAD] * np.float32(1.05))


def standing_at_another_place_for_a_step() -> Scenario:
    scenario = busy_crossing()
    positions = scenario.positions[AHEAD].copy()
    positions[50:, 0] += 0.2
    return with_agent(scenario, AHEAD, positions=positions)


def vanishing() -> Scenario:
    scenario = busy_crossing()
    present = (np.arange(STEPS) < 40) | (np.arange(STEPS) > 45)
    return with_agent(scenario, AHEAD, valid=present)


def with_roads(change: Callable[[Roads], None]) -> Scenario:
    roads = two_lane_road()
    change(roads)
    return make_scenario(roads, Agent(roads.line("right 0"), 20, 8.0))


def lanes_with_a_hole() -> Scenario:
    return with_roads(lambda roads: roads.lanes.update({"left 1": straight(150.5, 3.5, 300, 3.5)}))


def lanes_with_a_kink() -> Scenario:
    return make_scenario(freeway_with_ramp(), Agent(freeway_with_ramp().line("right 0"), 20, 8.0))


def neighbors_the_wrong_way_round() -> Scenario:
    return with_roads(lambda roads: roads.beside.reverse() or roads.beside.append(("left 0", "right 0")))


def neighbors_apart() -> Scenario:
    return with_roads(lambda roads: roads.beside.append(("right 0", "left 1")))


def neighbors_that_cross() -> Scenario:
    def change(roads: Roads) -> None:
        roads.lanes["left 0"] = straight(0, WIDTH, 150, -WIDTH)
        roads.follows.remove(("left 0", "left 1"))

    return with_roads(change)


def neighbors_beyond_their_points() -> Scenario:
    return in_ranges(beyond=1)


def in_ranges(beyond: int) -> Scenario:
    """Return the two-lane road with whole lengths as ranges of neighbors; the first left one exceeds its lane."""
    scenario = make_scenario(two_lane_road(), Agent(two_lane_road().line("right 0"), 20, 8.0))
    left, right = scenario.map.left_neighbors, scenario.map.right_neighbors
    last = np.diff(scenario.map.starts) - 1
    whole = [np.array([[0, last[a], 0, last[b]] for a, b in pairs], np.int32) for pairs in (left, right)]
    whole[0][0, 3] += beyond
    road_map = replace(scenario.map, left_neighbor_ranges=whole[0], right_neighbor_ranges=whole[1])
    return replace(scenario, map=road_map)


def never_there() -> Scenario:
    return with_agent(busy_crossing(), WALKER, valid=False)


def car_missing_now() -> Scenario:
    scenario = busy_crossing()
    return with_agent(scenario, scenario.sdc, valid=np.arange(STEPS) > scenario.current_step)


def a_flat_box() -> Scenario:
    return with_agent(busy_crossing(), WALKER, sizes=[0.6, 0.0, 1.8])


def a_train() -> Scenario:
    return make_scenario(two_lane_road(), Agent(two_lane_road().line("right 0"), 20, 8.0, size=(31.0, 2.5, 3.0)))


def far_away() -> Scenario:
    scenario = busy_crossing()
    return with_agent(scenario, WALKER, positions=scenario.positions[WALKER] + np.float32([3000, 0, 0]))


DAMAGES: list[tuple[Callable[[], Scenario], str]] = [
    (standing_in_the_way, "overlap"),
    (standing_over_the_curb, "off_road"),
    (driving_over_a_red_light, "red_light"),
    (green_for_all, "conflicting_greens"),
    (running, "speed"),
    (accelerating_too_hard, "acceleration"),
    (accelerating_at_once, "jerk"),
    (turning_too_fast, "lateral_acceleration"),
    (turning_too_tightly, "yaw_rate"),
    (sliding, "heading"),
    (turning_on_the_spot, "heading"),
    (telling_a_wrong_velocity, "velocity"),
    (standing_at_another_place_for_a_step, "velocity"),
    (vanishing, "gap"),
    (lanes_with_a_hole, "map"),
    (lanes_with_a_kink, "map"),
    (neighbors_the_wrong_way_round, "neighbor"),
    (neighbors_apart, "neighbor"),
    (neighbors_that_cross, "neighbor"),
    (neighbors_beyond_their_points, "neighbor"),
    (never_there, "presence"),
    (car_missing_now, "start"),
    (a_flat_box, "box"),
    (a_train, "size"),
    (far_away, "far"),
]


@pytest.mark.row("SCEN-5")
def test_a_sound_scenario_has_no_faults() -> None:
    assert faults(busy_crossing(), GENERATED) == []
    assert faults(busy_crossing(), RECORDED) == []


@pytest.mark.row("SCEN-5")
@pytest.mark.parametrize(("damaged", "rule"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_each_damage_is_found_only_by_its_rule(damaged: Callable[[], Scenario], rule: str) -> None:
    assert rules(damaged()) == {rule}


def test_every_rule_has_a_damage() -> None:
    assert {rule for _, rule in DAMAGES} == set(RULES)


def test_an_overlap_names_both_agents_the_worst_step_and_the_number_of_steps() -> None:
    (fault,) = faults(standing_in_the_way(), GENERATED)
    assert (fault.scenario_id, fault.agent) == ("stage", AHEAD)
    x = busy_crossing().positions[AHEAD, :, 0]
    steps = np.flatnonzero(np.abs(x - 20) < 4.6)
    assert fault.step in steps
    assert (
        fault.message == f"agents 0 and 4 overlap by 1.90 m at step {fault.step} (and at {len(steps) - 1} more steps)"
    )


def test_all_faults_are_reported_in_the_order_of_the_rules() -> None:
    scenario = with_light(standing_in_the_way(), "ahead 0", LightState.STOP)
    scenario = with_agent(scenario, TURNING, velocities=scenario.velocities[TURNING] * np.float32(1.1))
    assert [(fault.rule, fault.agent) for fault in faults(scenario, GENERATED)] == [
        ("overlap", AHEAD),
        ("red_light", AHEAD),
        ("velocity", TURNING),
    ]


def test_full_braking_is_allowed_only_in_hard_stops() -> None:
    roads = two_lane_road()
    speed = np.maximum(14 - sideways((3, 6, 14.0)), 0)
    braking = make_scenario(roads, Agent(roads.line("right 0", "right 1"), 20, speed))
    assert rules(braking) == {"acceleration"}
    assert rules(replace(braking, tags=("hard_stop",))) == set()
    assert rules(replace(braking, tags=("cut_in",))) == {"acceleration"}


def test_limits_can_be_set() -> None:
    assert [fault.rule for fault in faults(busy_crossing(), Profile("slow", limits=Limits(vehicle_speed_mps=7.0)))] == [
        "speed"
    ]


def test_arrays_that_do_not_fit_together_are_an_error() -> None:
    with pytest.raises(ScenarioError, match="headings has shape"):
        faults(replace(busy_crossing(), headings=np.zeros((5, 3), np.float32)))


def test_a_map_without_lanes_and_a_scenario_without_agents_are_sound() -> None:
    empty = make_scenario(map_of([]), Agent(straight(0, 0, 100, 0), 0, 8.0))
    assert faults(empty, GENERATED) == []
    none = {name: getattr(empty, name)[:0] for name in "agent_ids agent_types sizes positions headings".split()}
    nobody = replace(empty, **none, velocities=empty.velocities[:0], valid=empty.valid[:0], sdc=-1)
    assert faults(nobody, GENERATED) == []


# severities and profiles


CAR = AHEAD  # the first agent is the self-driving car
NOISE = [
    (standing_in_the_way, "overlap", Severity.WARNING),
    (standing_over_the_curb, "off_road", Severity.NOTE),
    (driving_over_a_red_light, "red_light", Severity.WARNING),
    (green_for_all, "conflicting_greens", Severity.NOTE),
    (running, "speed", Severity.NOTE),
    (accelerating_too_hard, "acceleration", Severity.NOTE),
    (accelerating_at_once, "jerk", Severity.NOTE),
    (turning_too_fast, "lateral_acceleration", Severity.NOTE),
    (turning_too_tightly, "yaw_rate", Severity.NOTE),
    (sliding, "heading", Severity.NOTE),
    (telling_a_wrong_velocity, "velocity", Severity.WARNING),
    (vanishing, "gap", Severity.WARNING),
    (neighbors_that_cross, "neighbor", Severity.NOTE),
    (a_train, "size", Severity.NOTE),
    (far_away, "far", Severity.NOTE),
    (never_there, "presence", Severity.NOTE),
    (lanes_with_a_hole, "map", Severity.WARNING),
    (car_missing_now, "start", Severity.WARNING),
    (a_flat_box, "box", Severity.ERROR),
]


@pytest.mark.row("IMP-3")
@pytest.mark.parametrize(("damaged", "rule", "severity"), NOISE, ids=[damaged.__name__ for damaged, _, _ in NOISE])
def test_noise_is_a_note_in_recordings_and_a_warning_for_the_self_driving_car(
    damaged: Callable[[], Scenario], rule: str, severity: Severity
) -> None:
    assert {(fault.rule, fault.severity) for fault in faults(damaged(), RECORDED)} == {(rule, severity)}


@pytest.mark.row("IMP-3")
def test_every_rule_has_a_severity_in_recordings_that_a_test_states() -> None:
    assert {rule for _, rule, _ in NOISE} == set(RULES)


@pytest.mark.row("IMP-3")
@pytest.mark.parametrize("damaged", [standing_in_the_way, vanishing, driving_over_a_red_light])
def test_what_others_do_is_a_note_in_recordings(damaged: Callable[[], Scenario]) -> None:
    scenario = replace(damaged(), sdc=TURNING)
    assert {fault.severity for fault in faults(scenario, RECORDED)} == {Severity.NOTE}


def test_an_overlap_with_the_self_driving_car_is_a_warning_whichever_is_named_first() -> None:
    scenario = standing_in_the_way()
    (overlap,) = faults(scenario, RECORDED)
    for car in (overlap.agent, overlap.other_agent):
        assert [fault.severity for fault in faults(replace(scenario, sdc=car), RECORDED)] == [Severity.WARNING]


@pytest.mark.row("IMP-3")
def test_an_absent_self_driving_car_is_an_error() -> None:
    (fault,) = faults(with_agent(busy_crossing(), CAR, valid=False), RECORDED)
    assert (fault.rule, fault.severity) == ("presence", Severity.ERROR)


@pytest.mark.row("IMP-3")
def test_the_source_of_a_scenario_determines_its_profile() -> None:
    scenario = standing_in_the_way()
    assert profile_of(replace(scenario, source="generated")) is GENERATED
    assert [fault.severity for fault in faults(replace(scenario, source="generated"))] == [Severity.ERROR]
    assert profile_of(replace(scenario, source="womd")) is RECORDED
    assert [fault.severity for fault in faults(replace(scenario, source="womd"))] == [Severity.WARNING]


def test_profiles_are_found_by_name() -> None:
    assert [profile_named(name) for name in PROFILES] == [GENERATED, RECORDED]
    with pytest.raises(UsageError, match="profile 'real' is unknown; known: generated, recorded"):
        profile_named("real")


def test_faults_are_counted_by_kind_with_the_most_severe_first() -> None:
    counts = FaultCounts()
    for where, severity, rule in (
        ("a", Severity.NOTE, "jerk"),
        ("a", Severity.NOTE, "gap"),
        ("a", Severity.NOTE, "gap"),
        ("b", Severity.NOTE, "gap"),
        ("b", Severity.ERROR, "box"),
    ):
        counts.add(PackFault(where, severity, rule, f"{rule} in {where}"))
    assert [(kind.rule, kind.count, kind.places) for kind in counts.kinds] == [
        ("box", 1, 1),
        ("gap", 3, 2),
        ("jerk", 1, 1),
    ]
    assert counts.kinds[1].example == "a: gap in a"
    assert counts.describe() == "1 error, 0 warnings, 4 notes"


def test_neighbors_count_only_along_their_ranges() -> None:
    assert rules(in_ranges(beyond=0)) == set()
    crossed = neighbors_that_cross()
    short = np.array([[0, 2, 0, 2]] * 2, np.int32)
    road_map = replace(crossed.map, left_neighbor_ranges=short, right_neighbor_ranges=short)
    assert rules(replace(crossed, map=road_map)) == set()


def test_a_repeated_point_is_not_a_kink() -> None:
    roads = two_lane_road()
    for name in ("right 0", "right 1"):
        line = roads.lanes[name]
        roads.lanes[name] = np.concatenate([line[:1], line, line[-1:]])
    assert rules(make_scenario(roads, Agent(two_lane_road().line("right 0"), 20, 8.0))) == set()


# red lights


def way_of(*lanes: str, start: float = 60.0, speed: object = 8.0, present: tuple[int, int | None] = (0, None)) -> Agent:
    return Agent(crossing().line(*lanes), start, speed, present=present)  # type: ignore[arg-type]


def test_a_red_light_for_another_movement_from_the_same_lane_is_not_run() -> None:
    turns_left, goes_ahead = way_of("in 0", "left 0", "out 1", speed=6.0), way_of("in 0", "ahead 0", "out 0")
    lights = {"left 0": RED, "ahead 0": GREEN, "right 0": GREEN}
    assert rules(make_scenario(crossing(), goes_ahead, lights=lights)) == set()
    assert rules(make_scenario(crossing(), turns_left, lights=lights)) == {"red_light"}


def test_a_vehicle_that_disappears_before_its_movement_is_clear_is_not_a_fault() -> None:
    leaves_early = way_of("in 0", "left 0", "out 1", present=(0, 36))
    assert (
        rules(make_scenario(crossing(), leaves_early, lights={"left 0": RED, "ahead 0": GREEN, "right 0": GREEN}))
        == set()
    )
    all_red = {"left 0": RED, "ahead 0": RED, "right 0": RED}
    assert rules(make_scenario(crossing(), leaves_early, lights=all_red)) == {"red_light"}


def test_a_light_that_turns_red_behind_the_front_is_not_run() -> None:
    scenario = make_scenario(crossing(), way_of("in 0", "ahead 0", "out 0"), lights={"ahead 0": GREEN})
    crosses = int(np.argmax(scenario.positions[0, :, 0] + 2.3 > -12))
    states = scenario.light_states.copy()
    states[0, crosses:] = LightState.STOP
    assert rules(replace(scenario, light_states=states)) == set()
    states[0, crosses - 1] = LightState.STOP
    (fault,) = faults(replace(scenario, light_states=states), GENERATED)
    assert (fault.rule, fault.agent, fault.step) == ("red_light", 0, crosses - 1)


def test_stopping_at_a_red_light_is_sound() -> None:
    stops = way_of("in 0", speed=8 - sideways((0, 6, 8.0)))
    assert rules(make_scenario(crossing(), stops, lights={"ahead 0": RED})) == set()


# conflicting greens


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ("ahead 0", "ahead 1", True),
        ("ahead 0", "left 2", True),
        ("right 0", "left 2", True),  # they join
        ("right 0", "ahead 3", True),
        ("ahead 0", "ahead 2", False),
        ("ahead 0", "left 0", False),  # one approach
        ("left 0", "left 2", False),
        ("right 0", "ahead 2", False),
    ],
)
def test_greens_conflict_where_lanes_from_different_approaches_cross_or_join(
    one: str, other: str, conflict: bool
) -> None:
    scenario = make_scenario(crossing(), way_of("in 3", speed=0.0), lights={one: GREEN, other: LightState.ARROW_GO})
    assert rules(scenario) == ({"conflicting_greens"} if conflict else set())
    states = scenario.light_states.copy()
    states[0, ::2] = states[1, 1::2] = LightState.STOP
    assert rules(replace(scenario, light_states=states)) == set()


# boxes and surfaces against shapely

places = st.floats(-4, 4)
box_sizes = st.tuples(st.floats(0.3, 6), st.floats(0.3, 3))
angles = st.floats(-7, 7)


def polygon(x: float, y: float, heading: float, length: float, width: float) -> shapely.Polygon:
    box = shapely.box(-length / 2, -width / 2, length / 2, width / 2)
    return shapely.affinity.translate(shapely.affinity.rotate(box, heading, origin=(0, 0), use_radians=True), x, y)


@given(places, places, angles, angles, box_sizes, box_sizes)
def test_boxes_overlap_when_shapely_says_so(
    x: float, y: float, one: float, other: float, size: tuple[float, float], other_size: tuple[float, float]
) -> None:
    a, b = polygon(0, 0, one, *size), polygon(x, y, other, *other_size)
    depth = overlap_depth(x, y, np.cos(one), np.sin(one), *size, np.cos(other), np.sin(other), *other_size)
    if depth > 1e-9:
        assert a.intersects(b)
        assert a.intersection(b).area > 0
    elif depth < -1e-9:
        assert not a.intersects(b)
        # Separating axes never overestimate the distance.
        assert -depth <= a.distance(b) + 1e-9


@given(st.lists(st.floats(0.3, 1), min_size=3, max_size=40), st.integers(0, 2**32 - 1))
def test_points_are_off_the_road_when_shapely_says_so(radii: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
    outline = 40 * np.array(radii)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    hole = straight_loop(-3, -3, 3, 3)[::-1]
    edges = [np.concatenate([outline, outline[:1]]).astype(np.float32), hole.astype(np.float32)]
    surface = Surface.of(Roads(edges=list(edges)).map())
    assert surface is not None
    road = shapely.Polygon(edges[0]).symmetric_difference(shapely.Polygon(edges[1]))
    points = rng.uniform(-45, 45, (50, 2))
    outside = surface.outside_by(points[:, 0], points[:, 1])
    for place, off_by in zip(shapely.points(points), outside, strict=True):
        if road.boundary.distance(place) > 1e-9:
            assert off_by == pytest.approx(road.distance(place), abs=1e-6)


def test_a_map_with_an_open_edge_has_no_surface() -> None:
    assert Surface.of(two_lane_road().map()) is not None
    roads = two_lane_road()
    roads.edges.append(straight(0, 20, 50, 20))
    assert Surface.of(roads.map()) is None
    assert Surface.of(example_scenario().map) is None


def test_pedestrians_may_leave_the_road_and_parked_cars_may_not() -> None:
    roads = two_lane_road()
    driver = Agent(roads.line("right 0"), 20, 8.0)
    beside = straight(50, -9, 90, -9)
    walker = Agent(beside, 0, 1.2, kind=AgentType.PEDESTRIAN, size=(0.6, 0.6, 1.8))
    assert rules(make_scenario(roads, driver, walker)) == set()
    assert rules(make_scenario(roads, driver, Agent(beside, 0, 0.0))) == {"off_road"}
