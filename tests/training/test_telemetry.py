"""Telemetry: what a training hands to sinks, read back from the files that their own clients have written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from roadworthy.config import plain
from roadworthy.policy.checkpoint_files import WEIGHTS
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import AtGoal, EpisodeConfig, GoalConfig, InfractionConfig, LogConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sinks import Sinks
from roadworthy.sinks.publish import flat
from roadworthy.training.config import TrainConfig
from roadworthy.training.progress import Progress
from roadworthy.training.run import run_training
from roadworthy.training.telemetry import FILE, Telemetry, scalars_of
from tests.sinks.event_files import tensorboard_events, wandb_runs
from tests.training.small import HORIZON, config, sim

DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"


def progress_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]


def sinks(folder: Path, *names: str) -> Sinks:
    found: dict[str, Any] = {}
    if "tensorboard" in names:
        tensorboard = pytest.importorskip("roadworthy.sinks.tensorboard")
        found["tensorboard"] = tensorboard.TensorBoardSink, tensorboard.TensorBoardConfig()
    if "wandb" in names:
        wandb = pytest.importorskip("roadworthy.sinks.wandb")
        found["wandb"] = wandb.WandbSink, wandb.WandbConfig(mode="offline")
    return Sinks(found, folder)


def run(
    settings: TrainConfig, pack: Pack, folder: Path, *names: str, after: Callable[[int], None] | None = None
) -> Path:
    """Train with sinks; `after` is called with the number of each update, after it was published."""

    def evaluate(update: int, *_: Any) -> None:
        if after is not None:
            after(update)

    with sinks(folder, *names) as opened:
        return run_training(settings, pack.path, folder, sinks=opened, evaluate=evaluate)


def kill_at(number: int) -> Callable[[int], None]:
    def after(update: int) -> None:
        if update == number:
            raise KeyboardInterrupt

    return after


@pytest.fixture(scope="module")
def trained(pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two trials that tells TensorBoard."""
    folder = tmp_path_factory.mktemp("told") / "mine"
    run(config(env=sim(2), steps=600), pack, folder, "tensorboard")
    return folder


@pytest.mark.row("LEARN-1")
def test_tensorboard_has_the_scalars_of_every_update_over_agent_steps(trained: Path) -> None:
    events, lines = tensorboard_events(trained / "tensorboard"), progress_of(trained)
    told = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    named = {
        f"losses/{name}": name
        for name in "policy_loss value_loss entropy approx_kl clipfrac grad_norm explained_variance".split()
    }
    assert {tag for tag in told if tag.startswith("losses/")} == named.keys()
    for tag, name in named.items():
        assert told[tag] == [(line["step"], pytest.approx(line["losses"][name], rel=1e-6)) for line in lines]
    assert told["charts/SPS"] == [(line["step"], pytest.approx(line["steps_per_s"], rel=1e-6)) for line in lines]
    assert told["charts/learning_rate"] == [
        (line["step"], pytest.approx(line["learning_rate"], rel=1e-6)) for line in lines
    ]
    assert [value for _, value in told["charts/epoch"]] == [float(k + 1) for k in range(len(lines))]
    assert {value for _, value in told["charts/trials"]} == {2.0}


@pytest.mark.row("LEARN-1")
@pytest.mark.row("TRIAL-8")
def test_tensorboard_has_the_reported_figures_with_n_and_those_of_trials(trained: Path) -> None:
    events, lines = tensorboard_events(trained / "tensorboard"), progress_of(trained)
    reported = [line for line in lines if line["is_reported"]]
    assert reported
    for name in ("score", "n", "trial_0_score", "trial_1_score", "ada_delta_trial_1_minus_0", "return"):
        told = [(event.step, event.value) for event in events.Scalars(f"environment/{name}")]
        assert told == [(line["step"], pytest.approx(line["figures"][name], rel=1e-6)) for line in reported]
    empty = [name for name, value in reported[0]["figures"].items() if value is None]
    tags = events.Tags()["scalars"]
    always_empty = {n for n in empty if all(line["figures"][n] is None for line in reported)}
    assert not [f"environment/{name}" for name in always_empty if f"environment/{name}" in tags]


@pytest.mark.row("LEARN-1")
def test_tensorboard_shows_the_settings_as_text(trained: Path) -> None:
    events = tensorboard_events(trained / "tensorboard")
    (event,) = events.Tensors("config/text_summary")
    rows = dict(re.findall(r"^\| (\S+) \| (.*) \|$", event.tensor_proto.string_val[0].decode(), re.MULTILINE))
    expected = flat(json.loads((trained / "config.json").read_text()))
    del rows["setting"]
    assert rows == {key: str(value) for key, value in expected.items()}
    assert rows["ppo.learning_rate"] == "0.003"


@pytest.mark.row("LEARN-1")
def test_every_name_is_documented_and_no_other(trained: Path) -> None:
    text = DOCUMENT.read_text()
    documented = set(re.findall(r"^\| `((?:charts|losses|environment)/[^`]+)` \|", text, re.MULTILINE))
    shown = set(tensorboard_events(trained / "tensorboard").Tags()["scalars"])
    of_figures = {tag for tag in shown if tag.startswith("environment/")}
    assert shown - of_figures == {name for name in documented if not name.startswith("environment/")} - {
        "charts/gpu_memory_gib"
    }
    assert {name for name in documented if name.startswith("environment/")} == {
        "environment/n",
        "environment/FIGURE",
        "environment/trial_K_score",
        "environment/ada_delta_trial_K_minus_0",
    }


@pytest.mark.row("LEARN-1")
def test_wandb_gets_scalars_and_settings_and_a_resumed_training_its_own_run_again(
    pack: Pack, tmp_path: Path, no_wandb_run: Any
) -> None:
    folder, settings = tmp_path / "mine", config(steps=600, checkpoint_interval=3)
    with pytest.raises(KeyboardInterrupt):
        run(settings, pack, folder, "wandb", after=kill_at(5))
    run(settings, pack, folder, "wandb")
    no_wandb_run.teardown()
    first, second = wandb_runs(folder)
    assert first.id == second.id == json.loads((folder / FILE).read_text())["id"]
    assert (first.name, first.job_type) == ("mine", "train")
    assert first.config["ppo"]["learning_rate"] == settings.ppo.learning_rate
    assert first.config["worlds"] == settings.worlds
    lines = progress_of(folder)
    assert [row["step"] for row in first.history] == [line["step"] for line in lines[:5]]
    assert [row["step"] for row in [*first.history, *second.history]] == [line["step"] for line in lines]
    assert second.history[-1]["losses/policy_loss"] == pytest.approx(lines[-1]["losses"]["policy_loss"])
    assert second.history[-1]["environment/n"] == lines[-1]["figures"]["n"]


@pytest.mark.row("LEARN-1")
def test_a_training_that_is_killed_again_and_again_shows_every_step_once(pack: Pack, tmp_path: Path) -> None:
    settings, folder = config(steps=800, checkpoint_interval=4), tmp_path / "mine"
    for number in (7, 6, 9):  # from the second on, updates 5 and 6 are made again
        with pytest.raises(KeyboardInterrupt):
            run(settings, pack, folder, "tensorboard", after=kill_at(number))
    run(settings, pack, folder, "tensorboard")
    events = tensorboard_events(folder / "tensorboard")
    steps = [event.step for event in events.Scalars("losses/entropy")]
    assert steps == [line["step"] for line in progress_of(folder)]
    assert len(events.Tensors("config/text_summary")) == 1


def test_a_new_training_in_the_same_folder_is_another_run(pack: Pack, tmp_path: Path) -> None:
    settings, folder = config(steps=150), tmp_path / "mine"
    run(settings, pack, folder, "tensorboard")
    before = json.loads((folder / FILE).read_text())["id"]
    steps = [line["step"] for line in progress_of(folder)]
    with sinks(folder, "tensorboard") as opened:
        run_training(settings, pack.path, folder, sinks=opened, is_new=True)
    assert json.loads((folder / FILE).read_text())["id"] != before
    for place in (folder / "tensorboard", folder / "before-1" / "tensorboard"):
        assert [event.step for event in tensorboard_events(place).Scalars("charts/SPS")] == steps


class Faulty:
    """A sink that fails until it is told to work."""

    config_type: ClassVar[type] = dict
    works: ClassVar[bool] = False
    taken: ClassVar[list[int]] = []
    calls: ClassVar[int] = 0

    def __init__(self, config: Any, folder: Path) -> None: ...

    def write(self, publication: Any) -> None:
        Faulty.calls += 1
        if not Faulty.works:
            raise OSError(28, "No space left on device")
        Faulty.taken.append(publication.step)

    def close(self) -> None:
        raise RuntimeError("gone")


@pytest.fixture
def faulty() -> type[Faulty]:
    Faulty.works, Faulty.taken, Faulty.calls = False, [], 0
    return Faulty


@pytest.mark.row("LEARN-1")
@pytest.mark.row("REC-4")
def test_a_failing_sink_gives_a_message_and_does_not_change_training(
    pack: Pack, tmp_path: Path, faulty: type[Faulty]
) -> None:
    settings, warnings = config(steps=300), []  # type: ignore[var-annotated]
    alone = run_training(settings, pack.path, tmp_path / "alone")
    with Sinks({"faulty": (faulty, {})}, tmp_path) as opened:  # type: ignore[dict-item]
        beside = run_training(settings, pack.path, tmp_path / "beside", sinks=opened, say=warnings.append)
    assert (alone / WEIGHTS).read_bytes() == (beside / WEIGHTS).read_bytes()
    count = len(progress_of(tmp_path / "beside"))
    assert warnings == [
        "sink faulty failed: OSError: [Errno 28] No space left on device; training continues, and the sink is tried "
        "again later",
        "sink faulty failed until the end: OSError: [Errno 28] No space left on device; "
        f"{count} updates are missing in it",
    ]


def test_a_failing_sink_is_tried_again_later(tmp_path: Path, faulty: type[Faulty]) -> None:
    now, warnings = [0.0], []  # type: ignore[var-annotated]
    opened = Sinks({"faulty": (faulty, {})}, tmp_path)  # type: ignore[dict-item]
    telemetry = Telemetry(opened, tmp_path, warnings.append, clock=lambda: now[0])
    telemetry.start(config(), 0)
    for number in range(1, 91):  # an update each second
        now[0] += 1.0
        faulty.works = number > 40
        telemetry.publish(update(number))
    assert faulty.taken == [100 * number for number in range(61, 91)]
    assert faulty.calls == 2 + len(faulty.taken), "it is tried at 1 s, at 31 s and from 61 s on"
    assert warnings[1:] == ["sink faulty works again; 60 updates are missing in it"]


def update(number: int, **more: Any) -> Progress:
    return Progress(number, 100 * number, 6000, float(number), 100.0, 1, 1e-3, {"policy_loss": 0.5}, {}, 0, **more)


def test_figures_are_scalars_where_they_were_reported() -> None:
    told = replace(update(3), figures={"score": 0.5, "comfort": None, "n": 4})
    assert scalars_of(told)["environment/score"] == 0.5
    assert not any(name.startswith("environment/") for name in scalars_of(replace(told, is_reported=False)))
    assert "charts/gpu_memory_gib" not in scalars_of(told)
    assert scalars_of(replace(told, memory_bytes=3 << 30))["charts/gpu_memory_gib"] == 3.0


@pytest.mark.row("LOG-2")
def test_figures_are_reported_at_the_interval_of_the_worlds_steps_and_at_the_end(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    figures = DriveEnv.figures

    def counted(env: DriveEnv) -> Any:
        asked.append(env.step_count)
        return figures(env)

    monkeypatch.setattr(DriveEnv, "figures", counted)
    settings = config(env=replace(sim(), log=LogConfig(report_interval=12)), steps=700)
    run_training(settings, pack.path, tmp_path)
    lines = progress_of(tmp_path)
    worlds_steps = HORIZON * len(lines)
    due = list(range(12, worlds_steps + 1, 12))
    assert asked == due or asked == [*due, worlds_steps]
    updates = {-(-step // HORIZON) for step in due} | {len(lines)}
    first = min(line["update"] for line in lines if line["is_reported"])
    assert [line["update"] for line in lines if line["is_reported"]] == sorted(u for u in updates if u >= first)
    for before, line in pairwise(lines):
        if not line["is_reported"]:
            assert line["figures"] == before["figures"]


@pytest.mark.row("LOG-3")
def test_nothing_is_reported_before_the_first_episode_ends(pack: Pack, tmp_path: Path) -> None:
    env = sim(
        log=LogConfig(report_interval=1),
        episode=EpisodeConfig(1, 20),
        goal=GoalConfig(AtGoal.LEAVE, radius_m=0.001),  # nobody gets there, and nothing else ends an episode early
        infraction=InfractionConfig(),
    )
    settings, seen = config(env=env, steps=900), []  # type: ignore[var-annotated]
    run_training(settings, pack.path, tmp_path, report=seen.append)
    assert [bool(told.figures) for told in seen[:3]] == [False, False, True], "the first end is in step 20 of 24"
    assert [told.is_reported for told in seen[:3]] == [False, False, True]
    assert seen[-1].figures["n"] > 0
    assert all(bool(told.figures) for told in seen if told.is_reported)


@pytest.mark.row("LOG-2")
def test_how_often_figures_are_reported_changes_nothing_and_may_change_when_a_run_is_resumed(
    pack: Pack, tmp_path: Path
) -> None:
    often, never = (config(env=replace(sim(), log=LogConfig(report_interval=k)), steps=400) for k in (1, 10_000))
    ends = [run_training(settings, pack.path, tmp_path / name) for settings, name in ((often, "a"), (never, "b"))]
    assert (ends[0] / WEIGHTS).read_bytes() == (ends[1] / WEIGHTS).read_bytes()
    end = run_training(replace(never, steps=600), pack.path, tmp_path / "a")
    assert plain(never)["env"]["log"]["report_interval"] == 10_000
    again = run_training(replace(often, steps=600), pack.path, tmp_path / "b")
    assert (end / WEIGHTS).read_bytes() == (again / WEIGHTS).read_bytes()


@pytest.mark.row("LOG-2")
def test_a_resumed_run_reports_the_same_as_an_uninterrupted_one(pack: Pack, tmp_path: Path) -> None:
    settings = config(env=replace(sim(), log=LogConfig(report_interval=20)), steps=700, checkpoint_interval=3)
    with pytest.raises(KeyboardInterrupt):
        run(settings, pack, tmp_path / "a", after=kill_at(7))
    run(settings, pack, tmp_path / "a")
    run(settings, pack, tmp_path / "b")
    stopped, whole = (progress_of(tmp_path / name) for name in ("a", "b"))
    for names in ("figures", "is_reported", "losses", "step"):
        assert [line[names] for line in stopped] == [line[names] for line in whole]
