"""Records: the time to write episodes with traces, their size, and the time to summarize a million rows."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.runner import Measurements, Sizes
from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRIAL_METRICS, driving_metrics
from roadworthy.record import AgentRow, EpisodeResult, EpisodeRow, Run, RunWriter, Trace, TrialRow
from roadworthy.record.journal import ColumnNames
from roadworthy.record.run import LEDGER
from roadworthy.record.tables import TABLES, table_schema, with_version, write_table
from roadworthy.record.traces import decode_trace, encode_trace

_HEADER: dict[str, Any] = {"config": {}, "checkpoint": None}
_TAGS = ("hard_stop", "merge", "roundabout", "cut_in")
_AT_ONCE = 100_000


def write_run(found: Measurements, sizes: Sizes) -> None:
    """Append episodes with traces to a run, seal it, and read its traces."""
    rng = np.random.default_rng(7)
    count, agents, steps = sizes["episodes"], sizes["agents"], sizes["steps"]
    results = [_result(rng, number, agents, steps) for number in range(min(count, 50))]
    names = [f"{number}-r0" for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        writer = RunWriter.start(folder, "town", "random", _HEADER, _ledger(names, names))
        spent = 0.0
        for number, name in enumerate(names):
            result = _named(results[number % len(results)], name)
            before = time.process_time()
            with found.stage("append"):
                writer.append(result)
            spent += time.process_time() - before
        found.figures["append, us of CPU per episode"] = round(spent / count * 1e6)
        with found.stage("seal"):
            writer.seal(driving_metrics)
        traces = [path.read_bytes() for path in sorted((writer.folder / "traces").iterdir())]
        for block in traces[:50]:
            with found.stage("read a trace"):
                trace = decode_trace(block)
            with found.stage("encode a trace"):
                encode_trace(trace)
        total = sum(map(len, traces))
        found.figures |= {
            "traces, bytes per agent and frame": round(total / (count * agents * (steps + 1)), 2),
            "1,000 traces, MB": round(total / count * 1000 / 1e6, 1),
            "journal, bytes per episode": round((writer.folder / "episodes.jsonl").stat().st_size / count),
        }


def summarize(found: Measurements, sizes: Sizes) -> None:
    """Time all figures of a sealed run with many episodes, one ego each, with few scenarios and with many."""
    count = sizes["episodes"]
    for what, scenarios in (("few scenarios", max(count // 1000, 1)), ("no scenario twice", count)):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(_sealed(Path(folder), count, scenarios))
            with found.stage(what):
                metrics = driving_metrics(run)
        found.figures[f"{what}: figures"] = len(metrics["figures"])


def _sealed(root: Path, count: int, scenarios: int) -> Path:
    """Return a run folder with this number of rows, which are written directly to its tables."""
    writer = RunWriter.start(root, "town", "random", _HEADER, _ledger([], []))
    writer.interrupt()
    rng = np.random.default_rng(7)
    names = ColumnNames(
        outcomes={"score"},
        agents={m.column for m in (*AGENT_METRICS, *RATIO_METRICS)} | {"distance_m"},
        trials={m.column for m in TRIAL_METRICS},
    )
    episodes = [f"{number}-r0" for number in range(count)]
    places = [f"town-{number % scenarios:07d}" for number in range(count)]
    for table in TABLES:
        schema = table_schema(table, names)
        parts = (
            _part(rng, schema, at, episodes[at : at + _AT_ONCE], places[at : at + _AT_ONCE])
            for at in range(0, count, _AT_ONCE)
        )
        write_table(writer.folder / f"{table}.parquet", schema, parts)
    ledger = with_version(_ledger(episodes, places))
    write_table(writer.folder / LEDGER, ledger.schema, [ledger])
    return writer.folder


def _part(rng: np.random.Generator, schema: pa.Schema, first: int, episodes: list[str], places: list[str]) -> pa.Table:
    count = len(episodes)
    given = {
        "episode": pa.array(np.arange(first, first + count)),
        "episode_id": pa.array(episodes),
        "scenario_id": pa.array(places),
        "status": pa.array(["completed"] * count),
        "tags": pa.array([[_TAGS[number % len(_TAGS)]] for number in range(count)]),
    }
    columns = []
    for f in schema:
        if f.name in given:
            columns.append(given[f.name])
        elif f.name.startswith(("figures.", "outcomes.")):
            is_real = f.name.split(".")[1] in {m.column for m in AGENT_METRICS}
            columns.append(pa.array(rng.random(count) if is_real else (rng.random(count) < 0.1).astype(np.float64)))
        elif pa.types.is_integer(f.type):
            columns.append(pa.array(np.zeros(count, np.int64)).cast(f.type))
        else:
            columns.append(pa.nulls(count, f.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _ledger(episodes: list[str], scenarios: list[str]) -> pa.Table:
    return pa.table({"episode_id": pa.array(episodes, pa.string()), "scenario_id": pa.array(scenarios, pa.string())})


def _result(rng: np.random.Generator, number: int, agents: int, steps: int) -> EpisodeResult:
    """Return an episode of egos on smooth paths, with figures like the simulator's."""
    name = f"{number}-r0"
    trace = _trace(rng, name, agents, steps)
    rows = [_figures(rng) for _ in range(agents)]
    episode = EpisodeRow(
        name, "town", name, number, 0, 0, 0, 0, steps - 1, steps, 1, "completed", 1.0, tags=("merge",), outcomes=rows[0]
    )
    return EpisodeResult(
        episode,
        tuple(AgentRow(name, a, 0, 0, steps - 1, figures) for a, figures in enumerate(rows)),
        tuple(TrialRow(name, a, 0, 0, 0, steps - 1, figures) for a, figures in enumerate(rows)),
        trace,
    )


def _figures(rng: np.random.Generator) -> dict[str, float | None]:
    figures: dict[str, float | None] = {m.column: float(rng.random() < 0.2) for m in (*TRIAL_METRICS, *RATIO_METRICS)}
    return figures | {m.column: float(np.float32(rng.random())) for m in AGENT_METRICS}


def _trace(rng: np.random.Generator, name: str, agents: int, steps: int) -> Trace:
    """Return the motion of cars that steer and accelerate slightly, in float32."""
    shape = (steps + 1, agents)
    dt = 0.1
    asked = np.round(rng.normal(0.0, 2.0, shape)).clip(-3, 3)
    turned = np.round(rng.normal(0.0, 3.0, shape)).clip(-6, 6)
    speed = np.abs(8.0 + np.cumsum(asked * dt, axis=0))
    heading = rng.uniform(-3.0, 3.0, agents) + np.cumsum(turned * 0.01 * speed * dt, axis=0)
    x = rng.uniform(-200.0, 200.0, agents) + np.cumsum(speed * np.cos(heading) * dt, axis=0)
    y = rng.uniform(-200.0, 200.0, agents) + np.cumsum(speed * np.sin(heading) * dt, axis=0)
    ones = np.ones(agents, np.float32)
    f4 = np.float32
    return Trace(
        episode_id=name,
        scenario_id=name,
        dt=dt,
        trial_starts=np.array([0, steps + 1], np.int32),
        x=x.astype(f4),
        y=y.astype(f4),
        heading=heading.astype(f4),
        speed=speed.astype(f4),
        present=np.ones(shape, np.bool_),
        active=np.ones(shape, np.bool_),
        events=(rng.random(shape) < 0.1).astype(np.uint16) * np.uint16(64),
        actions=np.stack([asked + 3, turned + 6], axis=-1).astype(np.int8),
        length=ones * f4(4.5),
        width=ones * f4(1.9),
        kinds=np.ones(agents, np.int8),
        roles=np.zeros(agents, np.int8),
        sources=np.full(agents, -1, np.int32),
        goals=rng.uniform(-200.0, 200.0, (agents, 4, 2)).astype(f4),
        goal_counts=np.full(agents, 4, np.int32),
        extra={
            "acceleration": asked.astype(f4),
            "lateral": (speed**2 * turned * 0.01).astype(f4),
            "jerk": np.diff(asked, axis=0, prepend=0.0).astype(f4),
            "steering": (turned * 0.05).astype(f4),
        },
    )


def _named(result: EpisodeResult, name: str) -> EpisodeResult:
    assert result.trace is not None
    return EpisodeResult(
        replace(result.episode, episode_id=name, scenario_id=name),
        tuple(replace(row, episode_id=name) for row in result.agents),
        tuple(replace(row, episode_id=name) for row in result.trials),
        replace(result.trace, episode_id=name, scenario_id=name),
    )
