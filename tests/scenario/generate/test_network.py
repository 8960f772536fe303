"""Properties of every generated road network: the lane graph, its geometry, turns, stop lines, right of way."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from roadworthy.scenario.generate.network import Control, Turn
from roadworthy.scenario.schema import LaneType
from tests.scenario.generate.sites import Site, draw_site

# Map polylines are simplified to within 2 cm and stored as float32.
THINNED_M = 0.03


def turned(points: np.ndarray) -> float:
    """Return rad from a polyline's first direction to its last, left positive."""
    steps = np.diff(points, axis=0)
    directions = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    return float(directions[-1] - directions[0])


def test_lanes_lead_into_their_successors_in_place_heading_and_curvature(sites: list[Site]) -> None:
    for site in sites:
        for number, lane in enumerate(site.lanes):
            for follower in lane.successors:
                end, start = lane.end, site.lanes[follower].start
                where = f"{site.name}: lane {number} to {follower}"
                assert np.hypot(end.x - start.x, end.y - start.y) < 1e-6, where
                assert abs((end.heading - start.heading + np.pi) % (2 * np.pi) - np.pi) < 1e-6, where
                assert end.curvature == pytest.approx(start.curvature, abs=1e-6), where


def test_the_map_has_the_lanes_of_the_network_in_their_places(sites: list[Site]) -> None:
    for site in sites:
        assert list(site.road_map.check()) == []
        assert site.road_map.lane_count == len(site.lanes)
        for number, lane in enumerate(site.lanes):
            samples = shapely.points(lane.path.x, lane.path.y)
            assert shapely.distance(site.center_lines[number], samples).max() < THINNED_M, (site.name, number)
            assert site.center_lines[number].length == pytest.approx(lane.path.length, rel=2e-3, abs=0.05)


def test_the_map_has_the_successors_of_lanes(sites: list[Site]) -> None:
    for site in sites:
        pairs = {(i, j) for i, lane in enumerate(site.lanes) for j in lane.successors}
        assert {tuple(pair) for pair in site.road_map.successors.tolist()} == pairs
        for i, j in pairs:
            end, start = site.polyline(i)[-1], site.polyline(j)[0]
            assert np.hypot(*(end - start)) < 1e-3, (site.name, i, j)


def test_neighbors_are_parallel_at_a_constant_distance(sites: list[Site]) -> None:
    for site in sites:
        left = {(int(i), int(j)) for i, j in site.road_map.left_neighbors}
        right = {(int(i), int(j)) for i, j in site.road_map.right_neighbors}
        assert left == {(j, i) for i, j in right}, site.name
        for i, j in left:
            where = f"{site.name}: lane {i} and {j} on its left"
            width = (site.road_map.lane_widths[i] + site.road_map.lane_widths[j]) / 2
            away = shapely.distance(site.center_lines[j], shapely.points(site.polyline(i)))
            np.testing.assert_allclose(away, width, rtol=0, atol=2 * THINNED_M, err_msg=where)
            here, beside = site.lanes[i].start, site.lanes[j].start
            side = np.cos(here.heading) * (beside.y - here.y) - np.sin(here.heading) * (beside.x - here.x)
            assert side == pytest.approx(width, abs=1e-3), where
            assert site.lanes[i].type == site.lanes[j].type, where


def leads_nowhere(site: Site, number: int) -> bool:
    """Return whether a lane ends on the road: it has no successor, but the road continues."""
    lane = site.lanes[number]
    beyond = lane.end.shifted(ahead=1.0)
    return not lane.successors and not lane.ends and shapely.contains_xy(site.surface, beyond.x, beyond.y)


def comes_from_nowhere(site: Site, number: int) -> bool:
    """Return whether a lane starts on the road without a predecessor."""
    before = site.lanes[number].start.shifted(ahead=-1.0)
    return not site.predecessors[number] and shapely.contains_xy(site.surface, before.x, before.y)


def test_only_lanes_that_leave_the_map_or_close_have_no_successor(sites: list[Site]) -> None:
    for site in sites:
        for number, lane in enumerate(site.lanes):
            if lane.type != LaneType.BIKE_LANE:
                assert not leads_nowhere(site, number), f"{site.name}: lane {number}"
            if lane.ends:
                assert lane.left >= 0, f"{site.name}: lane {number} closes without a lane to change into"


def test_a_bicycle_lane_continues_through_every_junction(sites: list[Site]) -> None:
    for site in sites:
        for number, lane in enumerate(site.lanes):
            if lane.type == LaneType.BIKE_LANE:
                assert not leads_nowhere(site, number), f"{site.name}: bicycle lane {number}"


def test_traffic_enters_the_map_on_exactly_the_lanes_that_start_at_its_border(sites: list[Site]) -> None:
    for site in sites:
        begin_there = [
            number
            for number in range(len(site.lanes))
            if not site.predecessors[number] and not comes_from_nowhere(site, number)
        ]
        assert sorted(site.network.entries) == begin_there, site.name
        for number, lane in enumerate(site.lanes):
            if lane.type != LaneType.BIKE_LANE:
                assert not comes_from_nowhere(site, number), f"{site.name}: lane {number}"


def test_where_lanes_enter_and_leave_the_map_they_are_clear_of_all_others(sites: list[Site]) -> None:
    for site in sites:
        for number, lane in enumerate(site.lanes):
            ends = [] if lane.successors else [lane.end]
            ends += [] if site.predecessors[number] else [lane.start]
            for end in ends:
                away = shapely.distance(site.center_lines, shapely.Point(end.x, end.y))
                widths = (site.road_map.lane_widths + lane.width) / 2
                too_close = set(np.flatnonzero(away < widths - 2 * THINNED_M).tolist()) - {number}
                assert not too_close, f"{site.name}: lane {number} lies over {too_close}"


def test_movements_turn_as_they_are_named(sites: list[Site]) -> None:
    for site in sites:
        for number, lane in enumerate(site.lanes):
            angle = np.rad2deg(turned(site.polyline(number)))
            where = f"{site.name}: lane {number} is {lane.turn.name} and turns by {angle:.0f} degrees"
            assert (lane.junction >= 0) == (lane.turn != Turn.NONE), where
            if lane.junction < 0:
                continue
            assert lane.approach < 0 or number in site.lanes[lane.approach].successors, where
            if lane.turn == Turn.RING:
                assert np.ptp(lane.path.curvature) < 1e-9 < lane.path.curvature[0], where
            elif not site.is_roundabout(lane.junction):
                expected = Turn.STRAIGHT if abs(angle) < 35 else Turn.LEFT if angle > 0 else Turn.RIGHT
                assert lane.turn == expected or abs(abs(angle) - 35) < 3, where


def test_every_road_of_a_junction_leads_to_every_other(sites: list[Site]) -> None:
    for site in sites:
        groups = [lane.group for lane in site.lanes]
        for junction in range(site.network.junctions):
            sources = {groups[i] for i in site.approaches(junction)}
            assert len(sources) in (3, 4), (site.name, junction)
            for source in sources:
                front = [i for i in site.approaches(junction) if groups[i] == source]
                targets, seen = set(), set(front)
                while front:
                    for follower in site.lanes[front.pop()].successors:
                        if site.lanes[follower].junction < 0:
                            targets.add(groups[follower])
                        elif follower not in seen:
                            seen.add(follower)
                            front.append(follower)
                # Around a ring a driver can return to the same road, too.
                expected = len(sources) - (not site.is_roundabout(junction))
                assert len(targets) == expected, (site.name, junction, source)


def test_every_approach_of_a_junction_ends_at_a_stop_line_across_it(sites: list[Site]) -> None:
    for site in sites:
        road_map = site.road_map
        owners = road_map.stop_line_lanes.tolist()
        assert len(set(owners)) == len(owners), site.name
        for number, lane in enumerate(site.lanes):
            if lane.successors:
                enters = lane.junction < 0 and any(site.lanes[n].junction >= 0 for n in lane.successors)
                assert (number in owners) == enters, f"{site.name}: lane {number}"
        for number, (left, right) in zip(owners, road_map.stop_lines.astype(np.float64), strict=True):
            end, width = site.lanes[number].end, site.lanes[number].width
            where = f"{site.name}: stop line of lane {number}"
            np.testing.assert_allclose((left + right) / 2, [end.x, end.y], rtol=0, atol=1e-3, err_msg=where)
            expected = np.array([-np.sin(end.heading), np.cos(end.heading)]) * width
            np.testing.assert_allclose(left - right, expected, rtol=0, atol=1e-3, err_msg=where)


def test_stop_signs_stand_beside_the_road_right_of_an_approach_and_stop_its_movements(sites: list[Site]) -> None:
    for site in sites:
        signed = set()
        for sign, number in site.road_map.stop_signs.tolist():
            signed.add(number)
            end = site.lanes[site.lanes[number].approach].end
            dx, dy = site.polyline(sign)[0] - (end.x, end.y)
            left = np.cos(end.heading) * dy - np.sin(end.heading) * dx
            assert -12.0 < left < -site.lanes[number].width / 2, (site.name, sign)
            assert not site.surface.covers(shapely.Point(site.polyline(sign)[0])), (site.name, sign)
        assert signed == {i for i, lane in enumerate(site.lanes) if lane.control == Control.STOP}, site.name


def test_yielding_is_never_mutual(sites: list[Site]) -> None:
    for site in sites:
        pairs = {tuple(pair) for pair in site.road_map.yields.tolist()}
        assert not {(a, b) for a, b in pairs if (b, a) in pairs}, site.name
        for a, b in pairs:
            assert site.lanes[a].junction == site.lanes[b].junction >= 0, (site.name, a, b)


def test_traffic_that_enters_a_ring_yields_to_the_ring(sites: list[Site]) -> None:
    for site in sites:
        pairs = {tuple(pair) for pair in site.road_map.yields.tolist()}
        for number, lane in enumerate(site.lanes):
            if lane.control != Control.YIELD:
                continue
            rings = [i for i in site.predecessors[lane.successors[0]] if i != number]
            assert [site.lanes[i].turn for i in rings] == [Turn.RING], (site.name, number)
            assert (number, rings[0]) in pairs, (site.name, number)


def test_side_streets_stop_and_yield_where_there_are_not_lights(sites: list[Site]) -> None:
    for site in sites:
        pairs = {tuple(pair) for pair in site.road_map.yields.tolist()}
        for a, lane in enumerate(site.lanes):
            for b, other in enumerate(site.lanes):
                if lane.junction != other.junction or lane.control != Control.STOP or other.control != Control.FREE:
                    continue
                assert (a, b) in pairs, f"{site.name}: lane {a} has a stop sign, but does not yield to {b}"


@pytest.mark.row("SCEN-3")
def test_all_parts_of_road_networks_occur() -> None:
    found = set()
    for site in (draw_site(7, number) for number in range(24)):
        network, lanes = site.network, site.lanes
        lit = {plan.junction for plan in network.signals}
        for lane in lanes:
            if lane.junction < 0:
                found.add("straight road" if np.abs(lane.path.curvature[:50]).max() < 1e-3 else "curved road")
            if lane.type == LaneType.FREEWAY and lane.left >= 0 and lane.right >= 0:
                found.add("multi-lane highway")
            if lane.type == LaneType.FREEWAY and len(lane.successors) > 1:
                found.add("off-ramp")
            if lane.ends:
                found.add("merge")
        if any(lanes[n].ends for entry in network.entries for n in lanes[entry].successors):
            found.add("on-ramp")
        for junction in range(network.junctions):
            if site.is_roundabout(junction):
                found.add("roundabout")
            else:
                light = "signalised" if junction in lit else "unsignalized"
                found.add(f"{light} {'T-junction' if site.arms(junction) == 3 else 'crossing'}")
        found |= {"crosswalk"} if network.crosswalks else set()
        found |= {"crosswalk between junctions"} if any(c.junction < 0 for c in network.crosswalks) else set()
        found |= {"parking lane"} if network.parking else set()
        found |= {"bicycle lane"} if any(lane.type == LaneType.BIKE_LANE for lane in lanes) else set()
    assert found == {
        "straight road",
        "curved road",
        "multi-lane highway",
        "on-ramp",
        "off-ramp",
        "merge",
        "signalised crossing",
        "unsignalized crossing",
        "signalised T-junction",
        "unsignalized T-junction",
        "roundabout",
        "crosswalk",
        "crosswalk between junctions",
        "parking lane",
        "bicycle lane",
    }


def test_the_same_seed_gives_the_same_network_and_another_seed_another() -> None:
    for number in (0, 1):
        first, same, other = draw_site(3, number), draw_site(3, number), draw_site(4, number)
        np.testing.assert_array_equal(first.road_map.points, same.road_map.points)
        assert not np.array_equal(first.road_map.points, other.road_map.points)
