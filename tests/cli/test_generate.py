"""`roadworthy scenarios generate`: flags, config files and output."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.pack import Pack

Captured = pytest.CaptureFixture[str]


@pytest.mark.row("SCEN-5")
def test_a_pack_is_written_and_described(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "new" / "town.pack"
    arguments = ["--count", "2", "--seed", "3", "--class", "highway_straight", "--processes", "1", "-o", str(path)]
    assert main(["scenarios", "generate", *arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["pack"], report["scenarios"]) == (str(path), 2)
    assert report["tags"] == {"highway_straight": 2}
    assert report["bytes"] == path.stat().st_size
    with Pack(path) as pack:
        assert [scenario.steps for scenario in pack] == [91, 91]


def test_flags_override_set_and_set_overrides_the_file(tmp_path: Path) -> None:
    config, path = tmp_path / "town.toml", tmp_path / "town.pack"
    config.write_text('[generate]\ncount = 9\nseed = 9\nsteps = 120\nclasses = ["highway_straight"]\n')
    arguments = ["--config", str(config), "--set", "count=8", "--set", "seed=5", "--count", "1", "--processes", "1"]
    assert main(["scenarios", "generate", *arguments, "-o", str(path)]) == 0
    same = tmp_path / "same.pack"
    flags = ["--count", "1", "--seed", "5", "--steps", "120", "--class", "highway_straight", "--processes", "1"]
    assert main(["scenarios", "generate", *flags, "-o", str(same)]) == 0
    assert path.read_bytes() == same.read_bytes()
    with Pack(path) as pack:
        assert [scenario.steps for scenario in pack] == [120]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--set", "cuont=3"], "--set: cuont is unknown; did you mean count?"),
        (["--set", "count=many"], "--set: count is 'many' (text), expected a whole number"),
        (["--class", "cut_inn"], "cut_inn"),
        (["--config", "nowhere.toml"], "can't read config file 'nowhere.toml'"),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_written(
    arguments: list[str], fault: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "town.pack"
    assert main(["scenarios", "generate", *arguments, "-o", str(path)]) == 2
    assert fault in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_the_defaults_of_the_config(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    main(["scenarios", "generate", "--help"])
    named = dict(re.findall(r"--(count|seed|steps) .*\((\d+)\)\.", capsys.readouterr().out))
    defaults = GenerateConfig()
    assert named == {"count": str(defaults.count), "seed": str(defaults.seed), "steps": str(defaults.steps)}


def test_an_interrupt_ends_generation_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    # Test workers ignore SIGINT, and their children inherit that.
    command = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command += "from roadworthy.cli.main import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["scenarios", "generate", "--count", "600", "--processes", "2", "-o", str(tmp_path / "new" / "a.pack")]
    process = subprocess.Popen([sys.executable, "-c", command, *arguments], start_new_session=True)
    while not (tmp_path / "new").exists():
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(3.0)  # workers have started
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(timeout=20.0) == 130
    assert list(tmp_path.iterdir()) == []
