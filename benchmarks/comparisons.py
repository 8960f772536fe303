"""Compare two recorded runs with many episodes."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import roadworthy as rw
from benchmarks.runner import Measurements, Sizes
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.record import Run, RunWriter
from roadworthy.record.files import read_json, write_json
from roadworthy.record.journal import ColumnNames
from roadworthy.record.run import RUN
from roadworthy.record.tables import table_schema, with_version, write_table


def comparison(found: Measurements, sizes: Sizes) -> None:
    """Compare two runs of as many episodes, ten to a cluster, from their folders."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [write_run(Path(folder) / name, sizes["episodes"], seed) for seed, name in enumerate("ab")]
        for _ in range(sizes["repeats"]):
            with found.stage("one rate"):
                rw.compare(runs[0], runs[1], metrics=["success"])
            with found.stage("one mean"):
                rw.compare(runs[0], runs[1], metrics=["time_s"])
    found.figures["peak memory, GB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


def write_run(root: Path, episodes: int, seed: int) -> Path:
    """Write a complete run of invented outcomes, a column at a time."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(episodes)
    names = pa.array(np.char.add("s", numbers.astype(str)))
    ledger = pa.table(
        {
            "episode_id": pa.array(np.char.add(np.char.add("s", numbers.astype(str)), "-r0")),
            "scenario": pa.array(numbers, pa.int32()),
            "scenario_id": names,
            "seed": pa.array(numbers.astype(np.uint64)),
            "replicate": pa.array(np.zeros(episodes), pa.int32()),
            "factors": pa.array(["{}"] * episodes),
            "cluster": pa.array(np.char.add("map", (numbers // 10).astype(str))),
        }
    )
    few = ledger.slice(0, 0)
    with RunWriter.start(root, "grasp", f"policy-{seed}", {"config": {}, "checkpoint": None}, few) as writer:
        writer.seal(outcome_metrics)
    folder = writer.folder
    ledger = with_version(ledger)
    write_table(folder / "ledger.parquet", ledger.schema, [ledger])
    schema = table_schema(
        "episodes", ColumnNames(factors={}, outcomes={"success", "time_s"}, agents=set(), trials=set())
    )
    own = {name: ledger[name] for name in ("episode_id", "scenario_id", "seed", "replicate")}
    own["status"] = pa.array(["completed"] * episodes)
    own["outcomes.success"] = pa.array((rng.random(episodes) < 0.9).astype(np.float64))
    own["outcomes.time_s"] = pa.array(rng.exponential(size=episodes))
    columns = [
        own[field.name].cast(field.type) if field.name in own else pa.nulls(episodes, field.type) for field in schema
    ]
    write_table(folder / "episodes.parquet", schema, [pa.table(columns, schema=schema)])
    header = read_json(folder / RUN)
    write_json(folder / RUN, {**header, "owed": episodes})
    assert Run(folder).is_sealed
    return folder
