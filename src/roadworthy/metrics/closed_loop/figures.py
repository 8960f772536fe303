"""The closed-loop score of an ego in a trial, with its parts and the substitutes that affected it.

    score = (product of the multipliers) * (weighted mean of the graded parts)

    multipliers     no_at_fault_collision, drivable_area, making_progress, driving_direction
    graded parts    progress 5, time_to_collision 5, speed_limit 4, comfort_in_bounds 2

Parts without a value are left out of the product and of the mean. Weights and definitions are nuPlan's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from roadworthy.at_fault import CollisionType
from roadworthy.metrics.closed_loop.collisions import Collisions, collisions
from roadworthy.metrics.closed_loop.comfort import comfort
from roadworthy.metrics.closed_loop.drivable_area import drivable_area
from roadworthy.metrics.closed_loop.driving_direction import driving_direction
from roadworthy.metrics.closed_loop.lane_map import LaneMap
from roadworthy.metrics.closed_loop.lane_places import LanePlaces
from roadworthy.metrics.closed_loop.motion import EgoTrial, ego_trial
from roadworthy.metrics.closed_loop.progress import progress
from roadworthy.metrics.closed_loop.route import Route, driven_lanes
from roadworthy.metrics.closed_loop.speed_limit import limits, speed_limit
from roadworthy.metrics.closed_loop.time_to_collision import TimeToCollision, time_to_collision
from roadworthy.record.traces import Trace
from roadworthy.scenario.schema import Scenario

SCORE = "closed_loop_score"
MULTIPLIERS = ("no_at_fault_collision", "drivable_area", "making_progress", "driving_direction")
WEIGHTS = {"progress": 5.0, "time_to_collision": 5.0, "speed_limit": 4.0, "comfort_in_bounds": 2.0}
# 1 if it applies in this trial, else 0.
SUBSTITUTES = {
    "default_width_decided": "the default width of a lane affected a part",
    "left_all_lanes": "the ego was on no lane at some frame",
    "no_recorded_route": "the recorded car was on no lane: progress counts as complete",
    "no_speed_limit": "no frame had a known speed limit",
    "no_road_edges": "the map has no road edges",
}
FIGURES = (SCORE, *MULTIPLIERS, *WEIGHTS, *SUBSTITUTES)


def closed_loop_figures(trace: Trace, scenario: Scenario, agent: int, trial: int) -> Mapping[str, float]:
    """Return the closed-loop score of an ego in a trial, with its parts and substitutes.

    Args:
        trace: the motion of all agents
        scenario: the recording that the episode started from
        agent: the ego's column in the trace
        trial: number of the trial

    Returns:
        A value for each of FIGURES; NaN for all where the score does not apply: agents that are not vehicles, or that
        did not start from a recording.
    """
    motion = ego_trial(trace, scenario, agent, trial)
    return dict.fromkeys(FIGURES, math.nan) if motion is None else trial_figures(motion, LaneMap.of(scenario.map))


def trial_figures(trial: EgoTrial, lane_map: LaneMap) -> dict[str, float]:
    """Return the figures of a trial on a map."""
    ego, places = trial.ego, LanePlaces.of(lane_map, trial.ego)
    route = driven_lanes(places)
    found = collisions(trial, places)
    approach = time_to_collision(trial, places, found)
    along_route = progress(ego, trial.expert, places)
    parts = {
        "no_at_fault_collision": found.multiplier(trial.others),
        "drivable_area": drivable_area(ego, places),
        "making_progress": along_route.is_enough,
        "driving_direction": driving_direction(ego, route, lane_map, trial.dt),
        "progress": along_route.ratio,
        "time_to_collision": approach.within_bound,
        "speed_limit": speed_limit(ego, route, lane_map, trial.dt),
        "comfort_in_bounds": comfort(ego, trial.dt),
    }
    substitutes = {
        "default_width_decided": _default_width_decided(places, found, approach, parts, route),
        "left_all_lanes": not all(route),
        "no_recorded_route": not along_route.has_route,
        "no_speed_limit": not any(map(math.isfinite, limits(route, lane_map))),
        "no_road_edges": not len(lane_map.edges.x),
    }
    return {SCORE: closed_loop_score(parts), **parts, **{name: float(flag) for name, flag in substitutes.items()}}


def closed_loop_score(parts: Mapping[str, float]) -> float:
    """Return the score of a trial from its parts; those that are NaN are left out."""
    factor = math.prod(parts[name] for name in MULTIPLIERS if not math.isnan(parts[name]))
    known = [name for name in WEIGHTS if not math.isnan(parts[name])]
    weight = math.fsum(WEIGHTS[name] for name in known)
    return factor * math.fsum(WEIGHTS[name] * parts[name] for name in known) / weight if weight else math.nan


def _default_width_decided(
    places: LanePlaces, found: Collisions, approach: TimeToCollision, parts: Mapping[str, float], route: Route
) -> bool:
    """Return whether the default width of a lane decided a part.

    It does where it is near the ego at a lateral collision, or at a frame where being within lanes decides the time to
    collision; where the direction of driving, the speed limit or the progress lost something on a lane without a known
    width; and where lanes without a known width decide about the drivable area.
    """
    lane_map, unsure = places.lane_map, places.rests_on_default_width
    if lane_map.has_width.all():
        return False
    lateral = [hit.frame for hit in found.found if hit.kind == CollisionType.LATERAL]
    on_default = any(not lane_map.has_width[lane] for lanes in route for lane in lanes)
    lost = min(parts["driving_direction"], parts["speed_limit"], parts["progress"]) < 1.0
    return bool(
        unsure[lateral].any()
        or (unsure & approach.decided_by_lanes).any()
        or (on_default and lost)
        or (not len(lane_map.edges.x) and unsure.any())
    )
