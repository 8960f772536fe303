"""WOMD records with the properties of real recordings: the effects of trackers, maps and lights on a clean scene.

The roads and the traffic are the generator's. This module adds what makes recordings different, from a seed: noise,
gaps, tracks that start late and end early, crowds of parked cars that overlap, agents far away, maps that were cut out
of a city, lights that are listed as unknown or not listed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.schema import AgentType, FeatureKind, LightState, RoadMap, Scenario
from tests.scenario.importers.encoder import frame, womd_message

Doubles = NDArray[np.float64]

ORIGIN = np.array([8123.0, -4711.0, 37.0])  # of a city's frame
SLOPE = 0.03
RADIUS_M = 130.0  # of the map around the self-driving car
FAR_M = 2e5
CAR_M, WALKER_M = (4.7, 2.0, 1.6), (0.8, 0.8, 1.8)
BIG_AGENT_COUNT = 150


# Seed, class of the traffic, and whether the self-driving car waits at a red light.
SCENES = ((11, "protected_left", False), (15, "protected_left", True), (13, "hard_stop", False), (16, "merge", False))
WAITING = 1  # of them


@cache
def recorded_data(seed: int, behavior: str, waits: bool) -> bytes:
    """Return the bytes of `recorded_message`."""
    data: bytes = recorded_message(seed, behavior, waits).SerializeToString(deterministic=True)
    return data


def write_recordings(path: Path) -> Path:
    """Write a TFRecord file of all SCENES."""
    path.write_bytes(b"".join(frame(recorded_data(*scene)) for scene in SCENES))
    return path


def recorded_message(seed: int, behavior: str = "protected_left", waits: bool = False) -> Any:
    """Return a WOMD scenario as it might have been recorded; waits: the self-driving car stands at a red light."""
    rng = np.random.default_rng(seed)
    scenario = _waiting(seed, behavior) if waits else generate_scenario(seed, behavior, 0)
    scenario = _crowded(scenario, rng)
    true_places = scenario.positions[scenario.sdc, :, :2].astype(np.float64)
    scenario = _tracked(_hilly(scenario), rng)
    message = womd_message(replace(scenario, id=f"{seed:016x}"))
    _jitter_times(message, rng)
    _spoil_states(message, rng)
    _cut_map(message, true_places + ORIGIN[:2])
    _add_oddities(message, rng, true_places[10] + ORIGIN[:2])
    _spoil_lanes(message, rng)
    _flicker_lights(message, rng)
    _name_tracks(message, rng)
    return message


def _waiting(seed: int, behavior: str) -> Scenario:
    """Return a scene in which a car before a light is the self-driving one, and the light is always red."""
    for index in range(40):
        scenario = generate_scenario(seed, behavior, index)
        if not len(scenario.light_lanes):
            continue
        moved = np.ptp(scenario.positions[:, :, :2], axis=1).max(axis=1)
        ways = scenario.positions[:, None, 0, :2] - scenario.light_stops[None, :, :2]
        distances = np.hypot(ways[..., 0], ways[..., 1])
        is_fit = scenario.valid.all(axis=1) & (scenario.agent_types == AgentType.VEHICLE) & (moved < 0.2)
        distances[~is_fit] = np.inf
        car, light = np.unravel_index(int(np.argmin(distances)), distances.shape)
        if distances[car, light] < 12.0:
            states = scenario.light_states.copy()
            states[light] = LightState.STOP
            return replace(scenario, sdc=int(car), light_states=states)
    raise AssertionError(f"nobody stands before a light in {behavior} of seed {seed}")


def _crowded(scenario: Scenario, rng: np.random.Generator) -> Scenario:
    """Add parked cars beside the road, some of them tracked twice, pedestrians on sidewalks, and an agent far away."""
    edges = [scenario.map.polyline(f)[:, :2].astype(np.float64) for f in scenario.map.features(FeatureKind.ROAD_EDGE)]
    pieces = np.concatenate([np.hstack([edge[:-1], np.diff(edge, axis=0)]) for edge in edges])
    pieces = pieces[np.hypot(pieces[:, 2], pieces[:, 3]) > 0.1]
    time = scenario.dt * np.arange(scenario.steps)
    kinds, sizes, places, headings, velocities = [], [], [], [], []
    while scenario.agent_count + len(kinds) < BIG_AGENT_COUNT:
        x, y, dx, dy = pieces[rng.integers(len(pieces))]
        along, right = np.array([dx, dy]) / np.hypot(dx, dy), np.array([dy, -dx]) / np.hypot(dx, dy)
        is_walker = rng.random() < 0.3
        for copy in range(1 if is_walker else rng.integers(1, 3)):
            offset = right * (rng.uniform(1.0, 3.0) if is_walker else 4.0 + rng.uniform(0, 0.5)) + along * 1.1 * copy
            speed = rng.uniform(0.8, 1.6) if is_walker and rng.random() < 0.7 else 0.0
            places.append(np.array([x, y]) + offset + time[:, None] * speed * along)
            headings.append(np.full(scenario.steps, np.arctan2(along[1], along[0])))
            velocities.append(np.tile(speed * along, (scenario.steps, 1)))
            kinds.append(AgentType.PEDESTRIAN if is_walker else AgentType.VEHICLE)
            sizes.append(WALKER_M if is_walker else CAR_M)
    places[-1] = places[-1] + FAR_M
    count, steps = len(kinds), scenario.steps
    flat = np.concatenate([np.array(places), np.zeros((count, steps, 1))], axis=2)
    return replace(
        scenario,
        agent_ids=np.arange(scenario.agent_count + count),
        agent_types=np.concatenate([scenario.agent_types, np.array(kinds, np.uint8)]),
        sizes=np.concatenate([scenario.sizes, np.array(sizes, np.float32)]),
        positions=np.concatenate([scenario.positions, flat.astype(np.float32)]),
        headings=np.concatenate([scenario.headings, np.array(headings, np.float32)]),
        velocities=np.concatenate([scenario.velocities, np.array(velocities, np.float32)]),
        valid=np.concatenate([scenario.valid, np.ones((count, steps), np.bool_)]),
    )


def _hilly(scenario: Scenario) -> Scenario:
    """Return the scenario on a slope, in a city's frame."""
    points, positions = scenario.map.points.copy(), scenario.positions.copy()
    points[:, 2] = SLOPE * points[:, 0]
    positions[:, :, 2] = SLOPE * np.clip(positions[:, :, 0], -500, 500) + 0.8
    road_map: RoadMap = replace(scenario.map, points=points, origin=ORIGIN)
    return replace(scenario, map=road_map, positions=positions)


def _tracked(scenario: Scenario, rng: np.random.Generator) -> Scenario:
    """Add the errors of a tracker: correlated noise, and interrupted tracks. The self-driving car is tracked well."""
    agents, steps = scenario.valid.shape
    is_car = np.arange(agents) == scenario.sdc
    noise = np.zeros((agents, steps, 2))
    drawn = rng.normal(0, 0.02, (agents, steps, 2))
    for k in range(1, steps):
        noise[:, k] = 0.95 * noise[:, k - 1] + drawn[:, k]
    noise[is_car] *= 0.02
    positions = scenario.positions.copy()
    positions[:, :, :2] += noise
    angle_noise = np.where(is_car, 0.0005, 0.02)[:, None]
    headings = scenario.headings + rng.normal(0, 1, (agents, steps)) * angle_noise
    headings += 2 * np.pi * rng.integers(-1, 2, (agents, 1))  # angles need not be wrapped
    velocities = (
        scenario.velocities + rng.normal(0, 1, (agents, steps, 2)) * np.where(is_car, 0.005, 0.15)[:, None, None]
    )
    valid = scenario.valid.copy()
    for agent in np.flatnonzero(~is_car):
        draw = rng.random()
        if draw < 0.3:
            begin = rng.integers(2, steps - 12)
            valid[agent, begin : begin + rng.integers(1, 10)] = False
        elif draw < 0.45:
            valid[agent, : rng.integers(12, steps - 5)] = False
        elif draw < 0.6:
            valid[agent, rng.integers(12, steps - 5) :] = False
    return replace(
        scenario,
        positions=positions.astype(np.float32),
        headings=headings.astype(np.float32),
        velocities=velocities.astype(np.float32),
        valid=valid,
    )


def _jitter_times(message: Any, rng: np.random.Generator) -> None:
    times = 0.1 * np.arange(len(message.timestamps_seconds)) + rng.uniform(
        -0.004, 0.004, len(message.timestamps_seconds)
    )
    del message.timestamps_seconds[:]
    message.timestamps_seconds.extend(times.tolist())


def _spoil_states(message: Any, rng: np.random.Generator) -> None:
    """Add sizes that change from step to step, and values in states that are not valid."""
    for track in message.tracks:
        for state in track.states:
            if state.valid:
                state.length *= 1 + rng.normal(0, 0.01)
                state.width *= 1 + rng.normal(0, 0.01)
            else:
                state.center_x, state.center_y, state.center_z = ORIGIN + rng.uniform(-50, 50, 3)
                state.length = state.width = state.height = -1.0
                state.heading, state.velocity_x, state.velocity_y = rng.uniform(-9, 9, 3)


def _cut_map(message: Any, car: Doubles) -> None:
    """Remove map features far from the path of the self-driving car, but keep links to them."""
    middle = car.mean(axis=0)
    for number in range(len(message.map_features) - 1, -1, -1):
        feature = message.map_features[number]
        name = _kind_of(feature)
        if name == "stop_sign":
            continue
        line = getattr(
            getattr(feature, name), "polygon" if name in ("crosswalk", "speed_bump", "driveway") else "polyline"
        )
        near = [np.hypot(p.x - middle[0], p.y - middle[1]) < RADIUS_M for p in line]
        if not any(near):
            del message.map_features[number]
        elif name in ("lane", "road_line", "road_edge") and not all(near):
            kept = [[(p.x, p.y, p.z) for p in line][begin:end] for begin, end in _runs(near)]
            del line[:]
            for x, y, z in kept[0]:
                line.add(x=x, y=y, z=z)
            for k, part in enumerate(kept[1:] if name != "lane" else []):
                copy = message.map_features.add(id=10_000 + 100 * number + k)
                copy_line = getattr(copy, name)
                copy_line.type = getattr(feature, name).type
                for x, y, z in part:
                    copy_line.polyline.add(x=x, y=y, z=z)


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    """Yield start and end of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _kind_of(feature: Any) -> str:
    return next(field.name for field, _ in feature.ListFields() if field.name != "id")


def _add_oddities(message: Any, rng: np.random.Generator, car: Doubles) -> None:
    """Add a road edge of one point, closed ones, speed bumps, driveways, a stop sign for a lane that was removed."""
    ids = iter(range(90_000, 91_000))
    beside = car + rng.uniform(40, 60, 2)

    def add(kind: str, field: str, corners: Doubles) -> Any:
        feature = message.map_features.add(id=next(ids))
        shape = getattr(feature, kind)
        for x, y in beside + corners:
            getattr(shape, field).add(x=x, y=y, z=ORIGIN[2])
        return shape

    square = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 2.0], [2.0, 0.0], [0.0, 0.0]])
    add("road_edge", "polyline", square[:1]).type = 1
    add("road_edge", "polyline", square).type = 2
    add("road_edge", "polyline", square[[0, 0, 1, 1, 2]] + 5.0).type = 1  # repeated points
    add("road_line", "polyline", square[:1]).type = 1
    add("speed_bump", "polygon", square[:4] + 8.0)
    add("driveway", "polygon", square + 12.0)
    sign = message.map_features.add(id=next(ids)).stop_sign
    sign.lane.append(77_777)
    sign.position.x, sign.position.y, sign.position.z = *beside, ORIGIN[2]
    lonely = message.map_features.add(id=next(ids)).lane  # links to lanes that do not exist
    for x in np.linspace(0, 20, 41):
        lonely.polyline.add(x=beside[0] + x, y=beside[1] + 20, z=ORIGIN[2])
    lonely.entry_lanes.append(88_888)


def _spoil_lanes(message: Any, rng: np.random.Generator) -> None:
    """Add unknown speed limits, repeated points, and neighbors along only a part of the lane."""
    lanes = {feature.id: feature.lane for feature in message.map_features if feature.HasField("lane")}
    for lane in lanes.values():
        if rng.random() < 0.3:
            lane.ClearField("speed_limit_mph")
        if rng.random() < 0.2 and len(lane.polyline) > 2:
            points = list(lane.polyline)
            k = int(rng.integers(len(points)))
            del lane.polyline[:]
            lane.polyline.extend([*points[: k + 1], *points[k:]])
        for neighbor in (*lane.left_neighbors, *lane.right_neighbors):
            if neighbor.feature_id in lanes:
                end, its_end = len(lane.polyline) - 1, len(lanes[neighbor.feature_id].polyline) - 1
                neighbor.self_start_index, neighbor.self_end_index = end // 4, end
                neighbor.neighbor_start_index, neighbor.neighbor_end_index = its_end // 4, its_end


def _flicker_lights(message: Any, rng: np.random.Generator) -> None:
    """List lights as unknown or not at all for a while, and move their stop points."""
    lanes = sorted({shown.lane for step in message.dynamic_map_states for shown in step.lane_states})
    steps = len(message.dynamic_map_states)
    spans = {lane: np.sort(rng.integers(0, steps, 4)) for lane in lanes}
    moves = {lane: rng.uniform(-0.4, 0.4, 2) for lane in lanes}
    for k, step in enumerate(message.dynamic_map_states):
        for number in range(len(step.lane_states) - 1, -1, -1):
            shown = step.lane_states[number]
            unknown, known, gone, back = spans[shown.lane]
            if gone <= k < back:
                del step.lane_states[number]
                continue
            if unknown <= k < known:
                shown.state = 0
            shown.stop_point.x += moves[shown.lane][0] * (k >= known)
            shown.stop_point.y += moves[shown.lane][1] * (k >= known)
    if lanes:
        message.dynamic_map_states[0].lane_states.add(lane=99_999, state=4)


def _name_tracks(message: Any, rng: np.random.Generator) -> None:
    """Set ids with gaps, tracks to predict, objects of interest."""
    ids = rng.choice(6000, len(message.tracks), replace=False)
    for track, id in zip(message.tracks, ids.tolist(), strict=True):
        track.id = id
    now = message.current_time_index
    there = [
        k
        for k, track in enumerate(message.tracks)
        if track.states[now].valid and k != message.sdc_track_index and abs(track.states[now].center_x) < 1e5
    ]
    del message.tracks_to_predict[:]
    for k in sorted(rng.choice(there, 6, replace=False).tolist()):
        message.tracks_to_predict.add(track_index=k, difficulty=int(rng.integers(0, 3)))
    message.objects_of_interest.extend(ids[there[:2]].tolist())
