"""`roadworthy scenarios`: each verb, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from roadworthy.cli.main import main
from roadworthy.scenario.pack import PackWriter
from tests.scenario.example import example_map, example_scenario

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two scenarios on one map: `example`, tagged merge, and `second`, tagged merge and cut_in."""
    path = tmp_path_factory.mktemp("packs") / "town.pack"
    road_map = example_map()
    with PackWriter(path) as writer:
        writer.add(example_scenario("example", ("merge",), road_map))
        writer.add(example_scenario("second", ("merge", "cut_in"), road_map))
    return str(path)


def last_json(captured: Captured) -> dict[str, Any]:
    found = json.loads(captured.readouterr().out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.row("SCEN-5")
def test_info_counts_what_is_in_a_pack(pack: str, capsys: Captured) -> None:
    assert main(["scenarios", "info", pack, "--json"]) == 0
    assert last_json(capsys) == {
        "pack": pack,
        "scenarios": 2,
        "maps": 1,
        "sources": {"handmade": 2},
        "seconds": {"9.1": 2},
        "tags": {"cut_in": 1, "merge": 2},
        "agents": {"vehicle": 4, "pedestrian": 2},
    }


@pytest.mark.parametrize("name", ["second", "1"])
def test_info_describes_one_scenario_by_id_or_number(name: str, pack: str, capsys: Captured) -> None:
    assert main(["scenarios", "info", pack, name, "--json"]) == 0
    facts = last_json(capsys)
    assert (facts["id"], facts["tags"], facts["steps"]) == ("second", ["merge", "cut_in"], 91)
    assert facts["agents"] == {"vehicle": 2, "pedestrian": 1}


def test_info_prints_a_table(pack: str, capsys: Captured) -> None:
    assert main(["scenarios", "info", pack]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["scenarios", "2"] in lines
    assert any(line[:2] == ["cut_in", "1"] for line in lines)


def test_an_unknown_scenario_names_the_nearest(pack: str, capsys: Captured) -> None:
    assert main(["scenarios", "info", pack, "exampel"]) == 2
    assert "'example'" in capsys.readouterr().err


def test_a_file_that_is_not_a_pack_ends_with_3(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "x.pack").write_text("not a pack")
    assert main(["scenarios", "info", str(tmp_path / "x.pack")]) == 3
    assert "x.pack" in capsys.readouterr().err


@pytest.mark.row("SCEN-5")
def test_show_draws_a_picture_and_makes_its_folder(pack: str, tmp_path: Path, capsys: Captured) -> None:
    picture = tmp_path / "new" / "town.png"
    assert main(["scenarios", "show", pack, "0", "-o", str(picture), "--view", "ego", "--step", "40"]) == 0
    assert capsys.readouterr().out == f"{picture}\n"
    with Image.open(picture) as image:
        assert image.size == (1280, 960)
        assert np.asarray(image).std() > 10


def test_show_makes_an_animation_with_a_frame_for_every_step(tmp_path: Path) -> None:
    short, steps = tmp_path / "short.pack", 4
    with PackWriter(short) as writer:
        writer.add(example_scenario(steps=steps))
    assert (
        main(["scenarios", "show", str(short), "0", "--gif", str(tmp_path / "a.gif"), "--mp4", str(tmp_path / "a.mp4")])
        == 0
    )
    with Image.open(tmp_path / "a.gif") as image:
        assert image.n_frames == steps
    assert (tmp_path / "a.mp4").stat().st_size > 1000


def test_show_without_outputs_names_the_options(pack: str, capsys: Captured) -> None:
    assert main(["scenarios", "show", pack, "0"]) == 2
    assert "-o FILE.png, --gif FILE.gif, --mp4 FILE.mp4" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["show", "0", "-o", "x.jpg"], ["show", "0", "--gif", "x"], ["sheet", "-o", "x.pdf"]]
)
def test_an_output_of_another_kind_names_the_expected_one(arguments: list[str], pack: str, capsys: Captured) -> None:
    verb, *rest = arguments
    assert main(["scenarios", verb, pack, *rest]) == 2
    assert "expected ." in capsys.readouterr().err


def test_a_sheet_has_a_tile_for_every_class(pack: str, tmp_path: Path) -> None:
    heights = []
    for columns in (1, 2):
        picture = tmp_path / f"{columns}.png"
        arguments = ["sheet", pack, "-o", str(picture), "--columns", str(columns), "--width", "400", "--nth", "1"]
        assert main(["scenarios", *arguments]) == 0
        with Image.open(picture) as image:
            heights.append(image.size[1])
    assert heights[0] > 2 * heights[1]


@pytest.mark.row("SCEN-5")
def test_validate_reports_faults_of_the_file_and_of_the_motion_and_ends_with_3(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "town.pack"
    crash = example_scenario("crash")
    positions = crash.positions.copy()
    positions[1, crash.valid[1]] = positions[0, crash.valid[1]] + np.float32([1.0, 0.0, 0.0])
    damaged = example_scenario("damaged")
    with PackWriter(path) as writer:
        writer.add(replace(crash, positions=positions))
        writer.add(damaged)
    content = bytearray(path.read_bytes())
    content[content.index(damaged.positions.tobytes())] ^= 1
    path.write_bytes(content)

    assert main(["scenarios", "validate", str(path), "--json"]) == 3
    report = last_json(capsys)
    found = {(fault["where"], fault["rule"]) for fault in report["faults"]}
    assert ("scenario 'damaged'", "integrity") in found
    assert ("scenario 'crash'", "overlap") in found
    assert ("scenario 'crash'", "integrity") not in found
    assert report["fault_count"] == len(report["faults"])

    assert main(["scenarios", "validate", str(path)]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "1 error," in lines[0]
    assert lines[1:3] == [
        "error   integrity: 1, such as",
        f"        scenario 'damaged': {next(f['message'] for f in report['faults'] if f['rule'] == 'integrity')}",
    ]
    assert len(lines) == 2 + 2 * len(report["kinds"])

    assert main(["scenarios", "validate", str(path), "--all"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("scenario 'damaged': error: integrity: ")
    listed = lines[: report["fault_count"]]
    assert {line.split(": ")[2] for line in listed} == {fault["rule"] for fault in report["faults"]}


@pytest.mark.row("IMP-3")
def test_the_profile_of_validate_determines_what_is_an_error(tmp_path: Path, capsys: Captured) -> None:
    crash = example_scenario("crash")
    positions = crash.positions.copy()
    positions[1, crash.valid[1]] = positions[0, crash.valid[1]] + np.float32([1.0, 0.0, 0.0])
    path = tmp_path / "crash.pack"
    with PackWriter(path) as writer:
        writer.add(replace(crash, positions=positions, source="womd"))

    def validated(*more: str) -> tuple[int, dict[str, Any]]:
        code = main(["scenarios", "validate", str(path), "--json", *more])
        return code, last_json(capsys)

    code, report = validated()
    assert (code, report["profiles"]) == (0, {"recorded": 1})
    assert report["counts"]["error"] == 0
    assert report["fault_count"] > 0
    assert validated("--profile", "recorded") == (code, report)
    code, strict = validated("--profile", "generated")
    assert (code, strict["profiles"]) == (3, {"generated": 1})
    assert strict["counts"]["error"] == report["fault_count"] == strict["fault_count"]
    assert main(["scenarios", "validate", str(path), "--profile", "real"]) == 2


def test_validate_of_a_foreign_file_is_a_fault_of_the_file(tmp_path: Path, capsys: Captured) -> None:
    foreign = tmp_path / "foreign.pack"
    foreign.write_text("not a pack")
    assert main(["scenarios", "validate", str(foreign)]) == 3
    out = capsys.readouterr().out
    assert "error   integrity: 1, such as" in out
    assert "file: this is not a pack" in out
