"""`roadworthy sensitivity`: from a file of rows to a report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from roadworthy.cli.main import main
from roadworthy.cli.sensitivity import p_words
from roadworthy.sensitivity import analysis
from roadworthy.sensitivity.surface import SurfaceConfig

Captured = pytest.CaptureFixture[str]
FACTORS = "factors:\n  light: {type: continuous, range: [0, 2000]}\n  friction: {type: continuous, range: [0, 1]}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with two factors, one of which decides, and one row without its factors."""
    rng = np.random.default_rng(0)
    lines = []
    for number, (light, friction) in enumerate(rng.random((150, 2))):
        outcomes = {"success": bool(rng.random() < light), "time_s": 5.0 + light + rng.random()}
        factors = {"light": 2000.0 * light, "friction": friction} if number else {}
        lines.append(json.dumps({"episode_id": f"e{number}", "factors": factors, "outcomes": outcomes}))
    (tmp_path / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "factors.yaml").write_text(FACTORS)
    quick = analysis.AnalysisConfig(SurfaceConfig(draws=30), flips=199, twins=1, next_episodes=4)
    monkeypatch.setattr(analysis, "AnalysisConfig", lambda *_, **__: quick)
    return tmp_path


def arguments(folder: Path, *more: str) -> list[str]:
    return ["sensitivity", str(folder), "--factors", str(folder / "factors.yaml"), "-o", str(folder / "r.html"), *more]


@pytest.mark.row("SENS-6")
def test_a_run_becomes_a_report(folder: Path, capsys: Captured) -> None:
    assert main(arguments(folder)) == 0
    output = capsys.readouterr()
    assert "left out: e0: factor 'light' is missing" in output.err
    assert "what decides success: 149 rows, 1 left out" in output.out
    assert "light matters: the probability of success goes from" in output.out
    assert (folder / "r.html").is_file()


def test_the_last_line_is_json_with_all_files(folder: Path, capsys: Captured) -> None:
    assert main(arguments(folder, "--outcome", "time_s", "--at-most", "6", "--json")) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["outcome"] == "time_s"
    assert told["is_binary"]
    assert told["rejected"][0]["name"] == "e0"
    assert all(Path(file).is_file() for file in told["files"])


@pytest.mark.row("SENS-6")
@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG\r\n"), (".pdf", b"%PDF-"), (".svg", b"<?xml")])
def test_the_main_figure_is_written_in_the_format_of_its_name(suffix: str, begins: bytes, folder: Path) -> None:
    target = folder / f"figure{suffix}"
    assert main(arguments(folder, "-o", str(target))) == 0
    assert target.read_bytes().startswith(begins)
    assert json.loads(target.with_suffix(".json").read_text())["outcome"] == "success"
    assert not (folder / "figure_pictures").exists()
    if suffix == ".svg":
        words = target.read_text()
        assert "<!-- light: matters -->" in words
        assert "<!-- friction: " in words
        assert main(arguments(folder, "-o", str(folder / "again.svg"))) == 0
        assert (folder / "again.svg").read_text() == words


def test_the_words_of_other_tools_mean_the_same(folder: Path, capsys: Captured) -> None:
    rows, factors = str(folder / "episodes.jsonl"), str(folder / "factors.yaml")
    command = ["sensitivity", "--factors_yaml", factors, "--output", str(folder / "a.png"), "--json"]
    told = []
    for name in ("--episode_summary", "--episode_results", "--episode-results"):
        assert main([*command, name, rows]) == 0
        told.append(json.loads(capsys.readouterr().out.splitlines()[-1])["factors"])
    assert told[0] == told[1] == told[2]
    assert main([*command, rows, "--episode_results", rows]) == 2
    assert "both were given; give one of them" in capsys.readouterr().err
    assert main(command) == 2
    assert "neither was given" in capsys.readouterr().err


def test_without_a_factors_file_factors_are_found_and_named(folder: Path, capsys: Captured) -> None:
    assert main(["sensitivity", str(folder), "-o", str(folder / "r.png"), "--json"]) == 0
    output = capsys.readouterr()
    assert "factors: light, friction, over the ranges and choices that the rows have" in output.err
    assert {factor["name"] for factor in json.loads(output.out.splitlines()[-1])["factors"]} == {"light", "friction"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--outcome", "succes"], "outcome 'succes' is missing; the row has success, time_s"),
        (["-o", "report.txt"], "ends in '.txt', expected .html or .png or .pdf or .svg"),
        (["--factors", "nowhere.yaml"], "can't read factors file 'nowhere.yaml'"),
    ],
)
def test_what_makes_no_sense_is_refused(more: list[str], words: str, folder: Path, capsys: Captured) -> None:
    assert main(arguments(folder, *more)) == 2
    assert words in capsys.readouterr().err


def test_the_table_fits_80_columns_with_different_long_names(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = folder / "episodes.jsonl"
    text = file.read_text()
    for k, name in enumerate(("light", "friction")):
        text = text.replace(f'"{name}"', f'"camera_extrinsics_of_the_wrist_camera[{k}]"')
    file.write_text(text)
    assert main(["sensitivity", str(folder), "-o", str(folder / "r.png")]) == 0
    table = capsys.readouterr().out
    assert "camera[0] " in table
    assert "camera[1] " in table
    assert all(len(line) <= 80 for line in table.splitlines()[:7])


def test_a_small_p_value_is_not_shown_as_zero() -> None:
    assert [p_words(value) for value in (0.001, 0.00999, 0.01, 0.25)] == ["<0.01", "<0.01", "0.01", "0.25"]
