"""`roadworthy scenarios statistics`: its files, its output, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from roadworthy.scenario.pack import PackWriter
from roadworthy.scenario.statistics import QUANTITIES
from roadworthy.scenario.statistics.draw import PICTURES
from tests.scenario.example import example_scenario

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("packs") / "town.pack"
    with PackWriter(path) as writer:
        writer.add(example_scenario())
    return str(path)


def test_plots_and_a_table_are_written_and_the_numbers_printed(pack: str, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "statistics"
    assert main(["scenarios", "statistics", pack, "-o", str(folder), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["pack"], summary["scenarios"]) == (pack, 1)
    assert list(summary["quantities"]) == list(QUANTITIES)
    assert summary["quantities"]["walking_speed"]["p50"] == pytest.approx(1.1, abs=0.01)
    assert {Path(file).name for file in summary["files"]} == {f"traffic_{name}.png" for name in PICTURES} | {
        "traffic_table.md"
    }
    assert all(Path(file).stat().st_size > 0 for file in summary["files"])
    assert "walking speed on crosswalks | 1.10" in (folder / "traffic_table.md").read_text()


def test_a_table_and_the_names_of_the_files_are_printed(pack: str, tmp_path: Path, capsys: Captured) -> None:
    assert main(["scenarios", "statistics", pack, "-o", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "traffic of 1 scenarios" in " ".join(out.split())  # a long file name breaks the line
    assert str(tmp_path / "traffic_speeds.png") in out


def test_an_empty_pack_is_refused_and_nothing_is_written(tmp_path: Path, capsys: Captured) -> None:
    path, folder = tmp_path / "empty.pack", tmp_path / "statistics"
    with PackWriter(path):
        pass
    assert main(["scenarios", "statistics", str(path), "-o", str(folder)]) == 2
    assert "nothing to measure" in capsys.readouterr().err
    assert not folder.exists()


def test_a_file_in_place_of_the_folder_is_an_error(pack: str, capsys: Captured) -> None:
    assert main(["scenarios", "statistics", pack, "-o", pack]) == 2
    assert "is a file, expected a folder for plots" in capsys.readouterr().err
