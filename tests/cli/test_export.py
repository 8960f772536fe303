"""`roadworthy export`: what it writes, says and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from roadworthy.record import Run, RunWriter
from tests.record.made_up import HEADER, ids, ledger, result

HEAVY = ("roadworthy.sim", "numba", "llvmlite", "torch")
EXPORT = f"""
import sys
from roadworthy.cli.main import main
code = main(sys.argv[1:])
print([name for name in {HEAVY} if name in sys.modules])
sys.exit(code)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    planned = ledger(2)
    with RunWriter.start(tmp_path / "runs", "town", "best", HEADER, planned) as writer:
        for name in ids(planned):
            writer.append(result(name))
    return Run(writer.folder)


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_writes_the_file_without_the_simulator_and_leaves_the_run_as_it_is(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="rerun-sdk (the extra `rerun`) is not installed")
    before = content(run.folder)
    words = ["export", "rerun", str(run.folder), "town-1-r0", "-o", str(tmp_path / "a.rrd"), "--json"]
    found = subprocess.run([sys.executable, "-c", EXPORT, *words], capture_output=True, text=True, check=True)
    text, _, loaded = found.stdout.strip().rpartition("\n")
    assert json.loads(text) == {
        "file": str(tmp_path / "a.rrd"),
        "bytes": (tmp_path / "a.rrd").stat().st_size,
        "frames": 9,
        "agents": 3,
    }
    assert loaded == "[]"
    assert "the run has no scenarios, so there is no map" in found.stderr
    assert content(run.folder) == before


@pytest.mark.row("UI-9")
def test_an_unknown_episode_is_named_with_the_nearest(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rerun", reason="rerun-sdk (the extra `rerun`) is not installed")
    assert main(["export", "rerun", str(run.folder), "town-1-r9", "-o", str(tmp_path / "a.rrd")]) == 2
    assert "has no episode 'town-1-r9' (did you mean 'town-1-r0'?)" in capsys.readouterr().err
    assert not (tmp_path / "a.rrd").exists()


@pytest.mark.row("UI-9")
def test_the_missing_extra_is_named(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    monkeypatch.delitem(sys.modules, "roadworthy.viewer.rerun_export", raising=False)
    assert main(["export", "rerun", str(run.folder), "town-1-r0", "-o", str(tmp_path / "a.rrd")]) == 5
    assert "pip install 'roadworthy[rerun]'" in capsys.readouterr().err
    assert not (tmp_path / "a.rrd").exists()
