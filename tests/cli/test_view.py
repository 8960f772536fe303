"""`roadworthy view`: what it writes, says and refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from tests.viewer.made_up import results, write_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs", results(6))
    return tmp_path / "runs"


@pytest.mark.row("UI-2")
def test_it_serves_until_interrupted(runs: Path) -> None:
    words = [sys.executable, "-m", "roadworthy", "view", str(runs), "--port", "0", "--no-browser", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = json.loads(process.stdout.readline())["address"]
        with urllib.request.urlopen(f"{address}data/runs.json", timeout=30) as answer:
            assert len(json.load(answer)["runs"]) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read().strip() == "interrupted"


def test_a_bundle_says_how_to_serve_it(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(runs), "--bundle", str(tmp_path / "site")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path / 'site'} (")
    assert second == f"python -m http.server --bind 127.0.0.1 --directory {tmp_path / 'site'}"
    assert main(["view", str(runs), "--embed"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(f"--directory {runs}")


@pytest.mark.row("UI-9")
def test_a_wrong_folder_and_a_taken_port_are_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(tmp_path / "nowhere"), "--bundle", str(tmp_path / "site")]) == 2
    assert "nowhere: there is no such folder; give folders that hold runs" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", str(runs), "--port", str(port), "--no-browser"]) == 2
        assert f"can't listen on 127.0.0.1 port {port}" in capsys.readouterr().err
