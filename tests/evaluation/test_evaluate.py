"""`rw.evaluate` and the command: identical rows for the same words, the result as a list of runs, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import roadworthy as rw
from roadworthy.cli.main import main
from roadworthy.errors import ConfigError, UsageError
from roadworthy.evaluation.runs import Runs
from roadworthy.record import Run
from roadworthy.record.run import JOURNAL, run_folders
from roadworthy.scenario.pack import Pack
from tests.evaluation.built_in import declare
from tests.evaluation.test_resume import contents

SUITE = """
[eval.base]
scenarios = "{pack}"
episode.trial_steps = 30
env.control.rows = 4
references = []
worlds = 4

[eval.street]
type = "multi_scenario"
inherits = "base"

[eval.human]
type = "human_replay"
inherits = "base"
"""
UNHURRIED = """
import os, time
from tests.evaluation.actors import Wander

class Driver(Wander):
    def act(self, *observed):
        time.sleep(float(os.environ.get("STEP_S", 0)))
        return super().act(*observed)
"""
WORDS = ["--policy", "expert:lane_follower", "--set", "episodes=3", "--set", "eval.human.seed=4", "--step", "7"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, streets: Pack, monkeypatch: pytest.MonkeyPatch) -> Path:
    declare(tmp_path / "site", monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE.format(pack=streets.path))
    return tmp_path


def results(folder: Path) -> dict[str, Any]:
    """What each run below a folder found, and what identifies it."""
    keys = ("config_hash", "ledger_hash", "policy_spec", "step", "config")
    runs = {path.parent.name: Run(path) for path in run_folders(folder)}
    return {
        name: ({key: run.header[key] for key in keys}, contents(run), run.metrics["figures"] if run.metrics else None)
        for name, run in runs.items()
    }


@pytest.fixture
def runs() -> Runs:
    overrides = {"episodes": 3, "eval.human.seed": 4}
    return rw.evaluate("suite.toml", "expert:lane_follower", out="api", set=overrides, step=7)


@pytest.mark.row("UI-4")
def test_the_command_and_the_function_give_identical_rows_for_the_same_words(runs: Runs, folder: Path) -> None:
    assert main(["evaluate", "suite.toml", *WORDS, "--out", "command"]) == 0
    assert results(folder / "command") == results(folder / "api")
    assert set(results(folder / "api")) == {"street", "human"}


def test_the_result_is_a_list_of_runs_that_shows_their_figures(runs: Runs) -> None:
    assert [run.header["evaluator"] for run in runs] == ["street", "human"]
    assert runs["human"].folder == runs[1].folder
    assert runs.errors == {}
    score = runs.figure("score")["street"]
    assert score["value"] == next(f["value"] for f in (runs[0].metrics or {})["figures"] if f["name"] == "score")
    first, *lines = repr(runs).splitlines()
    assert first == "Runs in api: 2 complete, 0 failed"
    assert f"score {score['value']:.3f}" in lines[0]
    assert str(runs[1].folder) in lines[1]
    assert runs._repr_html_().count("<tr>") == 3
    assert runs.report is not None
    assert runs.report.is_file()
    with pytest.raises(UsageError, match="no run has a figure 'scroe'; did you mean score"):
        runs.figure("scroe")


def test_a_section_that_fails_is_listed_and_the_others_complete(folder: Path, streets: Pack) -> None:
    (folder / "damaged.pack").write_bytes(streets.path.read_bytes()[:100])
    runs = rw.evaluate("suite.toml", "zero", set={"episodes": 1, "eval.street.scenarios": folder / "damaged.pack"})
    assert [run.header["evaluator"] for run in runs] == ["human"]
    assert list(runs.errors) == ["street"]
    assert "street  failed: " in repr(runs)
    with pytest.raises(KeyError):
        runs["street"]


def test_a_wrong_key_is_an_error_with_the_source_of_the_key() -> None:
    with pytest.raises(ConfigError, match="set: episods is unknown; did you mean episodes"):
        rw.evaluate("suite.toml", "zero", set={"episods": 1})


@pytest.mark.row("REC-3")
def test_ctrl_c_ends_an_evaluation_at_once_and_the_same_command_resumes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "unhurried.py").write_text(UNHURRIED)
    monkeypatch.syspath_prepend(folder)
    words = ["evaluate", "suite.toml", "-e", "street", "--policy", "unhurried:Driver", "--set", "replicates=10"]
    code = f"import sys; from roadworthy.cli.main import main; sys.exit(main({words}))"
    paths = os.pathsep.join(map(str, (folder, folder / "site", Path(__file__).parents[2])))
    environment = {**os.environ, "PYTHONPATH": paths, "STEP_S": "0.03"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not sum((f / JOURNAL).stat().st_size for f in run_folders(folder / "runs")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, error = process.communicate(timeout=60)
    assert time.monotonic() - started < 10.0, "30 batches of 30 steps of 0.03 s take 27 s"
    assert process.returncode == 130
    assert error.splitlines()[-1] == "interrupted; the same command resumes"
    assert "Traceback" not in error
    (interrupted,) = run_folders(folder / "runs")
    assert Run(interrupted).status == "interrupted"
    done = Run(interrupted).episodes(["episode_id"]).num_rows
    assert 0 < done < 120
    assert main(words) == 0
    assert run_folders(folder / "runs") == [interrupted]
    assert Run(interrupted).status == "completed"
