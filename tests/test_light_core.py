"""Without the extra `drive`, runs can be read, reported and analyzed, and other verbs name what to install."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.report.made_up import drive, make_run
from tests.results import made_up_logs

ROOT = Path(__file__).parents[1]
# Runs the words after it as a command in an interpreter that has no library of the extra `drive`.
WITHOUT_DRIVE = """
import sys

MISSING = {"numba", "llvmlite", "torch", "safetensors", "av", "shapely", "numba_cuda", "sbi"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""
COMMAND = "from roadworthy.cli.main import main; sys.exit(main(sys.argv[1:]))"
READ = """
import roadworthy as rw
run = rw.load_run(sys.argv[1])
print(run.episodes().num_rows, run.metrics["num_episodes"], run.status)
"""


def without_drive(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", WITHOUT_DRIVE + code, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a figure, an episode summary and a pack that can't be drawn here."""
    run = make_run(tmp_path_factory.mktemp("runs"), [drive(k, [[1.0]]) for k in range(12)])
    (run.folder / "scenarios.pack").write_bytes(b"")
    return run.folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of episodes with two factors, of which one decides."""
    rng, lines = np.random.default_rng(0), []
    for number, (light, friction) in enumerate(rng.random((60, 2))):
        row = {"episode_id": f"e{number}", "factors": {"light": light, "friction": friction}}
        lines.append(json.dumps({**row, "outcomes": {"success": bool(rng.random() < light)}}))
    path = tmp_path_factory.mktemp("rows") / "episodes.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def require_readers_work(call: Sequence[str], run_folder: Path, rows: Path, folder: Path) -> None:
    """Run the verbs that need no extra; call: the words before the arguments of `roadworthy`."""
    page, chart = folder / "page.html", folder / "chart.png"
    log, runs = made_up_logs.arena(folder), folder / "runs"
    for words in (
        ["--help"],
        ["results", "import", str(log), "--out", str(runs)],
        ["results", "check", str(log)],
        ["report", str(run_folder), "-o", str(page)],
        ["sensitivity", str(rows), "-o", str(chart)],
        ["compare", str(run_folder), str(run_folder), "-o", str(folder / "comparison.html")],
    ):
        result = subprocess.run([*call, *words], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        assert "internal error" not in result.stderr
        assert "No module named" not in result.stderr
    assert "street-000-r0" in page.read_text()
    assert chart.stat().st_size > 1000
    (imported,) = runs.glob("pick/*")
    for words in (
        ["results", "check", str(imported)],
        ["report", str(imported), "-o", str(folder / "imported.html")],
        ["compare", str(imported), str(imported)],
    ):
        result = subprocess.run([*call, *words], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        assert "internal error" not in result.stderr
    assert "is equal in every pair" in (folder / "comparison.html").read_text()


@pytest.mark.row("UI-7")
def test_runs_are_read_reported_and_analyzed_without_the_simulator(
    run_folder: Path, rows: Path, tmp_path: Path
) -> None:
    require_readers_work([sys.executable, "-c", WITHOUT_DRIVE + COMMAND], run_folder, rows, tmp_path)
    told = without_drive(READ, run_folder)
    assert told.stdout.split() == ["12", "12", "completed"], told.stderr


@pytest.mark.row("UI-7")
@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "town", "--policy", "random"],
        ["train", "fast", "--out", "training"],
        ["scenarios", "generate", "--count", "1", "-o", "one.pack"],
        ["render", "RUN", "--worst", "1"],
        ["rescore", "RUN"],
    ],
    ids=lambda words: words[0],
)
def test_a_verb_that_needs_the_simulator_names_the_extra_and_writes_nothing(
    words: list[str], run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = without_drive(COMMAND, *(str(run_folder) if word == "RUN" else word for word in words))
    assert result.returncode == 5, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith("; install it with: pip install 'roadworthy[drive]'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.row("UI-7")
@pytest.mark.row("STAT-3")
def test_a_gate_decides_from_two_runs_without_the_simulator(run_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "gate.html"
    done = without_drive(
        COMMAND, "gate", "--candidate", run_folder, "--baseline", run_folder, "--margin", "0.5", "-o", page
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pass: ")
    assert "PASS" in page.read_text(encoding="utf-8")


def test_a_function_that_needs_the_simulator_names_the_extra() -> None:
    result = without_drive("import roadworthy as rw\nrw.evaluate")
    assert "MissingExtraError: evaluate needs " in result.stderr
    assert result.stderr.rstrip().endswith("pip install 'roadworthy[drive]'")


@pytest.mark.long
@pytest.mark.row("UI-7")
def test_the_core_dependencies_are_enough_in_an_environment_of_their_own(
    run_folder: Path, rows: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
        shutil.copy(ROOT / name, project)
    shutil.copytree(ROOT / "src" / "roadworthy", project / "src" / "roadworthy")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    bin = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    install = [str(bin / "python"), "-m", "pip", "install", "-q", "-c", str(project / "constraints.txt"), str(project)]
    subprocess.run(install, check=True)
    have = subprocess.run([str(bin / "python"), "-m", "pip", "freeze"], capture_output=True, text=True, check=True)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["drive"]
    for line in extras:
        name = line.partition(">")[0]
        assert name == "pillow" or f"{name}==" not in have.stdout, "pillow comes with matplotlib"
    require_readers_work([str(bin / "roadworthy")], run_folder, rows, tmp_path)
    told = subprocess.run(
        [str(bin / "python"), "-c", "import sys" + READ, str(run_folder)], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["12", "12", "completed"]
    refused = subprocess.run([str(bin / "roadworthy"), "evaluate", "town"], capture_output=True, text=True, check=False)
    assert refused.returncode == 5
    assert "pip install 'roadworthy[drive]'" in refused.stderr
