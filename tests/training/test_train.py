"""`rw.train`: the same as the command, and nothing is written for a wrong word."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from roadworthy.cli.main import main
from roadworthy.errors import ConfigError, DeviceError, UsageError
from roadworthy.policy.checkpoint import load_checkpoint
from roadworthy.policy.checkpoint_files import resolve_checkpoint
from roadworthy.scenario.pack import Pack
from roadworthy.training.train import train
from tests.training.small import as_toml, config, sim

SUITE = """
[eval.drive]
type = "multi_scenario"
scenarios = "{pack}"
interval = 2
worlds = 2
episodes = 2
episode.trials = 1
episode.trial_steps = 6
references = []
"""


@pytest.fixture
def file(pack: Pack, tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(as_toml(config(env=sim(2), steps=300, scenarios=str(pack.path))))
    return path


def checkpoint_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.row("PPO-4")
def test_the_command_and_the_function_give_the_same_checkpoint(file: Path, tmp_path: Path) -> None:
    words = ["seed=5", "ppo.gamma=0.9", "steps=2e2"]
    given = [word for key in words for word in ("--set", key)]
    assert main(["train", str(file), "--out", str(tmp_path / "command"), *given]) == 0
    by_words = train(file, out=tmp_path / "words", set=words)
    by_mapping = train(str(file), out=str(tmp_path / "mapping"), set={"seed": 5, "ppo.gamma": 0.9, "steps": 200})
    expected = checkpoint_bytes(resolve_checkpoint(tmp_path / "command"))
    assert checkpoint_bytes(by_words.last) == expected
    assert checkpoint_bytes(by_mapping.last) == expected
    assert by_words.step == load_checkpoint(by_words.folder).step >= 200
    assert by_words.figures["n"]


@pytest.mark.row("PPO-4")
def test_a_resumed_training_says_from_which_step(file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    first = train(file, out=tmp_path / "run", set={"steps": 100}, say=said.append)
    assert not any("resuming" in line for line in said)
    again = train(file, out=tmp_path / "run", set={"steps": 200}, say=said.append)
    assert f"resuming from step {first.step:,} ({first.last})" in said
    assert again.step > first.step
    assert train(file, out=tmp_path / "run", set={"steps": 200}).updates == 0


@pytest.mark.row("EVAL-3")
def test_a_suite_is_evaluated_during_training_and_chooses_the_best_checkpoint(
    file: Path, pack: Pack, tmp_path: Path
) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE.format(pack=pack.path))
    said: list[str] = []
    result = train(file, out=tmp_path / "run", eval=suite, set={"eval.drive.seed": 3, "keep": 1}, say=said.append)
    scores = {}
    for path in (tmp_path / "run" / "evaluations" / "drive").glob("*/run.json"):
        header = json.loads(path.read_text())
        figures = json.loads((path.parent / "metrics.json").read_text())["figures"]
        scores[header["step"]] = next(figure["value"] for figure in figures if figure["name"] == "score")
        assert header["config"]["seed"] == 3
    assert len(scores) > 1
    best = max(scores, key=lambda step: (scores[step], step))
    assert load_checkpoint(result.best).step == load_checkpoint(f"{result.folder}@best").step == best


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"config": "fats"}, UsageError, "'fats' is neither a file nor a preset; did you mean fast"),
        ({"set": {"ppo.gama": 0.9}}, ConfigError, r"ppo\.gama is unknown; did you mean ppo\.gamma"),
        ({"set": ["policy.core=ltsm"]}, ConfigError, "unknown core 'ltsm'; did you mean lstm"),
        ({"set": {"eval.town.seed": 1}}, ConfigError, "is for an evaluator, but"),
        ({"eval": "twon"}, UsageError, "twon"),
        ({"sinks": ["tensorbord"]}, ConfigError, "unknown sink 'tensorbord'"),
    ],
)
def test_a_wrong_word_writes_nothing(
    words: dict[str, Any], error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        train(**{"config": "fast", **words})
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_training_on_a_gpu_without_one_is_refused_before_scenarios_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    phases: list[str] = []

    def progress(name: str) -> Any:
        phases.append(name)
        raise AssertionError(name)

    with pytest.raises(DeviceError, match=r"torch finds no GPU .* train the preset fast, or give --set device=cpu"):
        train("default", progress=progress)
    assert not phases
    assert not list(tmp_path.iterdir())
    assert main(["train", "default"]) == DeviceError.exit_code


def press_ctrl_c(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.row("PPO-4")
def test_ctrl_c_in_an_update_saves_a_checkpoint_to_resume_from(file: Path, tmp_path: Path) -> None:
    whole = train(file, out=tmp_path / "whole")
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        train(file, out=tmp_path / "run", set={"checkpoint_interval": 1000}, on_update=press_ctrl_c, say=said.append)
    checkpoint = resolve_checkpoint(tmp_path / "run")
    assert said[-1] == f"checkpoint: {checkpoint}; the same command resumes"
    assert load_checkpoint(checkpoint).epoch == 1 or load_checkpoint(checkpoint).epoch == 2
    resumed = train(file, out=tmp_path / "run")
    assert (resumed.last / "policy.safetensors").read_bytes() == (whole.last / "policy.safetensors").read_bytes()


@pytest.mark.row("PPO-4")
def test_ctrl_c_while_scenarios_are_generated_stops_at_once(tmp_path: Path) -> None:
    done: list[int] = []

    class Pressing:
        """Presses Ctrl-C when the first scenario is there."""

        def __enter__(self) -> Any:
            return self.report

        def __exit__(self, *_: Any) -> None: ...

        def report(self, count: int, total: int) -> None:
            done.append(count)
            press_ctrl_c()

    small = {"scenarios": f"generate:cut_in?count=3&seed={os.getpid()}"}
    with pytest.raises(KeyboardInterrupt):
        train("fast", out=tmp_path / "run", set=small, progress=lambda name: Pressing())
    assert len(done) == 1
    assert not (tmp_path / "run").exists()
