"""Rows of a run: the result of each episode, of each ego in it, and of each trial.

In memory a result is a tree: an episode with its agents and trials. On disk it is one line of `episodes.jsonl`, which
holds the figures of agents and trials column by column, each name once. NaN means no data: null in files, None in rows.
Whole numbers are written without a decimal point, which halves the time to write and read them. Fields that a later
minor version adds are kept under `more`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from roadworthy.errors import UsageError
from roadworthy.record.schema import VERSION, require_readable
from roadworthy.record.traces import Trace

Status = Literal["completed", "failed"]
Figures = Mapping[str, float | None]

# Fields that say where and when an episode ran. All others are the same for every engine.
PLACE_FIELDS = ("world", "slot", "first_step", "last_step", "wall_s")


@dataclass(frozen=True)
class EpisodeRow:
    """One ended episode of a world."""

    episode_id: str  # unique in the run
    evaluator: str
    scenario_id: str
    seed: int  # uint64, of all draws in the episode
    replicate: int
    world: int  # of the batch that it ran in
    slot: int  # the process of the engine
    first_step: int  # of that batch, counted from its reset
    last_step: int  # inclusive
    steps: int  # in all trials of the episode together
    trials: int  # trials that have ended
    status: Status
    wall_s: float  # from its first step to its end; worlds of one batch share that time
    error: str | None = None  # why it failed
    tags: tuple[str, ...] = ()  # the behavior classes of the scenario
    factors: Mapping[str, float | str] = field(default_factory=dict)  # requested and hidden ones
    outcomes: Figures = field(default_factory=dict)  # means over its egos
    artifacts: Mapping[str, str] = field(default_factory=dict)  # name: path relative to the run folder
    artifact_errors: Mapping[str, str] = field(default_factory=dict)  # name: reason why it is missing
    more: Mapping[str, Any] = field(default_factory=dict)  # fields of a later minor version


@dataclass(frozen=True)
class AgentRow:
    """One ego in its own episode, which may end before the world's; with `respawn`, each further one is an attempt."""

    episode_id: str
    agent: int  # its slot in the world
    attempt: int  # 0, or higher with respawn
    first_step: int  # of the world's episode
    last_step: int  # inclusive
    figures: Figures  # sim.rules.logs.figure_names
    # The source's id of the recorded agent that it replaces, None for a spawned agent. Runs of schema 1.0 lack it, so
    # it does not count when rows are compared.
    track_id: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TrialRow:
    """One ego in one trial."""

    episode_id: str
    agent: int
    attempt: int
    trial: int
    first_step: int  # of the world's episode
    last_step: int  # inclusive
    figures: Figures  # sim.rules.logs.TRIAL_FIGURES


@dataclass(frozen=True)
class EpisodeResult:
    """The result of an ended episode, as engines return it."""

    episode: EpisodeRow
    agents: tuple[AgentRow, ...] = ()
    trials: tuple[TrialRow, ...] = ()
    trace: Trace | None = None


AGENT_NUMBERS = ("agent", "attempt", "first_step", "last_step")
TRACK_ID = "track_id"
TRIAL_NUMBERS = ("agent", "attempt", "trial", "first_step", "last_step")
EPISODE_FIELDS = tuple(f.name for f in fields(EpisodeRow) if f.name != "more")
_EXACT = 2.0**53  # whole numbers below it have no digits that a float64 lacks
_KNOWN_FIELDS = frozenset((*EPISODE_FIELDS, "schema_version", "agent_rows", "trial_rows"))


def line_values(result: EpisodeResult, artifacts: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the values of a result's line in `episodes.jsonl`, without the trace; `artifacts` are added."""
    row = result.episode
    strangers = {agent.episode_id for agent in result.agents} | {trial.episode_id for trial in result.trials}
    strangers -= {row.episode_id}
    if strangers:
        raise UsageError(f"the result of episode {row.episode_id!r} holds rows of episode {min(strangers)!r}")
    values = {"schema_version": VERSION, **{name: getattr(row, name) for name in EPISODE_FIELDS}, **row.more}
    values["outcomes"] = {name: _number(value) for name, value in row.outcomes.items()}
    values["factors"] = {name: v if isinstance(v, str) else _float(v) for name, v in row.factors.items()}
    values["artifacts"] = {**row.artifacts, **(artifacts or {})}
    values["artifact_errors"] = dict(row.artifact_errors)
    values["agent_rows"] = {
        **_columns(result.agents, AGENT_NUMBERS),
        TRACK_ID: [None if row.track_id is None else int(row.track_id) for row in result.agents],
    }
    values["trial_rows"] = _columns(result.trials, TRIAL_NUMBERS)
    return values


def encode_line(values: Mapping[str, Any]) -> bytes:
    """Return a line of `episodes.jsonl`."""
    try:
        text = json.dumps(values, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        raise UsageError(
            f"episode {values['episode_id']!r} has {_infinite(values)}; expected finite numbers or None"
        ) from None
    return f"{text}\n".encode()


def parse_line(line: bytes, where: str) -> dict[str, Any] | None:
    """Return the values of a line of `episodes.jsonl`; None if the line is incomplete or not an episode."""
    try:
        values: dict[str, Any] = json.loads(line)
        version, _ = values["schema_version"], values["episode_id"]
    except (ValueError, KeyError, TypeError):
        return None
    require_readable(version, where)
    return values


def decode_line(values: Mapping[str, Any]) -> EpisodeResult:
    """Return the result that a line holds, without its trace."""
    known = {name: values[name] for name in EPISODE_FIELDS if name in values}
    known["tags"] = tuple(known.get("tags", ()))
    known["outcomes"] = {name: _float(value) for name, value in known.get("outcomes", {}).items()}
    episode = EpisodeRow(**known, more=more_fields(values))
    parts = _rows(values.get("agent_rows"), AGENT_NUMBERS)
    tracks = (values.get("agent_rows") or {}).get(TRACK_ID) or [None] * len(parts)  # lines of schema 1.0 have none
    agents = tuple(
        AgentRow(episode.episode_id, **part, track_id=track) for part, track in zip(parts, tracks, strict=True)
    )
    trials = tuple(TrialRow(episode.episode_id, **part) for part in _rows(values.get("trial_rows"), TRIAL_NUMBERS))
    return EpisodeResult(episode, agents, trials)


def more_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line that this version does not know."""
    return {name: value for name, value in values.items() if name not in _KNOWN_FIELDS}


def _columns(rows: Sequence[AgentRow] | Sequence[TrialRow], numbers: Sequence[str]) -> dict[str, Any]:
    names = list(rows[0].figures) if rows else []
    if all(list(row.figures) == names for row in rows):
        columns = zip(*(row.figures.values() for row in rows), strict=True)
    else:
        names = list(dict.fromkeys(name for row in rows for name in row.figures))
        columns = zip(*([row.figures.get(name) for name in names] for row in rows), strict=True)
    return {
        **{name: [int(getattr(row, name)) for row in rows] for name in numbers},
        "figures": {name: [_number(v) for v in column] for name, column in zip(names, columns, strict=True)},
    }


def _rows(columns: Mapping[str, Any] | None, numbers: Sequence[str]) -> list[dict[str, Any]]:
    if not columns:
        return []
    figures = columns["figures"]
    return [
        {
            **{name: columns[name][place] for name in numbers},
            "figures": {name: _float(values[place]) for name, values in figures.items()},
        }
        for place in range(len(columns[numbers[0]]))
    ]


def _number(value: Any) -> int | float | None:
    """Return a figure as files hold it, also for NumPy numbers; None for no data."""
    if value is None or value != value:
        return None
    return int(value) if value % 1 == 0 and abs(value) < _EXACT else float(value)


def _float(value: Any) -> float | None:
    """Return a figure as rows hold it."""
    return None if value is None or value != value else float(value)


def _plain(value: Any) -> Any:
    """Convert values that JSON does not know: mappings and NumPy numbers."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} can't be written to a row")


def _infinite(values: Any, name: str = "") -> str:
    """Return the name and value of the first number in a tree that is not finite."""
    if isinstance(values, float) and not math.isfinite(values):
        return f"{name} = {values}"
    if isinstance(values, list):
        return next((found for value in values if (found := _infinite(value, name))), "")
    for key, value in values.items() if isinstance(values, Mapping) else ():
        found = _infinite(value, f"{name}.{key}" if name else key)
        if found:
            return found
    return ""
