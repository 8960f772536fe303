"""`roadworthy report`: pages of runs from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from roadworthy.cli.report import report
from roadworthy.errors import UsageError
from tests.report.made_up import drive, make_run


def command(*arguments: str | Path) -> int:
    """`roadworthy report` with these arguments."""
    app = typer.Typer()
    app.command()(report)
    return app([str(argument) for argument in arguments], standalone_mode=False) or 0


def test_the_report_of_a_run_goes_into_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, [drive(0, [[1.0]])])
    assert command(run.folder) == 0
    path = run.folder / "report" / "report.html"
    assert capsys.readouterr().out.startswith(f"{path} (0.")
    assert "street-000-r0" in path.read_text(encoding="utf-8")
    assert [(artifact.name, artifact.path) for artifact in run.artifacts] == [("report", "report/report.html")]


def test_several_runs_go_where_one_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path, [drive(0, [[1.0]])], evaluator=name).folder for name in ("merge", "cut_in")]
    with pytest.raises(UsageError, match="a report of 2 runs needs a file to write to; name one with -o"):
        command(*runs)
    assert command(*runs, "-o", tmp_path / "pages" / "all.html", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == list(map(str, runs))
    page = Path(told["report"]).read_bytes()
    assert len(page) == told["bytes"]
    assert page.index(b"merge") < page.index(b"cut_in")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run folder: it has no run\.json"):
        command(tmp_path)
