"""The Python example of docs/evaluation.md evaluates what the command evaluates."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from roadworthy.cli.main import main
from roadworthy.record import Run
from roadworthy.record.run import run_folders
from tests.evaluation.built_in import declare
from tests.training.small import config, sim, streets, trainer

TEXT = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
SUITE = """
[eval.street]
type = "multi_scenario"
scenarios = "streets.pack"
worlds = 3
"""


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """What the one run below a folder found, without the times and the place of its making."""
    (run,) = (Run(path) for path in run_folders(folder))
    columns = [name for name in run.column_names("episodes") if name.startswith(("outcomes.", "episode_id", "steps"))]
    rows: list[dict[str, Any]] = run.episodes(columns).to_pylist()
    return [{"config_hash": run.header["config_hash"], **row} for row in rows]


@pytest.mark.row("UI-4")
def test_the_example_runs_and_gives_the_rows_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path / "site", monkeypatch)
    monkeypatch.chdir(tmp_path)
    pack = streets(tmp_path / "streets.pack")
    (tmp_path / "suite.toml").write_text(SUITE)
    # Trained in worlds that differ from the defaults in what decides the score: goals, infractions, length.
    shutil.copytree(trainer(config(env=sim(2)), pack, tmp_path / "training").save(), tmp_path / "trained")
    (tmp_path / "runs").mkdir()
    (tmp_path / "trained").rename(tmp_path / "runs" / "best")
    (example,) = re.findall(r"```python\n(import roadworthy as rw.*?)```", TEXT, re.DOTALL)
    shown: list[Any] = []
    exec(example, {"print": shown.append})
    assert main(["evaluate", "suite.toml", "--policy", "runs/best", "--out", "command"]) == 0
    assert rows_of(tmp_path / "runs") == rows_of(tmp_path / "command")
    assert shown[0]["value"] is not None
