"""Every file of a run folder is valid by its JSON Schema, in every state of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from roadworthy.errors import RecordError, UsageError
from roadworthy.metrics.driving import driving_metrics
from roadworthy.record import Run, RunWriter
from roadworthy.record.schema import require_readable, schema, schema_names
from tests.record.made_up import HEADER, ids, ledger, result


def faults(name: str, value: Any) -> list[str]:
    validator = Draft202012Validator(schema(name), format_checker=Draft202012Validator.FORMAT_CHECKER)
    return [error.message for error in validator.iter_errors(json.loads(json.dumps(value)))]


def check(folder: Path) -> set[str]:
    """Validate every file of a run folder by its schema, and return the schemas."""
    used = set()
    for path in sorted(folder.rglob("*")):
        values: dict[str, list[Any]] = {}
        if path.suffix == ".json":
            values[path.stem] = [json.loads(path.read_text())]
        elif path.suffix == ".jsonl":
            values[f"{path.stem}_line"] = [json.loads(line) for line in path.read_text().splitlines() if line]
        elif path.suffix == ".parquet":
            values[f"{path.stem}_row"] = pq.read_table(path).to_pylist()
        elif path.suffix == ".trace":
            block = path.read_bytes()
            length = int.from_bytes(block[12:16], "little")
            values["trace_directory"] = [json.loads(block[20 : 20 + length])]
        elif path.name.startswith(".lock-"):
            values["lock"] = [json.loads(path.read_text())]
        else:
            assert path.is_dir(), f"{path} has no schema"
        for name, items in values.items():
            assert [fault for item in items for fault in faults(name, item)] == [], path
            used |= {name} if items else set()
    return used


@pytest.mark.row("REC-1")
@pytest.mark.parametrize("trials", [1, 3])
def test_every_file_that_is_written_fits_its_schema(tmp_path: Path, trials: int) -> None:
    writer = RunWriter.start(tmp_path, "town", "random", HEADER, ledger())
    for name in ids(ledger())[1:]:
        writer.append(result(name, trials=trials))
    writer.append(result("town-0-r0", scores=(), has_trace=False, status="failed", error="time limit"))
    writer.add_artifact("town-1-r0", "bev", error="no encoder")
    used = check(writer.folder)
    writer.fail(ValueError("first try"))
    used |= check(writer.folder)
    again = RunWriter.resume(writer.folder)
    again.seal(driving_metrics)
    used |= check(writer.folder)
    assert used == set(schema_names())
    assert Run(writer.folder).status == "completed"


def test_the_schemas_are_valid_and_refuse_wrong_values() -> None:
    for name in schema_names():
        Draft202012Validator.check_schema(schema(name))
        assert faults(name, {}), f"{name} takes anything"
    with pytest.raises(UsageError, match=r"there is no schema 'runs'; known: agents_row, "):
        schema("runs")


@pytest.mark.parametrize("version", [None, 1, "", "one"])
def test_a_file_without_a_version_is_refused(version: Any) -> None:
    with pytest.raises(RecordError, match=r"run\.json: schema_version is .*, expected one such as '1\.2'"):
        require_readable(version, "run.json")
