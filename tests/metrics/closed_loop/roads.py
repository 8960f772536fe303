"""Small roads and drives for the tests of the closed-loop score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roadworthy.metrics.closed_loop.motion import Body, EgoTrial, Others
from roadworthy.record.traces import Trace
from roadworthy.scenario.schema import AgentType, FeatureKind, LaneType, RoadMap, Scenario

DT = 0.1
LENGTH, WIDTH = 5.0, 2.0


@dataclass(frozen=True)
class Lane:
    """A lane to be built into a map."""

    points: Sequence[tuple[float, float]]
    width: float = 3.5
    limit: float = np.nan
    successors: Sequence[int] = ()
    left: Sequence[int] = ()
    right: Sequence[int] = ()
    type: LaneType = LaneType.SURFACE_STREET


def road_map(lanes: Sequence[Lane], edges: Sequence[Sequence[tuple[float, float]]] = ()) -> RoadMap:
    """Build a map of lanes and road edges."""
    lines = [np.array(line, np.float32) for line in (*(lane.points for lane in lanes), *edges)]
    kinds = [FeatureKind.LANE] * len(lanes) + [FeatureKind.ROAD_EDGE] * len(edges)
    return RoadMap(
        origin=np.zeros(3),
        points=np.concatenate([np.column_stack([line, np.zeros(len(line), np.float32)]) for line in lines]),
        starts=np.cumsum([0, *map(len, lines)]).astype(np.int32),
        kinds=np.array(kinds, np.uint8),
        types=np.array([*(lane.type for lane in lanes), *(1 for _ in edges)], np.uint8),
        ids=np.arange(len(lines), dtype=np.int64),
        speed_limits=np.array([lane.limit for lane in lanes], np.float32),
        lane_widths=np.array([lane.width for lane in lanes], np.float32),
        successors=_pairs([lane.successors for lane in lanes]),
        left_neighbors=_pairs([lane.left for lane in lanes]),
        right_neighbors=_pairs([lane.right for lane in lanes]),
        yields=np.zeros((0, 2), np.int32),
        stop_signs=np.zeros((0, 2), np.int32),
        stop_lines=np.zeros((0, 2, 2), np.float32),
        stop_line_lanes=np.zeros(0, np.int32),
    )


def _pairs(related: Sequence[Sequence[int]]) -> Any:
    pairs = [(lane, other) for lane, others in enumerate(related) for other in others]
    return np.array(pairs, np.int32).reshape(-1, 2)


@dataclass(frozen=True)
class Drive:
    """The motion of one road user: (F,) each, or a number for all frames."""

    x: Any
    y: Any = 0.0
    heading: Any = 0.0
    speed: Any = 0.0
    type: AgentType = AgentType.VEHICLE
    length: float = LENGTH
    width: float = WIDTH
    present: Any = True


def body(drive: Drive, frames: int) -> Body:
    """Return the ego of a drive."""
    motion = (
        np.broadcast_to(np.asarray(part, np.float64), frames).copy()
        for part in (drive.x, drive.y, drive.heading, drive.speed)
    )
    return Body(*motion, length=drive.length, width=drive.width)  # type: ignore[misc]


def trial(ego: Drive, tracks: Sequence[Drive] = (), frames: int = 1, expert: Drive | None = None) -> EgoTrial:
    """Return a trial of an ego among tracks."""
    bodies = [body(track, frames) for track in tracks]

    def column(name: str) -> Any:
        return np.stack([getattr(one, name) for one in bodies], axis=1) if bodies else np.zeros((frames, 0))

    others = Others(
        x=column("x"),
        y=column("y"),
        heading=column("heading"),
        speed=column("speed"),
        present=np.stack([np.broadcast_to(t.present, frames) for t in tracks], axis=1)
        if tracks
        else np.zeros((frames, 0), np.bool_),
        length=np.array([track.length for track in tracks]),
        width=np.array([track.width for track in tracks]),
        types=np.array([track.type for track in tracks], np.int8),
        is_static=np.zeros(len(tracks), np.bool_),
    )
    return EgoTrial(DT, body(ego, frames), others, body(expert or ego, frames))


@dataclass(frozen=True)
class Recorded:
    """A scenario, and the trace of a trial that started from it."""

    scenario: Scenario
    trace: Trace
    extra: Mapping[str, Any] = field(default_factory=dict)


def recorded(
    road: RoadMap, expert: Drive, ego: Drive, tracks: Sequence[Drive] = (), frames: int = 151, history: int = 10
) -> Recorded:
    """Return a scenario whose recorded car drives like the expert, and a trial in which the ego drives in its place."""
    steps = frames + history
    experts = [body(one, frames) for one in (expert, *tracks)]
    egos = [body(one, frames) for one in (ego, *tracks)]
    assert (experts[0].x[0], experts[0].y[0]) == (egos[0].x[0], egos[0].y[0]), "a trial starts where its recording does"

    def early(values: Any) -> Any:
        return np.concatenate([np.full(history, values[0]), values])

    def frames_of(name: str) -> Any:
        return np.stack([getattr(one, name) for one in egos], axis=1).astype(np.float32)

    agents = len(experts)
    speed = np.stack([early(one.speed) for one in experts])
    heading = np.stack([early(one.heading) for one in experts])
    x, y = (np.stack([early(getattr(one, name)) for one in experts]) for name in ("x", "y"))
    # Before the trial the recorded car stands elsewhere, so that only one step of the recording is the start.
    x[:, :history] -= np.arange(history, 0, -1) * 0.5
    sizes = np.array([[one.length, one.width, 1.5] for one in (expert, *tracks)], np.float32)
    types = np.array([one.type for one in (expert, *tracks)])
    scenario = Scenario(
        id="made-up",
        source="test",
        tags=(),
        dt=DT,
        current_step=history,
        map=road,
        agent_ids=np.arange(agents, dtype=np.int64),
        agent_types=types.astype(np.uint8),
        sizes=sizes,
        positions=np.stack([x, y, np.zeros_like(x)], axis=-1).astype(np.float32),
        headings=heading.astype(np.float32),
        velocities=np.stack([speed * np.cos(heading), speed * np.sin(heading)], axis=-1).astype(np.float32),
        valid=np.ones((agents, steps), np.bool_),
        sdc=0,
        predict=np.zeros(0, np.int32),
        light_lanes=np.zeros(0, np.int32),
        light_stops=np.zeros((0, 3), np.float32),
        light_states=np.zeros((0, steps), np.uint8),
    )
    trace = Trace(
        episode_id="e",
        scenario_id="made-up",
        dt=DT,
        trial_starts=np.array([0, frames], np.int32),
        x=frames_of("x"),
        y=frames_of("y"),
        heading=frames_of("heading"),
        speed=frames_of("speed"),
        present=np.ones((frames, agents), np.bool_),
        active=np.ones((frames, agents), np.bool_),
        events=np.zeros((frames, agents), np.uint16),
        actions=np.zeros((frames, agents, 2), np.float32),
        length=sizes[:, 0],
        width=sizes[:, 1],
        kinds=types.astype(np.int8),
        roles=np.array([0] + [2] * len(tracks), np.int8),
        sources=np.arange(agents, dtype=np.int32),
        goals=np.zeros((agents, 1, 2), np.float32),
        goal_counts=np.zeros(agents, np.int32),
    )
    assert trace.inconsistency() is None
    scenario.require_sound()
    return Recorded(scenario, trace)


def straight(length: float = 400.0, **kwargs: Any) -> RoadMap:
    """Return one lane along x, with road edges 1.75 m beside it."""
    edges = [[(length, 1.75), (0.0, 1.75)], [(0.0, -1.75), (length, -1.75)]]
    return road_map([Lane([(0.0, 0.0), (length, 0.0)], **kwargs)], edges)


def two_lanes(length: float = 400.0, **kwargs: Any) -> RoadMap:
    """Return two lanes along x, at y = 0 and y = 3.5, with road edges beside them."""
    edges = [[(length, 5.25), (0.0, 5.25)], [(0.0, -1.75), (length, -1.75)]]
    lanes = [
        Lane([(0.0, 0.0), (length, 0.0)], left=[1], **kwargs),
        Lane([(0.0, 3.5), (length, 3.5)], right=[0], **kwargs),
    ]
    return road_map(lanes, edges)


def crossing() -> RoadMap:
    """Return a road along x whose lanes end at a junction, straight over and to the left.

    Lanes: 0 and 1 lead to it (x from 0 to 100, y = 0 and 3.5), 2 crosses it from lane 0, 3 from lane 1, 4 turns left
    from lane 1, 5 and 6 lead away (x from 130 to 300), 7 leads away to the north (from y = 33.5 on).
    """
    arc = np.linspace(0.0, 0.5 * np.pi, 31)
    turn = [(100.0 + 30.0 * np.sin(a), 3.5 + 30.0 * (1.0 - np.cos(a))) for a in arc]
    lanes = [
        Lane([(0.0, 0.0), (50.0, 0.0), (100.0, 0.0)], limit=14.0, successors=[2], left=[1]),
        Lane([(0.0, 3.5), (100.0, 3.5)], limit=14.0, successors=[3, 4], right=[0]),
        Lane([(100.0, 0.0), (130.0, 0.0)], limit=np.nan, successors=[5]),
        Lane([(100.0, 3.5), (130.0, 3.5)], limit=np.nan, successors=[6]),
        Lane(turn, limit=np.nan, successors=[7]),
        Lane([(130.0, 0.0), (300.0, 0.0)], limit=11.0, left=[6]),
        Lane([(130.0, 3.5), (300.0, 3.5)], limit=11.0, right=[5]),
        Lane([(130.0, 33.5), (130.0, 300.0)], limit=9.0),
    ]
    outline = [(0, -3), (300, -3), (300, 6), (133, 6), (133, 300), (127, 300), (127, 40), (95, 6), (0, 6), (0, -3)]
    return road_map(lanes, [[(float(x), float(y)) for x, y in outline]])
