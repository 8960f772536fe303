"""`roadworthy gate`: exit codes, output, the page, and a gate that is killed and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import roadworthy as rw
from roadworthy.cli.main import main
from roadworthy.errors import UsageError
from roadworthy.record import Run
from roadworthy.record.run import JOURNAL
from tests.comparison.made_up import Made, made_run
from tests.evaluation.test_gate import HOME, SUITE, rows
from tests.report.made_up import Page, drive, make_run

MARGIN = ("--metric", "success", "--margin", "0.1")


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[float, int], Run]:
    """Makes runs in which a share of the same episodes succeeds."""

    def make(share: float, count: int = 300) -> Run:
        difficulty = np.random.default_rng(0).random(count)
        made = [Made(f"s{k:03}", {"success": float(difficulty[k] < share)}) for k in range(count)]
        return made_run(tmp_path / "runs", made, policy=f"skill-{share:g}")

    return make


def gate(candidate: Run, baseline: Run, *options: str) -> int:
    return main(["gate", "--candidate", str(candidate.folder), "--baseline", str(baseline.folder), *MARGIN, *options])


@pytest.mark.row("STAT-3")
def test_the_exit_code_is_the_verdict(runs: Callable[..., Run], capsys: pytest.CaptureFixture[str]) -> None:
    old = runs(0.8)
    assert gate(runs(0.8), old) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("pass: skill-0.8 (")
    assert "difference +0.0 pts (candidate minus baseline), at least -" in said[2]
    assert said[3] == "300 pairs of episodes in 300 clusters"
    assert gate(runs(0.5), old) == 10
    assert capsys.readouterr().out.startswith("regression: skill-0.5")
    assert gate(runs(0.8, 20), runs(0.8, 20)) == 11
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("undecided: ")
    assert said[4] == "about 22 more episodes would decide if they are like those so far"  # 42, see test_gate.py


def test_errors_keep_their_exit_codes(runs: Callable[..., Run], capsys: pytest.CaptureFixture[str]) -> None:
    run = runs(0.8, 20)
    assert gate(run, run, "--metric", "score") == 2
    assert "both runs need the metric 'score'; did you mean success?" in capsys.readouterr().err
    assert gate(run, run, "--bounds", "0.2;1") == 2
    assert "expected two numbers" in capsys.readouterr().err
    assert gate(run, run, "--bounds", "0.2,1") == 3
    assert "outside of its bounds" in capsys.readouterr().err
    assert gate(run, run, "-o", "page.txt") == 2
    assert main(["gate", "--candidate", str(run.folder)]) == 2


def test_json_has_the_decision_and_every_look(runs: Callable[..., Run], capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(runs(0.5), runs(0.8), "--json", "--block", "60") == 10
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["verdict"], found["metric"]) == ("regression", "success")
    assert (found["margin"], found["threshold"]) == (0.1, -0.1)
    assert found["low"] < found["difference"] < found["high"] < found["threshold"]
    assert [look["episodes"] for look in found["looks"]] == [60, 120, 180, 240, 300]
    assert found["looks"][-1]["high"] == found["high"]
    assert Path(found["candidate"]).is_dir()


def test_the_page_shows_the_sequence_and_the_margin(runs: Callable[..., Run], tmp_path: Path) -> None:
    path = tmp_path / "pages" / "gate.html"
    assert gate(runs(0.5), runs(0.8), "-o", str(path)) == 10
    page = Page(path.read_text(encoding="utf-8"))
    classes = page.attributes("class")
    assert {"band", "margin", "curve"} <= set(classes)
    assert "REGRESSION" in page.text
    assert "skill-0.5" in page.text
    labels = " ".join(page.attributes("aria-label"))
    assert "3 looks" in labels
    assert not [name for name in page.attributes("src") if name.startswith("http")]
    band = next(attributes["points"] for tag, attributes in page.elements if tag == "polygon")
    assert band is not None
    assert len(band.split()) == 6  # three looks, upper and lower


@pytest.mark.row("STAT-3")
def test_a_killed_gate_resumes_with_the_same_rows_and_decision(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE)
    baseline = rw.evaluate(suite, f"{HOME}:Skilled", out=tmp_path / "old")["guess"]
    command = ["gate", "--candidate", f"{HOME}:Slow", "--baseline", str(baseline.folder), "--suite", str(suite)]
    command += ["--metric", "success", "--margin", "0.03", "--block", "40", "--json"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), os.getcwd()])}
    chance = random.Random(3)
    for least in (20, 90):
        process = subprocess.Popen(
            [sys.executable, "-m", "roadworthy", *command, "--out", str(killed)],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 120.0
        while lines(killed) < least + chance.randrange(15):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert lines(killed) < 145  # it was killed before it had decided
    assert main([*command, "--out", str(killed)]) == 0
    assert main([*command, "--out", str(whole)]) == 0
    first, second = (Run(next((folder / "guess").glob("*/run.json")).parent) for folder in (killed, whole))
    assert len(list((killed / "guess").glob("*/run.json"))) == 1
    assert rows(first) == rows(second)
    assert first.decided == second.decided
    assert first.missing == ()
    assert len(first.header["sessions"]) == 3


def lines(folder: Path) -> int:
    """The number of episodes that have ended."""
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob(f"*/*/{JOURNAL}"))


def test_a_folder_of_runs_stands_for_its_newest(runs: Callable[..., Run], capsys: pytest.CaptureFixture[str]) -> None:
    run = runs(0.8)
    section = run.folder.parent
    words = ["--candidate", str(section), "--baseline", str(run.folder), "--margin", "0.1"]
    assert main(["gate", *words]) == 0  # the metric is success, because the runs have no score
    assert "success is not worse" in capsys.readouterr().out.lower()
    assert main(["gate", *words[:1], str(section.parent / "nope"), *words[2:]]) == 2
    assert "there is no such folder; name a run folder" in " ".join(capsys.readouterr().err.split())
    assert main(["gate", *words[:5], "5%"]) == 2
    assert "5% of a rate is 0.05" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(UsageError, match="margin is '5%'"):
        rw.gate(run, run, margin="5%")  # type: ignore[arg-type]
    shown = repr(rw.gate(run, run, margin=0.1))
    assert shown.startswith("GateResult: pass, success +0.0 pts")
    assert len(shown.splitlines()) == 3


def test_runs_of_different_evaluators_say_what_each_has(
    runs: Callable[..., Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driving = make_run(tmp_path / "town", [drive(0, [[1.0]])])
    assert main(["gate", "--candidate", str(runs(0.8).folder), "--baseline", str(driving.folder)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "come from different evaluators and share no metric: the candidate (grasp) has success; the baseline" in said


@pytest.mark.row("STAT-3")
def test_an_undecided_gate_says_what_limited_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE)
    command = ["gate", "--candidate", f"{HOME}:Slow", "--suite", str(suite), "--metric", "success", "--margin", "0.03"]
    command += ["--out", str(tmp_path / "runs")]
    assert main([*command, "--baseline", f"{HOME}:Skilled", "--set", "episodes=10"]) == 11
    said = capsys.readouterr().out
    assert "all 10 planned episodes have run, because --set episodes=10 limited the suite; about " in said
    baseline = rw.evaluate(suite, f"{HOME}:Skilled", set=["episodes=12"], out=tmp_path / "old")["guess"]
    assert main([*command, "--baseline", str(baseline.folder)]) == 11
    assert "all 12 planned episodes have run, which are those of the baseline; " in capsys.readouterr().out
