"""`roadworthy train`: from a file to a checkpoint, Ctrl-C, grids and errors."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from roadworthy.cli.learning import figures, line, run_facts, table
from roadworthy.cli.main import main
from roadworthy.cli.output import console
from roadworthy.policy.checkpoint import load_checkpoint
from roadworthy.policy.checkpoint_files import WEIGHTS, newest
from roadworthy.scenario.pack import Pack
from roadworthy.training.config import TrainConfig
from roadworthy.training.progress import Progress
from roadworthy.training.run import run_training
from tests.plugin_package import install_own
from tests.sinks.event_files import tensorboard_events
from tests.training.small import as_toml, command_of, config, sim, streets


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return streets(tmp_path_factory.mktemp("streets") / "streets.pack")


@pytest.fixture
def settings(pack: Pack) -> TrainConfig:
    return config(env=sim(2), steps=300, scenarios=str(pack.path))


@pytest.fixture
def file(settings: TrainConfig, tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(as_toml(settings))
    return path


@pytest.mark.row("PPO-4")
def test_a_file_is_trained_with_lines_of_progress_and_a_checkpoint_at_the_end(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", str(file), "--out", str(out), "--set", "seed=5", "--json"]) == 0
    told = capsys.readouterr()
    result = json.loads(told.out.splitlines()[-1])
    checkpoint = load_checkpoint(result["checkpoint"])
    assert result["step"] == checkpoint.step
    assert result["curve"] == str(out / "curve.png")
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert checkpoint.step >= 300
    assert checkpoint.about["train"]["seed"] == 5
    for word in ("of 300 agent-steps", "left", "entropy", "explained variance", "score", "n "):
        assert word in told.err
    # The same command has nothing left to do, and says the same.
    assert main(["train", str(file), "--out", str(out), "--set", "seed=5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == result
    lines = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == checkpoint.step
    # The same command has nothing left to do, and says where the policy is.
    assert main(["train", str(file), "--out", str(out), "--set", "seed=5"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(
        f"trained: {checkpoint.path} (the training was finished before; to continue it, give more steps"
    )
    # With more steps it continues.
    assert main(["train", str(file), "--out", str(out), "--set", "seed=5", "--set", "steps=500"]) == 0
    told = capsys.readouterr()
    assert f"curve: {out / 'curve.png'}\n" in told.out
    assert told.out.endswith(f"evaluate it: roadworthy evaluate town --policy {out}\n")
    assert f"resuming from step {checkpoint.step:,}" in told.err
    assert load_checkpoint(told.out.splitlines()[0].removeprefix("trained: ")).step >= 500


@pytest.mark.row("LEARN-1")
@pytest.mark.parametrize("where", ["flag", "set", "file"])
def test_a_sink_is_switched_on_by_a_flag_a_setting_or_the_file(
    where: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    out, given = (
        tmp_path / "run",
        {"flag": ["--sink", "tensorboard"], "set": ["--set", "sinks.tensorboard.gif_frames=3"]},
    )
    if where == "file":
        file.write_text(file.read_text() + "[sinks.tensorboard]\n")
    assert main(["train", str(file), "--out", str(out), *given.get(where, [])]) == 0
    steps = [json.loads(line)["step"] for line in (out / "progress.jsonl").read_text().splitlines()]
    assert [event.step for event in tensorboard_events(out / "tensorboard").Scalars("losses/policy_loss")] == steps
    assert f"curves: tensorboard --logdir {out}\n" in capsys.readouterr().out


@pytest.mark.row("PPO-4")
def test_ctrl_c_writes_a_checkpoint_and_exits_with_130(settings: TrainConfig, tmp_path: Path) -> None:
    settings = replace(settings, steps=3000, checkpoint_interval=10_000)
    out = tmp_path / "run"
    command = [sys.executable, *command_of(settings, tmp_path), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    progress = out / "progress.jsonl"
    while process.poll() is None and not (progress.exists() and progress.read_bytes().count(b"\n") >= 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    checkpoint = newest(out / "checkpoints")
    assert checkpoint is not None
    assert f"checkpoint: {checkpoint}; the same command resumes" in told
    assert load_checkpoint(checkpoint).epoch >= 3
    assert load_checkpoint(checkpoint).step < settings.steps
    gone_on = run_training(settings, Path(settings.scenarios), out)
    at_once = run_training(settings, Path(settings.scenarios), tmp_path / "at-once")
    assert (gone_on / WEIGHTS).read_bytes() == (at_once / WEIGHTS).read_bytes()


@pytest.mark.row("PPO-7")
def test_a_grid_runs_one_by_one_and_writes_a_table(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "grid"
    grid = ["train", str(file), "--out", str(out), "--set", "steps=150", "--grid", "policy.core=mlp,lstm"]
    grid += ["--grid", "seed=1,2"]
    # On a cluster: one run by its number, here the third.
    assert main([*grid, "--grid-index", "2"]) == 0
    rows = list(csv.DictReader((out / "grid.csv").open()))
    assert [row["status"] for row in rows] == ["pending", "pending", "completed", "pending"]
    assert (rows[2]["policy.core"], rows[2]["seed"]) == ("lstm", "1")
    capsys.readouterr()
    assert main(grid) == 0
    told = capsys.readouterr()
    assert [line for line in told.err.splitlines() if line.startswith("run ")] == [
        "run 1 of 4: policy.core=mlp,seed=1",
        "run 2 of 4: policy.core=mlp,seed=2",
        "run 4 of 4: policy.core=lstm,seed=2",
    ]
    assert told.out.count("completed") == 4
    assert "means over seeds, and the lowest and the highest" in told.out
    assert main([*grid, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out.splitlines()[-1])["runs"]
    assert [run["status"] for run in runs] == ["completed"] * 4
    assert {load_checkpoint(run["checkpoint"]).policy.config.core for run in runs} == {"mlp", "lstm"}


@pytest.mark.row("PPO-7")
def test_a_failed_run_of_a_grid_ends_with_1_and_the_others_run(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "grid"
    grid = ["train", str(file), "--out", str(out), "--set", "steps=150", "--grid", "ppo.num_minibatches=99,1"]
    assert main(grid) == 1
    told = capsys.readouterr().out
    assert "run 0 failed: " in told
    assert "ppo.num_minibatches is 99, but there are only 16 rows" in told
    rows = list(csv.DictReader((out / "grid.csv").open()))
    assert [row["status"] for row in rows] == ["failed", "completed"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "'nowhere' is neither a file nor a preset; known: adaptive, default, fast"),
        (["fast", "--set", "ppo.clip_coff=1"], "ppo.clip_coff is unknown; did you mean ppo.clip_coef?"),
        (["fast", "--set", "eval.town.interval=5"], "--set eval.town.interval=5 is for an evaluator, but "),
        (["fast", "--sink", "tensorbord"], "unknown sink 'tensorbord'; did you mean tensorboard?"),
        (["fast", "--set", "sinks.wandb.projekt=x"], "[sinks.wandb]: projekt is unknown; did you mean project?"),
        (["fast", "--set", "sinks.wandb=3"], "sinks.wandb is 3, expected a table"),
        (["fast", "--set", "threads=-1"], "threads is -1, expected at least 0"),
        (["fast", "--set", "ppo.final_learning_rate=-1.0"], "final_learning_rate is -1.0, expected at least 0"),
        (["fast", "--set", "ppo.prio_alpha=-1.0"], "prio_alpha is -1.0, expected at least 0"),
        (["fast", "--set", "ppo.vtrace_c_clip=0.0"], "vtrace_c_clip is 0.0, expected above 0"),
        (["fast", "--grid-index", "1"], "--grid-index is given without --grid"),
        (["fast", "--grid", "seed=1,2", "--grid-index", "2"], "--grid-index is 2; the grid has 2 runs, 0 to 1"),
        (["fast", "--grid", "seed=1,2", "--trace", "t"], "choose one of the grid with --grid-index"),
    ],
)
def test_wrong_words_are_errors_and_create_no_folder(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.row("PPO-4")
@pytest.mark.row("TRIAL-8")
def test_the_live_table_shows_throughput_losses_figures_trials_and_the_time_left() -> None:
    of_egos = {"score": 0.5, "goal_rate": None, "trial_0_score": 0.25, "ada_delta_trial_1_minus_0": 0.125, "n": 12}
    losses = {"policy_loss": 0.01, "entropy": 1.5, "explained_variance": 0.75}
    told = Progress(3, 1000, 3000, 10.0, 100.0, 2, 1e-3, losses, of_egos, 0)
    facts = dict(run_facts(told))
    assert facts["per second"] == "100"
    assert (facts["time passed"], facts["time left"]) == ("10 s", "20 s")
    assert (facts["policy loss"], facts["explained variance"]) == ("0.01", "0.75")
    shown = dict(figures(told))
    assert shown["agents with data (n)"] == "12"
    assert shown["goal_rate"] == shown["collision_rate"] == shown["at_fault_collision_rate"] == "no data"
    assert (shown["trial_0_score"], shown["ada_delta_trial_1_minus_0"]) == ("0.250", "+0.125")
    for words in ("score 0.500", "at_fault_collision_rate no data", "ada_delta_trial_1_minus_0 +0.125", "n 12"):
        assert words in line(told)
    screen = console()
    with screen.capture() as captured:
        screen.print(table(told))
    for words in ("training: 33%, 20 s left", *facts, *facts.values(), *shown, *shown.values()):
        assert words in captured.get()


@pytest.mark.row("UI-1")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[sinks.tensorbord]", "did you mean tensorboard?"),
        ("[sinks.tensorboard]\nfoldr = 'x'", "did you mean folder?"),
        ("[sinks]\ntensorboard = true", "expected a table"),
        ("[eval.a]\ntype = 'multi_scenario'\n[sinks.wandbb]", "did you mean wandb?"),
    ],
)
def test_a_misspelled_sink_is_an_error_before_anything_is_written(
    table: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    install_own(tmp_path / "own", monkeypatch)
    config, out = tmp_path / "mine.toml", tmp_path / "runs" / "mine"
    config.write_text(f"scenarios = 'nowhere.pack'\n{table}\n")
    assert main(["train", str(config), "--out", str(out)]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "runs").exists()
