"""Derive factors of driving that rows lack from the run's settings, scenarios and traces.

    class             the behavior class of the scenario: the first of its tags that is a choice of the factor
    agents_at_start   the number of road users in the world at the start of the episode, including egos
    speed_limit_mps   the mean speed limit of the lanes on which the egos started
    policy            the policy
    env.reward.goal   this or any other setting of the run's config, which varies between runs
    light             an argument of a job's environment, with or without the prefix `arguments.`

Rows already hold the hidden factors (grip, steering_gain, brake_gain, traffic_haste, partner).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roadworthy.record.run import trace_path
from roadworthy.sensitivity.factors import Categorical, Continuous, Factor
from roadworthy.sensitivity.names import find
from roadworthy.sensitivity.sources import table_of

if TYPE_CHECKING:
    from roadworthy.record import Run
    from roadworthy.record.traces import Trace
    from roadworthy.scenario.pack import Pack
    from roadworthy.scenario.schema import RoadMap

CLASS, AGENTS, SPEED_LIMIT, POLICY = "class", "agents_at_start", "speed_limit_mps", "policy"
START = (CLASS, AGENTS, SPEED_LIMIT)  # what every driving run has, without naming it
_ALONG_RAD = np.pi / 4  # the largest angle between an ego and its lane
_NEAR_M = 5.0  # the largest distance from an ego to the center of its lane


def derived(folder: Path, rows: Sequence[Mapping[str, Any]], factors: Iterable[Factor]) -> list[dict[str, Any]]:
    """Return, for each row of a run, the values of the factors that can be derived; None where there is no value."""
    from roadworthy.record import Run

    run = Run(folder)
    found: list[dict[str, Any]] = [{} for _ in rows]
    wanted = {factor.name: factor for factor in factors}
    for name, factor in wanted.items():
        value = run.header.get(POLICY) if name == POLICY else _value(run.header, name)
        for place, row in zip(found, rows, strict=True):
            place[name] = _tag(row, factor) if name == CLASS else value
    if AGENTS in wanted or SPEED_LIMIT in wanted:
        starts = _Starts(run)
        for place, row in zip(found, rows, strict=True):
            place |= starts.of(row)
    return found


def with_start_factors(folder: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a run; those of driving are completed with the factors of `START` that they lack."""
    from roadworthy.record import Run
    from roadworthy.scenario.detect import BEHAVIORS

    config = Run(folder).header.get("config")
    if not isinstance(config, Mapping) or "scenarios" not in config:
        return [dict(row) for row in rows]
    # Ranges are not used to derive a value.
    wanted = (Categorical(CLASS, BEHAVIORS), Continuous(AGENTS, 0.0, 1.0), Continuous(SPEED_LIMIT, 0.0, 1.0))
    found = []
    for row, values in zip(rows, derived(folder, rows, wanted), strict=True):
        if values[CLASS] not in BEHAVIORS:
            values[CLASS] = None
        known = {name: value for name, value in values.items() if value is not None}
        found.append({**row, "factors": {**known, **table_of(row, "factors")}})
    return found


def _tag(row: Mapping[str, Any], factor: Factor) -> str | None:
    tags = [str(tag) for tag in row.get("tags") or ()]
    choices = factor.choices if isinstance(factor, Categorical) else ()
    return next((tag for tag in tags if tag in choices), tags[0] if tags else None)


def _value(header: Mapping[str, Any], name: str) -> float | str | None:
    """Return a setting of a run by its dotted name, or an argument of its environment by the end of its name."""
    config = header.get("config")
    found = _setting(config, name)
    if found is None and isinstance(config, Mapping) and isinstance(config.get("arguments"), Mapping):
        with suppress(ValueError):  # the name is ambiguous
            found = find(name, {"arguments": config["arguments"]})
    return found if isinstance(found, int | float | str) else None


def _setting(config: Any, name: str) -> float | str | None:
    """Return a value of nested settings by its dotted name."""
    for part in name.split("."):
        config = config.get(part) if isinstance(config, Mapping) else None
    return config if isinstance(config, int | float | str) else None


class _Starts:
    """Factors from the first frame of the traces of a run."""

    def __init__(self, run: Run) -> None:
        from roadworthy.errors import RoadworthyError
        from roadworthy.scenario.pack import Pack

        self._run, self._error = run, RoadworthyError
        self._pack: Pack | None = Pack(run.pack) if run.pack.is_file() else None
        self._lanes: dict[int, _Lanes] = {}

    def of(self, row: Mapping[str, Any]) -> dict[str, float | None]:
        """Return both factors of one row."""
        episode = str(row.get("episode_id"))
        try:
            if not self._run.place(trace_path(episode)).exists():  # the episode failed, or traces were not kept
                return {AGENTS: None, SPEED_LIMIT: None}
            trace = self._run.trace(episode)
        except self._error:  # the trace is damaged
            return {AGENTS: None, SPEED_LIMIT: None}
        return {AGENTS: float(trace.present[0].sum()), SPEED_LIMIT: self._limit(trace)}

    def _limit(self, trace: Trace) -> float | None:
        if self._pack is None:
            return None
        number = self._pack.map_number(self._pack.number(trace.scenario_id))
        if number not in self._lanes:
            self._lanes[number] = _Lanes(self._pack.map(number))
        egos = np.flatnonzero(trace.active[0])
        limits = [self._lanes[number].limit(trace.x[0, k], trace.y[0, k], trace.heading[0, k]) for k in egos]
        known = [limit for limit in limits if limit is not None]
        return float(np.mean(known)) if known else None


class _Lanes:
    """The center lines of a map as segments."""

    def __init__(self, road_map: RoadMap) -> None:
        lines = [road_map.polyline(lane)[:, :2].astype(np.float64) for lane in range(road_map.lane_count)]
        self._from = np.concatenate([line[:-1] for line in lines])
        self._along = np.concatenate([np.diff(line, axis=0) for line in lines])
        pieces = [len(line) - 1 for line in lines]
        self._limits = np.repeat(road_map.speed_limits.astype(np.float64), pieces)

    def limit(self, x: float, y: float, heading: float) -> float | None:
        """Return the speed limit of the nearest lane in this direction; None if there is none, or it has no limit."""
        turned = np.arctan2(self._along[:, 1], self._along[:, 0]) - heading
        offset = np.array([x, y]) - self._from
        length = np.maximum(np.square(self._along).sum(axis=1), 1e-9)
        share = np.clip((offset * self._along).sum(axis=1) / length, 0.0, 1.0)
        distance = np.hypot(*(offset - share[:, None] * self._along).T)
        distance[np.cos(turned) < np.cos(_ALONG_RAD)] = np.inf
        nearest = int(distance.argmin())
        limit = float(self._limits[nearest])
        return limit if distance[nearest] <= _NEAR_M and np.isfinite(limit) else None
