"""`roadworthy scenarios import`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from roadworthy.scenario.pack import Pack
from tests.scenario.example import example_scenario
from tests.scenario.importers.encoder import frame, womd_message

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three sound files and a truncated one."""
    for name in ("a", "b", "c"):
        message = womd_message(example_scenario(name))
        message.tracks_to_predict[0].difficulty = 1
        data = frame(message.SerializeToString())
        (tmp_path / f"{name}.tfrecord").write_bytes(data)
    (tmp_path / "cut.tfrecord").write_bytes(data + data[:1000])
    return tmp_path


def run(folder: Path, *arguments: str) -> int:
    return main(["scenarios", "import", "womd", "-o", str(folder / "new" / "x.pack"), "--processes", "1", *arguments])


def test_patterns_are_expanded_and_each_file_is_read_once(folder: Path, capsys: Captured) -> None:
    assert run(folder, str(folder / "b.tfrecord"), str(folder / "[ab].tfrecord")) == 0
    assert "scenarios: 2, files: 2" in capsys.readouterr().out
    with Pack(folder / "new" / "x.pack") as pack:
        assert list(pack.ids) == ["b", "a"]


def test_the_pack_can_be_described_and_drawn(folder: Path, capsys: Captured) -> None:
    assert run(folder, str(folder / "a.tfrecord")) == 0
    pack = str(folder / "new" / "x.pack")
    assert main(["scenarios", "info", pack]) == 0
    assert "womd: 1" in capsys.readouterr().out
    assert main(["scenarios", "show", pack, "a", "-o", str(folder / "a.png")]) == 0
    assert (folder / "a.png").stat().st_size > 0


def test_omitted_data_are_printed(folder: Path, capsys: Captured) -> None:
    assert run(folder, str(folder / "a.tfrecord")) == 0
    assert "difficulties of tracks to predict" in capsys.readouterr().out


def test_a_damaged_record_ends_with_3_and_writes_nothing(folder: Path, capsys: Captured) -> None:
    assert run(folder, str(folder / "cut.tfrecord")) == 3
    error = capsys.readouterr().err
    assert "cut.tfrecord, record 1 at byte" in error
    assert "--skip-damaged" in error
    assert not (folder / "new" / "x.pack").exists()


@pytest.mark.parametrize("is_json", [False, True])
def test_skipped_records_are_listed_at_the_end_and_the_exit_code_is_0(
    is_json: bool, folder: Path, capsys: Captured
) -> None:
    flags = ["--skip-damaged", *(["--json"] if is_json else [])]
    assert run(folder, str(folder / "a.tfrecord"), str(folder / "cut.tfrecord"), *flags) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    if is_json:
        told = json.loads(last)
        assert told["scenarios"] == 2
        (skipped,) = told["skipped"]
        assert (skipped["file"], skipped["record"]) == (str(folder / "cut.tfrecord"), 1)
        assert skipped["offset"] == (folder / "cut.tfrecord").stat().st_size - 1000
        assert "the file ends after" in skipped["what"]
    else:
        assert "cut.tfrecord, record 1" in last


def test_the_format_can_be_detected(folder: Path, capsys: Captured) -> None:
    pack = folder / "auto.pack"
    assert main(["scenarios", "import", "auto", str(folder / "a.tfrecord"), "-o", str(pack), "--processes", "1"]) == 0
    assert "scenarios: 1, files: 1" in capsys.readouterr().out


def test_a_misspelled_format_names_the_known_ones(folder: Path, capsys: Captured) -> None:
    pack = folder / "new" / "a.pack"
    assert main(["scenarios", "import", "wond", str(folder / "a.tfrecord"), "-o", str(pack)]) == 2
    assert "unknown importer 'wond'; did you mean womd?" in capsys.readouterr().err
    assert not pack.parent.exists()


def test_a_pattern_without_a_match_and_a_folder_are_usage_errors(folder: Path, capsys: Captured) -> None:
    assert run(folder, str(folder / "nothing*")) == 2
    assert "nothing*: there is no such file, and none that matches" in capsys.readouterr().err
    assert run(folder, str(folder)) == 2
    assert "only folders" in capsys.readouterr().err
