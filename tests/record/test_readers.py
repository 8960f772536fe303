"""Readers of other tools' logs: detected, or named by the user as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.errors import ConfigError
from roadworthy.plugins import known
from roadworthy.record.readers import GROUP, find_reader, load_reader
from roadworthy.record.readers.arena import ArenaReader
from roadworthy.sensitivity.sources import load_rows

READER = """
class CsvReader:
    def detects(self, path):
        return path.suffix == ".csv"

    def read(self, path):
        lines = [line.split(",") for line in path.read_text().splitlines()]
        return [{"factors": {"light": float(a)}, "outcomes": {"success": float(b)}} for a, b in lines]
"""


def test_a_user_names_a_reader_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "my_reader.py").write_text(READER)
    log = tmp_path / "log.csv"
    log.write_text("0.25,1\n0.5,0\n")
    name = f"{tmp_path / 'my_reader.py'}:CsvReader"
    assert load_rows(log, reader=name) == [
        {"factors": {"light": 0.25}, "outcomes": {"success": 1.0}},
        {"factors": {"light": 0.5}, "outcomes": {"success": 0.0}},
    ]
    assert load_reader(name).detects(log)


def test_the_built_in_reader_is_an_entry_point_and_detects_its_files(tmp_path: Path) -> None:
    assert set(known(GROUP)) >= {"arena"}
    result = {"env_id": 0, "episode_in_env": 1, "success": True, "variations": {"light": 2.0}}
    file = tmp_path / "episode_results.jsonl"
    file.write_text(json.dumps(result) + "\n")
    assert isinstance(find_reader(file), ArenaReader)
    assert isinstance(find_reader(tmp_path), ArenaReader)
    assert load_rows(tmp_path) == load_rows(file)
    assert load_rows(file)[0]["outcomes"] == {"success": True}


@pytest.mark.parametrize("content", ["", "\n", '{"outcomes": {"success": 1}}\n', "not JSON\n", "[1]\n"])
def test_other_files_are_not_detected(tmp_path: Path, content: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(content)
    assert find_reader(file) is None
    assert find_reader(tmp_path) is None
    assert find_reader(tmp_path / "missing.jsonl") is None


def test_an_unknown_reader_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown reader 'arenas'; did you mean arena\?"):
        load_reader("arenas")
