"""Write an episode of a run as a file for the Rerun viewer: map, lights, motion, events and curves on one timeline.

The viewer's 2D views can't turn boxes and draw y downward, so the scene is 3D: the map lies at z = 0 and boxes stand on
it. Traces hold no heights; boxes are drawn `HEIGHT_M` high.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rerun as rr
import rerun.blueprint as rrb
from numpy.typing import NDArray
from rerun.error_utils import catch_and_log_exceptions

from roadworthy.errors import UsageError
from roadworthy.folders import require_writable
from roadworthy.record import Run
from roadworthy.record.traces import ROLES, Trace, TraceEvent
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, FeatureKind, LightState, RoadMap, Scenario
from roadworthy.spelling import closest
from roadworthy.viewer.light_program import program_states

SUFFIX = ".rrd"
GOAL = "goal reached"
HEIGHT_M = 1.5
TRAIL_S = 3.0
# The colors of the viewer's page, see static/playback.css.
_ROLE_COLORS = dict(zip(ROLES, (0xFF7A3DFF, 0xF0B429FF, 0x4BA3EEFF, 0x8FD0FFFF, 0x6F7A88FF), strict=True))
_FEATURES = {  # the kind of feature, its color, and whether it is a polygon
    "lanes": (FeatureKind.LANE, 0x6F7A88FF, False),
    "edges": (FeatureKind.ROAD_EDGE, 0xC9D0D8FF, False),
    "crosswalks": (FeatureKind.CROSSWALK, 0xE386BDFF, True),
}
_RED, _AMBER, _GREEN, _DARK = 0xF0433AFF, 0xFFB020FF, 0x2FCE71FF, 0x7D8590FF
_CAUTIONS = (LightState.CAUTION, LightState.ARROW_CAUTION, LightState.FLASHING_CAUTION)
_COLORS = {**dict.fromkeys(RED_STATES, _RED), **dict.fromkeys(_CAUTIONS, _AMBER), **dict.fromkeys(GREEN_STATES, _GREEN)}
_LAMPS = np.array([_COLORS.get(state, _DARK) for state in LightState], np.uint32)


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    bytes: int
    frames: int
    agents: int
    note: str | None  # why there is no map, None if there is one


def export_rerun(run: Run, episode_id: str, path: str | Path) -> Exported:
    """Write an episode as an .rrd file; an existing file is replaced.

    Args:
        run: The run, of which only the record and the pack are read.
        episode_id: An episode with a trace.
        path: The file to write, with the suffix .rrd.

    Raises:
        UsageError: The run has no such episode, the episode has no trace, or the path has another suffix.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise UsageError(f"{path}: the Rerun viewer opens files named *{SUFFIX}; name one, such as episode{SUFFIX}")
    ids = run.whole_ledger["episode_id"].to_pylist()
    if episode_id not in ids:
        guess = closest(episode_id, ids)
        hint = f" (did you mean {guess!r}?)" if guess else f"; its first one is {ids[0]!r}" if ids else ""
        raise UsageError(f"{run.folder}: the run has no episode {episode_id!r}{hint}; its ledger.parquet lists them")
    trace = run.trace(episode_id)
    planned = run.whole_ledger.slice(ids.index(episode_id), 1).to_pylist()[0]
    require_writable(path.parent)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{SUFFIX}")
    recording = rr.RecordingStream("roadworthy", recording_id=f"{run.header.get('run_id')}-{episode_id}")
    if not rr.is_enabled(recording):
        raise UsageError("the environment variable RERUN turns recordings off; unset it")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with catch_and_log_exceptions("export", strict=True):  # without strict, Rerun turns errors into warnings
            recording.save(temporary, default_blueprint=_blueprint(trace))
            recording.send_recording_name(f"{run.header.get('policy')} {episode_id}")
            note = _send_place(recording, run, planned, trace)
            _send_motion(recording, trace)
            _send_events(recording, trace)
            recording.flush()
        recording.disconnect()  # completes the file
        temporary.replace(path)
    finally:
        recording.disconnect()
        temporary.unlink(missing_ok=True)
    return Exported(path, path.stat().st_size, trace.frame_count, trace.agent_count, note)


def events_of(trace: Trace) -> Iterator[tuple[int, int, str]]:
    """Yield frame, agent and words of what happens to driven agents; what lasts is one event, at its first frame."""
    hit = "contact, not at fault" if trace.judges_fault else "collision"
    kinds = {
        "collision at fault": (TraceEvent.AT_FAULT, 0),
        hit: (TraceEvent.COLLISION, TraceEvent.AT_FAULT),
        "off road": (TraceEvent.OFF_ROAD, 0),
        "red light": (TraceEvent.RED_LIGHT, 0),
        "stop sign": (TraceEvent.STOP_SIGN, 0),
        GOAL: (TraceEvent.GOAL, 0),
    }
    before = np.roll(trace.events, 1, axis=0)
    before[trace.trial_starts[:-1]] = 0
    for words, (bit, unless) in kinds.items():
        begins = (trace.events & bit > 0) & (trace.events & unless == 0)
        if words != GOAL:
            begins &= before & bit == 0
        for frame, agent in np.argwhere(begins).tolist():
            yield frame, agent, words


def _times(trace: Trace, frames: NDArray[np.int64]) -> list[rr.TimeColumn]:
    return [rr.TimeColumn("step", sequence=frames), rr.TimeColumn("time", duration=frames * trace.dt)]


def _name(trace: Trace, agent: int) -> str:
    return f"{ROLES[trace.roles[agent]]} {agent}"


def _egos(trace: Trace) -> list[int]:
    return np.flatnonzero(trace.roles == ROLES.index("ego")).tolist()


def _send_place(recording: rr.RecordingStream, run: Run, planned: dict[str, Any], trace: Trace) -> str | None:
    """Write the map and the lights; return why there are none."""
    number = planned.get("scenario")
    if number is None or number < 0 or not run.pack.is_file():
        return "the run has no scenarios, so there is no map"
    with Pack(run.pack) as pack:
        scenario = pack[number]
        _send_map(recording, scenario.map)
        if len(scenario.light_lanes):
            env = (run.header.get("config") or {}).get("env") or {}
            _send_lights(recording, scenario, _light_states(scenario, env, planned.get("seed") or 0, trace), trace)
    return None


def _send_map(recording: rr.RecordingStream, road_map: RoadMap) -> None:
    for name, (kind, color, is_polygon) in _FEATURES.items():
        strips = [_flat(road_map.polyline(feature)[:, :2]) for feature in road_map.features(kind)]
        if is_polygon:
            strips = [np.concatenate([strip, strip[:1]]) for strip in strips]
        recording.log(f"world/map/{name}", rr.LineStrips3D(strips, colors=np.array([color], np.uint32)), static=True)


def _light_states(scenario: Scenario, env: dict[str, Any], seed: int, trace: Trace) -> NDArray[np.uint8]:
    """Return what the lights show in each frame, (F, L)."""
    steps = int(np.diff(trace.trial_starts).max())
    if env.get("mode") == "open":
        states = program_states(scenario, seed, steps)
    else:
        start = env.get("init_steps", scenario.current_step)
        recorded = scenario.light_states[:, start : start + steps]
        states = np.pad(recorded, ((0, 0), (0, steps - recorded.shape[1])))  # UNKNOWN is 0
    return np.concatenate([states[:, :count].T for count in np.diff(trace.trial_starts)])


def _send_lights(recording: rr.RecordingStream, scenario: Scenario, states: NDArray[np.uint8], trace: Trace) -> None:
    stops = _flat(scenario.light_stops[:, :2])
    recording.log("world/lights", rr.Points3D(stops, radii=[0.8]), static=True)
    changes = np.flatnonzero(np.append(True, (states[1:] != states[:-1]).any(1)))
    colors = rr.Points3D.columns(colors=_LAMPS[states[changes]].ravel())
    recording.send_columns("world/lights", _times(trace, changes), colors.partition([len(stops)] * len(changes)))


def _send_motion(recording: rr.RecordingStream, trace: Trace) -> None:
    """Write the boxes of all agents, and trails and curves of egos."""
    recording.log("world", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    every = np.arange(trace.frame_count)
    for agent in range(trace.agent_count):
        role = ROLES[trace.roles[agent]]
        place, color = f"world/agents/{role}/{agent}", np.array([_ROLE_COLORS[role]], np.uint32)
        fixed = rr.Boxes3D.from_fields(colors=color, labels=[_name(trace, agent)], show_labels=role == "ego")
        recording.log(place, fixed, static=True)
        there = trace.present[:, agent]
        x, y, half_turn = trace.x[there, agent], trace.y[there, agent], trace.heading[there, agent] / 2
        zeros, half = np.zeros_like(x), np.array([trace.length[agent] / 2, trace.width[agent] / 2, HEIGHT_M / 2])
        boxes = rr.Boxes3D.columns(
            centers=np.column_stack([x, y, zeros + half[2]]),
            half_sizes=np.tile(half, (len(x), 1)),
            quaternions=np.column_stack([zeros, zeros, np.sin(half_turn), np.cos(half_turn)]),
        )
        recording.send_columns(place, _times(trace, every), boxes.partition(there.astype(int)))
    for agent in _egos(trace):
        _send_ego(recording, trace, agent)


def _send_ego(recording: rr.RecordingStream, trace: Trace, agent: int) -> None:
    there, steps = trace.present[:, agent], round(TRAIL_S / trace.dt)
    points, strips, since = _flat(np.column_stack([trace.x[:, agent], trace.y[:, agent]])), [], 0
    for frame in range(trace.frame_count):
        since = frame if frame in trace.trial_starts or not there[frame - 1] else since
        if there[frame]:
            strips.append(points[max(since, frame - steps) : frame + 1])
    place = f"world/trails/{agent}"
    color = np.array([_ROLE_COLORS["ego"]], np.uint32)
    recording.log(place, rr.LineStrips3D.from_fields(colors=color), static=True)
    trails = rr.LineStrips3D.columns(strips=strips).partition(there.astype(int))
    recording.send_columns(place, _times(trace, np.arange(len(there))), trails)
    if "acceleration" in trace.extra:
        acceleration, is_known = trace.extra["acceleration"][:, agent], trace.active[:, agent]
    else:
        acceleration = np.diff(trace.speed[:, agent], prepend=np.float32(0)) / np.float32(trace.dt)
        is_known = there & np.roll(there, 1)
        is_known[trace.trial_starts[:-1]] = False
    for name, values, known in (("speed", trace.speed[:, agent], there), ("acceleration", acceleration, is_known)):
        rows = np.flatnonzero(known & np.isfinite(values))
        if len(rows):
            recording.log(f"{name}/{agent}", rr.SeriesLines(names=[_name(trace, agent)]), static=True)
            recording.send_columns(f"{name}/{agent}", _times(trace, rows), rr.Scalars.columns(scalars=values[rows]))


def _send_events(recording: rr.RecordingStream, trace: Trace) -> None:
    """Write the starts of trials and the events of agents as a log, and the number of the trial as a curve."""
    starts = trace.trial_starts[:-1].tolist()
    lines = [(frame, f"trial {number + 1} starts", "INFO") for number, frame in enumerate(starts)]
    for frame, agent, words in events_of(trace):
        lines.append((frame, f"{_name(trace, agent)}: {words}", "INFO" if words == GOAL else "WARN"))
    lines.sort(key=lambda line: line[0])
    frames, texts, levels = zip(*lines, strict=True)
    logged = rr.TextLog.columns(text=texts, level=levels)
    recording.send_columns("events", _times(trace, np.array(frames)), logged)
    trial = np.repeat(np.arange(1, trace.trial_count + 1), np.diff(trace.trial_starts))
    recording.send_columns("trial", _times(trace, np.arange(len(trial))), rr.Scalars.columns(scalars=trial))


def _blueprint(trace: Trace) -> rrb.Blueprint:
    """Return the first view: the scene around the first ego, the curves and the log."""
    egos = _egos(trace)
    eye = rrb.EyeControls3D(tracking_entity=f"world/agents/ego/{egos[0]}") if egos else None
    curves = [rrb.TimeSeriesView(origin=name, name=name) for name in ("speed", "acceleration", "trial")]
    side = rrb.Vertical(*curves, rrb.TextLogView(origin="events", name="events"))
    scene = rrb.Spatial3DView(origin="world", name="scene", eye_controls=eye)
    return rrb.Blueprint(rrb.Horizontal(scene, side, column_shares=[2, 1]), collapse_panels=True)


def _flat(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return points (n, 2) at z = 0."""
    return np.column_stack([points, np.zeros(len(points), np.float32)])
