"""Runs that are killed, or run out of disk, resume: nothing twice, nothing missing, the same tables in the end."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.sections import read_sections
from roadworthy.record import Run
from roadworthy.record.episodes import PLACE_FIELDS
from roadworthy.record.run import JOURNAL, run_folders
from roadworthy.scenario.pack import Pack
from tests.evaluation.built_in import declare
from tests.evaluation.rows import bits_of

SECTION = """
[eval.street]
type = "multi_scenario"
scenarios = "{pack}"
replicates = 2
worlds = 3
episode.trial_steps = 40
env.control.rows = 4
"""
WORKERS = 'engine = "workers"\nworkers = 2\n'
POLICY = "tests.evaluation.actors:Slow"


class Evaluation:
    """One evaluation in a process of its own, and the folder that its run goes to."""

    def __init__(self, folder: Path, text: str, plugins: Path) -> None:
        self.out, self.file = folder / "out", folder / "suite.toml"
        self.file.write_text(text)
        self._env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(plugins), *filter(None, sys.path), os.getcwd()])}

    def start(self, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.evaluation.drive", str(self.file), str(self.out), POLICY]
        return subprocess.Popen(
            command, env=self._env, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
        )

    def finish(self, **options: Any) -> str:
        """Run to the end; what it said."""
        _, said = self.start(**options).communicate(timeout=300)
        return said

    def kill_when(self, is_time: Callable[[int], bool], delay_s: float) -> bool:
        """Start it and SIGKILL it some time after it has written that much; False if it was done before."""
        process = self.start()
        while process.poll() is None and not is_time(self.written):
            time.sleep(0.002)
        time.sleep(delay_s)
        was_running = process.poll() is None
        process.kill()
        process.communicate()
        return was_running

    @property
    def written(self) -> int:
        """Lines of the journal."""
        return sum((folder / JOURNAL).read_bytes().count(b"\n") for folder in run_folders(self.out))

    @property
    def run(self) -> Run:
        """The one run that there is."""
        (folder,) = run_folders(self.out)
        return Run(folder)


def contents(run: Run) -> dict[str, Any]:
    """The tables and traces of a run, without the place and time of their making."""
    told: dict[str, Any] = {}
    for name in ("episodes", "agents", "trials"):
        table = getattr(run, name)()
        told[name] = table.drop_columns([c for c in PLACE_FIELDS if name == "episodes"]).to_pylist()
    ids = [row["episode_id"] for row in told["episodes"]]
    assert sorted(ids) == sorted(run.ledger["episode_id"].to_pylist()), "nothing twice, nothing missing"
    return told | {"traces": {name: bits_of(run.trace(name)) for name in ids}}


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield declare(tmp_path_factory.mktemp("site") / "plugins", monkeypatch)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, streets: Pack, plugins: Path) -> dict[str, Any]:
    """What the run comes to when it is left alone."""
    folder = tmp_path_factory.mktemp("undisturbed")
    file = folder / "suite.toml"
    file.write_text(SECTION.format(pack=streets.path))
    (outcome,) = evaluate_sections(read_sections(file), POLICY, folder)
    assert outcome.run is not None
    assert outcome.is_complete, outcome.error
    return contents(outcome.run)


def kill_and_resume(evaluation: Evaluation, kills: int, seed: int) -> None:
    """Kill it at random moments, resuming it each time; then let it finish."""
    draw = random.Random(seed)
    killed = 0
    while killed < kills:
        before = evaluation.written
        # Not too much at a time: it has to last for all the kills.
        target = before + draw.randint(0, max(12 // kills, 1))
        was_running = evaluation.kill_when(lambda written, target=target: written >= target, draw.uniform(0.0, 0.03))
        assert was_running, f"it was done after {killed} kills"
        assert evaluation.written >= before
        killed += 1
    evaluation.finish()


@pytest.mark.row("REC-3")
def test_a_run_that_is_killed_again_and_again_ends_like_one_that_is_not(
    tmp_path: Path, streets: Pack, plugins: Path, undisturbed: dict[str, Any]
) -> None:
    evaluation = Evaluation(tmp_path, SECTION.format(pack=streets.path), plugins)
    kill_and_resume(evaluation, kills=2, seed=0)
    assert evaluation.run.status == "completed"
    assert contents(evaluation.run) == undisturbed
    assert len(evaluation.run.header["sessions"]) >= 2


@pytest.mark.long
@pytest.mark.row("REC-3")
@pytest.mark.parametrize("engine", ["", WORKERS], ids=["inline", "workers"])
def test_a_run_that_is_killed_at_thirty_moments_ends_like_one_that_is_not(
    tmp_path: Path, streets: Pack, plugins: Path, undisturbed: dict[str, Any], engine: str
) -> None:
    for part in range(3):
        folder = tmp_path / str(part)
        folder.mkdir()
        evaluation = Evaluation(folder, SECTION.format(pack=streets.path) + engine, plugins)
        kill_and_resume(evaluation, kills=10, seed=part)
        assert contents(evaluation.run) == undisturbed


@pytest.mark.row("REC-3")
def test_a_full_disk_stops_a_run_with_a_clear_error_and_it_resumes_when_there_is_room(
    tmp_path: Path, streets: Pack, plugins: Path, undisturbed: dict[str, Any]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    is_small = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        evaluation = Evaluation(disk, SECTION.format(pack=streets.path), plugins)
        # Where nobody may mount a small disk, files that may not grow stand in for it.
        process = evaluation.start(preexec_fn=None if is_small else let_no_file_grow)
        while is_small and process.poll() is None and evaluation.written < 4:
            time.sleep(0.002)
        fill(disk / "filler", is_small)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 1
        assert ("No space left on device" if is_small else "File too large") in said
        assert evaluation.written < 24
        (disk / "filler").unlink()
        evaluation.finish()
        assert evaluation.run.status == "completed"
        assert contents(evaluation.run) == undisturbed
    finally:
        if is_small:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(file: Path, is_small: bool) -> None:
    """Take all the room that a small disk has left."""
    with file.open("wb", buffering=0) as filler, suppress(OSError):
        while is_small:
            filler.write(b"0" * 65536)


def let_no_file_grow() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
