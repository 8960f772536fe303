"""docs/comparison.md: it names every option, every field of the JSON and every verdict, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

import roadworthy as rw
from roadworthy.cli.main import app
from roadworthy.comparison.difference import Verdict
from tests.report.made_up import drive, make_run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")


@pytest.mark.row("UI-6")
def test_every_option_and_verdict_is_documented() -> None:
    command = typer.main.get_command(app).commands["compare"]  # type: ignore[attr-defined]
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("--")]
    assert [name for name in options if f"`{name}" not in DOCUMENT and name != "--help"] == []
    assert [verdict.value for verdict in Verdict if verdict.value not in DOCUMENT] == []


@pytest.mark.row("UI-6")
def test_every_field_of_the_json_is_documented_and_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, fails in (("before", 0), ("after", 5)):
        make_run(tmp_path / "runs" / name, [drive(k, [[float(k >= fails)]]) for k in range(20)])
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    exec(code, {})
    result = rw.compare("runs/before", "runs/after", "runs/before").to_dict()
    fields = [*result, *result["sections"][0], *result["rankings"][0]]
    fields += [*result["sections"][0]["differences"][0], *result["rankings"][0]["runs"][0]]
    (section,) = re.findall(r"## JSON\n(.*?)\n## ", DOCUMENT, re.DOTALL)
    documented = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section))))
    assert set(fields) - documented == set()


@pytest.mark.row("STAT-2")
def test_measured_coverage_is_at_most_two_points_below_the_level() -> None:
    """Every cell of the tables, with three standard errors of Monte-Carlo noise."""
    noise = 3 * 0.7
    cells = re.findall(r"\| (\d+\.\d)(?: / (\d+\.\d))? (?=\||\()", DOCUMENT)
    assert len(cells) > 300
    assert [held for held, _ in cells if float(held) < 93.0 - noise] == []
    assert [p for _, p in cells if p and float(p) > 7.0 + noise] == []
