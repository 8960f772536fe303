"""`roadworthy compare`: its table, its JSON, its exit codes, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from tests.report.made_up import drive, make_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders `before` and `after`, of which the second fails in every fourth episode."""
    monkeypatch.setenv("COLUMNS", "80")
    for name, fails in (("before", ()), ("after", range(0, 40, 4))):
        made = [drive(k, [[float(k not in fails)]], tags=["merge" if k % 2 else "cut_in"]) for k in range(40)]
        make_run(tmp_path / name, made)
    return tmp_path


@pytest.mark.row("STAT-2")
def test_the_table_fits_80_columns_and_ends_with_the_conclusion(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "before"), str(runs / "after"), "--margin", "0.02"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    text = "\n".join(lines)
    assert "40 episodes in pairs, from 40 clusters" in text
    assert "10 episodes went worse in score, 0 better" in text
    assert "street-000-r0 (cut_in)" in text
    (conclusion,) = [line for line in lines if line.startswith("Score of")]
    assert "is worse: -25.0 pts" in conclusion


@pytest.mark.row("STAT-2")
def test_the_last_line_of_json_holds_everything(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = runs / "pages" / "comparison.html"
    words = ["compare", str(runs / "before"), str(runs / "after"), "-m", "score", "--margin", "score=0.02", "--json"]
    assert main([*words, "-o", str(page)]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    (section,) = result["sections"]
    (score,) = section["differences"]
    assert (score["difference"], score["losses"], score["margin"], score["verdict"]) == (-0.25, 10, 0.02, "worse")
    assert score["p_exact"] == pytest.approx(2.0 * 0.5**10)
    assert section["flips"]["lost"] == 10
    assert {row["part"] for row in section["by_class"]} == {"cut_in", "merge"}
    assert result["page"] == str(page)
    assert json.loads(page.with_suffix(".json").read_text()) == {k: v for k, v in result.items() if k != "page"}


@pytest.mark.row("STAT-2")
def test_the_exit_code_is_0_whatever_the_answer_unless_asked_otherwise(runs: Path) -> None:
    before, after = str(runs / "before"), str(runs / "after")
    assert main(["compare", before, after]) == 0
    assert main(["compare", before, after, "--fail-on", "worse"]) == 10
    assert main(["compare", after, before, "--fail-on", "worse"]) == 0


@pytest.mark.row("STAT-2")
def test_an_equal_run_fails_nothing(runs: Path) -> None:
    before = str(runs / "before")
    assert main(["compare", before, before, "--fail-on", "undecided"]) == 0
    make_run(runs / "unclear", [drive(k, [[float(k != 7)]]) for k in range(40)])
    unclear = str(runs / "unclear")
    assert main(["compare", before, unclear, "--fail-on", "worse"]) == 0
    assert main(["compare", before, unclear, "--fail-on", "undecided"]) == 11


def test_three_runs_are_ranked(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(runs / "middle", [drive(k, [[float(k % 8 > 0)]]) for k in range(40)])
    assert main(["compare", *(str(runs / name) for name in ("before", "after", "middle")), "-m", "score"]) == 0
    assert "chance of best" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["before"], "needs at least two runs, and 1 was given"),
        (["before", "after", "--margin", "much"], "--margin is 'much', expected a number"),
        (["before", "after", "-m", "scores"], "unknown metric 'scores'; did you mean score"),
        (["before", "elsewhere"], "there is no such folder; name a run folder"),
        (["before", "after", "--margin", "2"], "the margin is 2; allowed: from 0 to below 1, the range of 'score'"),
        (["before", "after", "--margin", "score=5"], "so 5% is 0.05"),
        (["before", "after", "--margin", "2%"], "--margin is '2%', expected a number in the unit of the metric; 2% of"),
        (["before", "after", "--reference", "3"], "--reference is 3, but 2 runs are given; allowed: 1 to 2"),
        (["before/town", "nothing/run.json"], "there is no such folder"),
        (["before", "after", "-o", "page.pdf"], "expected .html"),
    ],
)
def test_what_makes_no_sense_is_an_error_of_one_line(
    arguments: list[str], words: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    assert main(["compare", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_what_the_terminal_leaves_out_is_counted(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = str(runs / "before"), str(runs / "after")
    assert main(["compare", before, after]) == 0
    said = capsys.readouterr().out
    assert "worse: 5 more with --all" in said
    assert "more metrics with --all" in said
    assert main(["compare", before, after, "--all"]) == 0
    assert "with --all" not in capsys.readouterr().out
    assert main(["compare", before, before]) == 0
    assert "both are the same run" in capsys.readouterr().err


def test_the_file_of_a_run_is_an_error_that_names_its_folder(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (runs / "before").glob("*/*/run.json")
    assert main(["compare", str(file), str(runs / "after")]) == 2
    assert f"is the file of a run; name its folder, {file.parent}" in " ".join(capsys.readouterr().err.split())


def test_a_page_is_written_under_the_long_names_of_both_verbs(runs: Path) -> None:
    for option in ("--output", "--out"):
        page = runs / f"page{option}.html"
        assert main(["compare", str(runs / "before"), str(runs / "after"), option, str(page)]) == 0
        assert page.is_file()
