"""Traffic statistics: hand-made motion gives the values that it was made with, and generated traffic plausible ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.generate.pack import generate_pack
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, FeatureKind, LaneType, LightState, Scenario
from roadworthy.scenario.statistics import QUANTITIES, Sample, critical_gap, measure
from roadworthy.scenario.statistics.draw import PICTURES, draw
from roadworthy.scenario.statistics.published import FIGURES, Figure, Statistic
from roadworthy.scenario.statistics.summary import GAP_KINDS, compare, markdown, summarize
from tests.scenario.example import example_scenario, pairs
from tests.scenario.synthetic import DT, Agent, crossing, make_scenario, profile, ring, sideways, two_lane_road

LENGTH = 4.6  # of an agent


def measured(*scenarios: Scenario) -> Sample:
    return measure(scenarios)


def test_a_headway_is_counted_from_front_to_front_and_a_gap_from_bumper_to_bumper() -> None:
    roads = two_lane_road(LaneType.FREEWAY)
    line = roads.line("right 0", "right 1")
    # The leader is on the next part of the lane most of the time, and another car drives beside it.
    cars = Agent(line, 10, 15), Agent(line, 40, 15), Agent(roads.line("left 0", "left 1"), 20, 15)
    found = measured(make_scenario(roads, *cars))
    assert found.of("headway_freeway") == pytest.approx([30 / 15], abs=0.01)
    assert found.of("gap_freeway") == pytest.approx([30 - LENGTH], abs=0.1)
    assert len(found.of("headway_street")) == 0


@pytest.mark.parametrize(("distance", "leader_speed"), [(70, 15), (30, 11)])
def test_a_car_far_behind_or_closing_in_is_not_following(distance: float, leader_speed: float) -> None:
    roads = two_lane_road()
    line = roads.line("right 0", "right 1")
    found = measured(make_scenario(roads, Agent(line, 10, 15), Agent(line, 10 + distance, leader_speed, steps=91)))
    assert len(found.of("headway_street")) == 0


def test_standing_cars_in_a_queue_keep_one_gap_each_and_parked_ones_none() -> None:
    roads = two_lane_road()
    line = roads.line("right 0", "right 1")
    queue = Agent(line, 50), Agent(line, 50 + LENGTH + 2), Agent(line, 50 + 2 * LENGTH + 5)
    parked = Agent(line, 80, offset=-1.2), Agent(line, 87, offset=-1.2)
    assert sorted(measured(make_scenario(roads, *queue, *parked)).of("standing_gap")) == pytest.approx([2, 3], abs=0.05)


def test_a_free_driver_gives_its_speed_over_the_limit_and_one_behind_another_does_not() -> None:
    roads = two_lane_road()
    right, left = roads.line("right 0", "right 1"), roads.line("left 0", "left 1")
    found = measured(make_scenario(roads, Agent(left, 5, 12), Agent(right, 5, 13), Agent(right, 35, 13)))
    # The follower in the right lane is not free; the limit is 13.9 m/s.
    assert sorted(found.of("free_speed_street")) == pytest.approx([12 / 13.9, 13 / 13.9], abs=0.005)
    assert found.totals["street_km"] == pytest.approx(9.1 * (12 + 13 + 13) / 1000)


def test_a_lane_change_lasts_while_the_car_moves_sideways() -> None:
    roads = two_lane_road(LaneType.FREEWAY)
    line = roads.line("right 0", "right 1")
    found = measured(make_scenario(roads, Agent(line, 5, 20, sideways((1.5, 7.5, 3.5)))))
    # Quintic over 6 s: for 0.4 s at each end it is slower than the lowest speed that counts.
    assert found.of("lane_change_duration") == pytest.approx([5.2], abs=0.3)
    assert found.totals["freeway_lane_changes"] == 1


def test_a_lane_change_that_the_recording_cuts_off_has_no_duration_but_counts() -> None:
    roads = two_lane_road()
    found = measured(make_scenario(roads, Agent(roads.line("right 0", "right 1"), 5, 12, sideways((5.5, 11.0, 3.5)))))
    assert len(found.of("lane_change_duration")) == 0
    assert found.totals["street_lane_changes"] == 1


def test_stops_and_starts_give_the_rates_they_were_made_with() -> None:
    roads = two_lane_road()
    line = roads.line("right 0", "right 1")
    stops = Agent(line, 10, profile((0, 12), (1, 12), (7, 0)))
    starts = Agent(roads.line("left 0", "left 1"), 10, profile((0, 0), (2, 0), (7, 7.5)))
    found = measured(make_scenario(roads, stops, starts))
    assert found.of("stop_deceleration") == pytest.approx([2.0], abs=0.1)
    assert found.of("stop_peak_deceleration") == pytest.approx([2.0], abs=0.1)
    assert found.of("start_acceleration") == pytest.approx([1.5], abs=0.1)
    assert found.of("acceleration").min() == pytest.approx(-2.0, abs=0.05)


def test_jerk_is_the_change_of_acceleration_over_a_second() -> None:
    roads = two_lane_road()
    time = np.arange(91) * DT
    speed = 5 + 0.1 * time**2  # acceleration 0.2 t
    found = measured(make_scenario(roads, Agent(roads.line("right 0", "right 1"), 5, speed)))
    assert len(found.of("jerk")) > 5
    assert found.of("jerk")[:-1] == pytest.approx(0.2, abs=0.01)


def test_a_bend_gives_its_peak_lateral_acceleration_speed_and_radius() -> None:
    roads = ring()
    line = roads.line("ring 0", "ring 1", "ring 2")
    found = measured(make_scenario(roads, Agent(line, 5, 6)))
    assert found.of("bend_lateral") == pytest.approx([6**2 / 15], rel=0.06)
    assert found.of("bend_speed") == pytest.approx([6], rel=0.02)
    assert found.of("bend_radius") == pytest.approx([15], rel=0.06)


def turning_left(*, goes_at_s: float) -> Scenario:
    """A car waits from 2.4 s on to turn left. Oncoming cars pass its way after 4.2, 6.2 and 11.4 of the 15 s."""
    roads, steps = crossing(), 151
    road_map = replace(roads.map(), yields=pairs((roads.number("left 0"), roads.number("ahead 2"))))
    speed = profile((0, 6), (2.4, 0.0), (goes_at_s, 0), (goes_at_s + 2, 5), steps=steps)
    car = Agent(roads.line("in 0", "left 0", "out 1"), 88 - LENGTH / 2 - 8, speed, steps=steps)
    line = roads.line("in 2", "ahead 2", "out 2")
    oncoming = (Agent(line, start, speed, steps=steps) for start, speed in ((60, 10), (40, 10), (0, 9)))
    return make_scenario(road_map, car, *oncoming)


def test_gaps_before_the_start_are_rejected_and_the_one_after_it_accepted() -> None:
    found = measured(turning_left(goes_at_s=5.9))
    assert found.of("accepted_junction") == pytest.approx([11.4 - 6.2], abs=0.1)
    # The first one is a lag: it starts when the car is near the line and slower than 3 m/s.
    assert found.of("rejected_junction") == pytest.approx([4.2 - 1.3, 2.0], abs=0.1)
    assert len(found.of("accepted_roundabout")) == len(found.of("rejected_roundabout")) == 0


def test_post_encroachment_times_are_counted_between_the_one_rear_and_the_other_front() -> None:
    # The car's center passes after 9.7 s at 5 m/s, and boxes are 4.6 m long and 1.9 m wide.
    way, own = 0.5 * (LENGTH + 1.9), 5.0
    passed = [9.7 - seconds - way / 10.0 - way / own for seconds in (4.2, 6.2)]
    ahead = 11.4 - 9.7 - way / own - way / 9.0
    found = measured(turning_left(goes_at_s=5.9)).of("encroachment")
    assert sorted(found) == pytest.approx(sorted([*passed, ahead]), abs=0.15)


def test_gaps_that_begin_too_late_to_be_seen_in_full_do_not_count() -> None:
    scenario = turning_left(goes_at_s=5.9)
    cut = {name: getattr(scenario, name)[:, :115] for name in ("positions", "headings", "velocities", "valid")}
    found = measured(replace(scenario, **cut, light_states=scenario.light_states[:, :115]))
    assert len(found.of("accepted_junction")) == 0
    assert len(found.of("rejected_junction")) == 2


def test_no_gap_is_accepted_while_a_light_gives_right_of_way() -> None:
    scenario = turning_left(goes_at_s=5.9)
    lane = int(scenario.map.yields[0, 0])
    light = {
        "light_lanes": np.array([lane], np.int32),
        "light_stops": np.zeros((1, 3), np.float32),
        "light_states": np.full((1, scenario.steps), LightState.ARROW_GO, np.uint8),
    }
    assert len(measured(replace(scenario, **light)).of("accepted_junction")) == 0
    light["light_states"] = np.full((1, scenario.steps), LightState.FLASHING_CAUTION, np.uint8)
    assert len(measured(replace(scenario, **light)).of("accepted_junction")) == 1


def test_the_critical_gap_lies_where_shorter_accepted_ones_balance_longer_rejected_ones() -> None:
    gaps = np.arange(0.05, 8, 0.1)
    assert critical_gap(gaps[gaps > 4], gaps[gaps < 4]) == pytest.approx(4.0, abs=0.1)
    shifted = critical_gap(np.linspace(3, 7, 100), np.linspace(1, 5, 100))
    assert shifted == pytest.approx(4.0, abs=0.1)
    assert critical_gap(np.full(19, 5.0), np.full(50, 3.0)) is None


def test_pedestrians_are_timed_only_on_crosswalks() -> None:
    scenario = example_scenario()
    assert measured(scenario).of("walking_speed") == pytest.approx([1.1], abs=0.01)
    keep = scenario.map.kinds != FeatureKind.CROSSWALK
    lengths = np.diff(scenario.map.starts)
    points = np.repeat(keep, lengths)
    bare = replace(
        scenario.map,
        kinds=scenario.map.kinds[keep],
        types=scenario.map.types[keep],
        ids=scenario.map.ids[keep],
        points=scenario.map.points[points],
        starts=np.concatenate([[0], np.cumsum(lengths[keep])]).astype(np.int32),
        stop_signs=scenario.map.stop_signs - [[1, 0]],
    )
    assert len(measured(replace(scenario, map=bare)).of("walking_speed")) == 0


def test_cyclists_are_timed_while_they_ride() -> None:
    roads = two_lane_road()
    line = roads.line("right 0", "right 1")
    size = (1.8, 0.6, 1.8)
    cyclists = [Agent(line, 9 * i, speed, kind=AgentType.CYCLIST, size=size) for i, speed in enumerate((0.0, 5.0))]
    found = measured(make_scenario(roads, Agent(roads.line("left 0"), 5, 10), *cyclists))
    assert found.of("cycling_speed") == pytest.approx([5.0], abs=0.01)


def test_every_published_figure_is_of_a_measured_quantity() -> None:
    for figure in FIGURES:
        known = GAP_KINDS if figure.statistic is Statistic.CRITICAL_GAP else QUANTITIES
        assert figure.quantity in known, figure
        assert figure.low <= figure.high


@pytest.mark.parametrize(
    ("statistic", "ours", "words"),
    [
        (Statistic.MEAN, 50.0, "50.00"),
        (Statistic.P15, 15.0, "15.00"),
        (Statistic.P85, 85.0, "85.00"),
        (Statistic.RANGE, 11 / 101, "11% within"),
        (Statistic.BELOW, 30 / 101, "30% below"),
        (Statistic.ABOVE, 80 / 101, "79% above"),
    ],
)
def test_our_value_uses_the_published_statistic(statistic: Statistic, ours: float, words: str) -> None:
    figure = Figure("jerk", statistic, 20.0, 30.0, "somebody")
    empty = measured()
    sample = replace(empty, values=empty.values | {"jerk": np.arange(101.0)})
    assert figure.ours(sample.of("jerk")) == pytest.approx(ours)
    assert compare(figure, sample) == words
    assert compare(figure, empty) == "–"


def test_without_observations_values_are_null_and_not_zero(tmp_path: Path) -> None:
    empty = measured()
    summary = summarize(empty)
    for found in summary["quantities"].values():
        assert found["n"] == 0
        assert found["mean"] is found["p50"] is None
    assert set(summary["critical_gap_s"].values()) == set(summary["lane_changes_per_km"].values()) == {None}
    assert markdown(empty).count("no observations") == len(QUANTITIES)
    assert len(draw(empty, tmp_path)) == len(PICTURES)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Return the traffic of two scenarios of each class."""
    path = tmp_path_factory.mktemp("town") / "town.pack"
    generate_pack(GenerateConfig(count=24, seed=11), path, processes=1)
    with Pack(path) as pack:
        return measure(pack)


@pytest.mark.row("SCEN-3")
def test_generated_traffic_drives_like_people(town: Sample) -> None:
    """Check medians against wide limits of human driving; docs/traffic.md has the values."""
    bounds = {
        "free_speed_freeway": (0.9, 1.1),
        "free_speed_street": (0.9, 1.1),
        "headway_freeway": (1.2, 2.8),
        "headway_street": (1.4, 3.0),
        "standing_gap": (1.2, 4.0),
        "stop_deceleration": (0.8, 3.0),
        "start_acceleration": (0.8, 2.5),
        "bend_lateral": (1.2, 3.5),
        "walking_speed": (1.1, 1.6),
        "cycling_speed": (3.5, 7.0),
    }
    medians = {name: float(np.median(town.of(name))) for name in bounds if len(town.of(name)) >= 10}
    assert len(medians) >= 7
    outside = {name: median for name, median in medians.items() if not bounds[name][0] < median < bounds[name][1]}
    assert outside == {}


def test_plots_are_small_and_the_same_every_time(town: Sample, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        draw(town, folder)
    assert sorted(path.name for path in one.iterdir()) == sorted(f"traffic_{name}.png" for name in PICTURES)
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()
        assert path.stat().st_size < 300_000
        with Image.open(path) as picture:
            assert min(picture.size) > 600
