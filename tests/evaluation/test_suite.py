"""Evaluating the sections of a file: each fails alone, and their figures are rolled up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import typer

from roadworthy.cli.evaluate import SOME_FAILED, evaluate
from roadworthy.errors import UsageError
from roadworthy.evaluation.config import SummaryConfig
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.explain import explain
from roadworthy.evaluation.runs import eval_summary
from roadworthy.evaluation.sections import read_sections
from roadworthy.record import Run
from roadworthy.record.run import run_folders
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Control
from roadworthy.sinks import Publication, Sinks
from tests.evaluation.built_in import declare

Captured = pytest.CaptureFixture[str]
ACTORS = "tests.evaluation.actors"
SUITE = """
[eval.base]
scenarios = "{pack}"
episode.trial_steps = 30
env.control.rows = 4
checkpoint = "tests.evaluation.actors:Wander"
references = []
worlds = 4
workers = 1

[eval.good]
type = "multi_scenario"
inherits = "base"

[eval.missing_pack]
type = "multi_scenario"
inherits = "base"
scenarios = "nowhere.pack"

[eval.unknown_type]
type = "colision"
inherits = "base"

[eval.damaged_pack]
type = "multi_scenario"
inherits = "base"
scenarios = "{damaged}"

[eval.raising_metric]
type = "bad_metric"
inherits = "base"
episodes = 2

[eval.hanging]
type = "multi_scenario"
inherits = "base"
engine = "workers"
worlds = 1
checkpoint = "tests.evaluation.actors:AlwaysHangs"
time_limit_s = 0.5
retries = 0

[eval.hoarding]
type = "multi_scenario"
inherits = "base"
engine = "workers"
worlds = 1
checkpoint = "tests.evaluation.actors:AlwaysHoards"
memory_limit_gb = 0.8
retries = 0

[eval.also_good]
type = "human_replay"
inherits = "base"
summary.weight = 3.0
"""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return declare(tmp_path / "site", monkeypatch)


def write(folder: Path, pack: Pack, text: str = SUITE) -> Path:
    file = folder / "suite.toml"
    damaged = folder / "damaged.pack"
    damaged.write_bytes(pack.path.read_bytes()[:100])
    file.write_text(text.format(pack=pack.path, damaged=damaged))
    return file


def command(*arguments: str | Path) -> int:
    """`roadworthy evaluate` with these arguments."""
    app = typer.Typer()
    app.command()(evaluate)
    return app([str(argument) for argument in arguments], standalone_mode=False) or 0


@pytest.mark.row("EVAL-1")
@pytest.mark.row("EVAL-5")
@pytest.mark.row("EVAL-4")
def test_four_broken_sections_leave_four_failed_runs_with_reasons_and_two_good_ones_are_complete(
    tmp_path: Path, streets: Pack, capsys: Captured
) -> None:
    out = tmp_path / "runs"
    reasons = {
        "damaged_pack": "damaged.pack",
        "raising_metric": "a metric of mine",
        "hanging": "longer than its limit of 0.5 s",
        "hoarding": "more than its limit of 0.80 GB",
    }
    names = [argument for name in ("good", *reasons, "also_good") for argument in ("-e", name)]
    assert command(write(tmp_path, streets), "--out", out, "--json", *names) == SOME_FAILED
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    runs = {folder.parent.name: Run(folder) for folder in run_folders(out)}
    assert {name: run.status for name, run in runs.items()} == {
        "good": "completed",
        "also_good": "completed",
        **dict.fromkeys(reasons, "failed"),
    }
    for name, words in reasons.items():
        (error,) = runs[name].header["errors"]
        assert words in error["error"], name
        assert "Traceback" in error["traceback"]
    assert [run["evaluator"] for run in told["runs"]] == ["good", *reasons, "also_good"]
    assert {run["evaluator"]: run["status"] for run in told["runs"]} == {name: r.status for name, r in runs.items()}
    assert {run["evaluator"]: run["folder"] for run in told["runs"]} == {n: str(r.folder) for n, r in runs.items()}
    assert told["eval_summary"]["value"] is None
    assert Path(told["report"]).is_file()
    assert set(told["eval_summary"]["missing"]) == set(reasons)
    assert len(runs["good"].episodes()) == len(streets)


@pytest.mark.row("EVAL-1")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-e", "god"], "there is no section [eval.god]; did you mean good?"),
        (["-e", "good", "-e", "also_good", "--set", "epsiodes=2"], "epsiodes is unknown; did you mean episodes?"),
        (["-e", "unknown_type"], "unknown evaluator 'colision'"),
        (["-e", "missing_pack"], "there is no pack 'nowhere.pack'"),
        (
            ["-e", "good", "-e", "also_good", "--policy", "baseline:twon"],
            "'baseline:twon'; did you mean baseline:town?",
        ),
        (["-e", "good", "--policy", "runs/bset"], "the folder 'runs/bset' does not exist"),
    ],
)
def test_a_typo_is_one_error_with_the_nearest_name_and_leaves_no_folder(
    arguments: list[str], words: str, tmp_path: Path, streets: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        command(write(tmp_path, streets), "--out", tmp_path / "runs", *arguments)
    assert str(error.value).count(words) == 1
    assert error.value.exit_code == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.row("EVAL-4")
@pytest.mark.row("EVAL-9")
def test_a_suite_that_works_ends_with_0_and_one_figure_over_all(
    tmp_path: Path, streets: Pack, capsys: Captured
) -> None:
    arguments = ["--evaluator", "good", "--evaluator", "also_good", "--step", "77", "--epoch", "5"]
    assert command(write(tmp_path, streets), "--out", tmp_path / "runs", *arguments) == 0
    shown = capsys.readouterr()
    assert "at-fault collisions" in shown.out
    *lines, report = shown.out.splitlines()
    assert len(lines) < 24
    assert all(len(line) <= 80 for line in lines)
    assert Path(report.removeprefix("report: ")).is_file()
    runs = {folder.parent.name: Run(folder) for folder in run_folders(tmp_path / "runs")}
    scores = {}
    for name, run in runs.items():
        assert (run.header["step"], run.header["epoch"]) == (77, 5)
        assert run.metrics is not None
        scores[name] = next(figure for figure in run.metrics["figures"] if figure["name"] == "score")["value"]
    expected = (scores["good"] + 3.0 * scores["also_good"]) / 4.0
    assert f"eval_summary {expected:.4f}" in shown.out


def test_one_section_shows_all_its_main_figures_with_intervals_and_what_they_count_per(
    tmp_path: Path, streets: Pack, capsys: Captured
) -> None:
    assert command(write(tmp_path, streets), "--out", tmp_path / "runs", "-e", "good") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    (score,) = [line.split() for line in lines if line.split()[:1] == ["score"] and "=" not in line]
    value, low, high = map(float, score[1:4])
    assert low <= value <= high
    assert score[-1] == "agent"


@pytest.mark.row("REC-3")
def test_the_same_command_resumes_and_new_starts_another(tmp_path: Path, streets: Pack) -> None:
    file, out = write(tmp_path, streets), tmp_path / "runs"
    sections = [section for section in read_sections(file) if section.name == "raising_metric"]
    for _ in range(2):
        (outcome,) = evaluate_sections(sections, None, out)
        assert not outcome.is_complete
    assert len(run_folders(out)) == 1
    (outcome,) = evaluate_sections(sections, None, out, is_new=True)
    assert len(run_folders(out)) == 2
    engine = read_sections(file, overrides=["worlds=1"])
    (outcome,) = evaluate_sections([s for s in engine if s.name == "raising_metric"], None, out)
    assert len(run_folders(out)) == 2, "how it is carried out does not make it another run"
    other = read_sections(file, overrides=["seed=1"])
    (outcome,) = evaluate_sections([s for s in other if s.name == "raising_metric"], None, out)
    assert len(run_folders(out)) == 3


def test_a_section_without_a_policy_says_so(tmp_path: Path, streets: Pack) -> None:
    file = write(tmp_path, streets, '[eval.x]\ntype = "multi_scenario"\nscenarios = "{pack}"\n')
    (outcome,) = evaluate_sections(read_sections(file), None, tmp_path / "runs")
    assert "eval.x has no policy; name one with --policy" in str(outcome.error)


@pytest.mark.row("EVAL-10")
def test_a_policy_that_mixes_rows_up_is_not_evaluated(tmp_path: Path, streets: Pack) -> None:
    file = write(tmp_path, streets)
    sections = [section for section in read_sections(file) if section.name == "good"]
    (outcome,) = evaluate_sections(sections, "tests.evaluation.test_probe:Shares", tmp_path / "runs")
    assert "can't be evaluated: its actions for an agent change with what runs in other rows" in str(outcome.error)


@pytest.mark.row("EVAL-2")
def test_human_replay_lets_the_policy_drive_the_self_driving_car_alone(tmp_path: Path, streets: Pack) -> None:
    sections = [section for section in read_sections(write(tmp_path, streets)) if section.name == "also_good"]
    (outcome,) = evaluate_sections(sections, None, tmp_path / "runs")
    assert outcome.run is not None
    assert set(outcome.run.agents()["agent"].to_pylist()) == {0}
    for name in outcome.run.ledger["episode_id"].to_pylist():
        trace = outcome.run.trace(name)
        assert trace.sources[0] == 0
        assert (trace.roles == 0).sum() == 1


@pytest.mark.row("EVAL-1")
def test_what_human_replay_stands_for_is_explained_and_can_not_be_set_otherwise(tmp_path: Path, streets: Pack) -> None:
    file = write(tmp_path, streets)
    (section,) = (s for s in read_sections(file) if s.name == "also_good")
    told = {setting.key: (setting.value, setting.source) for setting in explain(section)}
    assert told["env.mode"] == ("replay", "evaluator human_replay")
    assert told["env.control.who"] == ("sdc", "evaluator human_replay")
    assert section.config.env.control.who is Control.SDC
    contrary = next(s for s in read_sections(file, overrides=["env.control.who=vehicles"]) if s.name == "also_good")
    assert "env.control.who is 'vehicles', but the evaluator 'human_replay' always has 'sdc'" in str(contrary.error)


class NoSink:
    """A sink that never works."""

    config_type = int

    def __init__(self, config: int, folder: Path) -> None:
        raise ConnectionError("nobody is there")


class Pile:
    """A sink that keeps what it is given."""

    config_type = int
    given: ClassVar[list[Publication]] = []

    def __init__(self, config: int, folder: Path) -> None:
        pass

    def write(self, publication: Publication) -> None:
        self.given.append(publication)

    def close(self) -> None:
        pass


@pytest.mark.row("REC-4")
@pytest.mark.row("UI-3")
def test_a_sink_that_fails_is_an_artifact_error_and_others_get_figures_and_videos(
    tmp_path: Path, streets: Pack
) -> None:
    overrides = ["episodes=2", "render.episodes=1", "render.max_steps=3", "render.size=[64,64]"]
    sections = [s for s in read_sections(write(tmp_path, streets), overrides=overrides) if s.name == "good"]
    with Sinks({"bad": (NoSink, 0), "pile": (Pile, 0)}, tmp_path) as sinks:  # type: ignore[dict-item]
        (outcome,) = evaluate_sections(sections, None, tmp_path / "runs", sinks=sinks, step=5, epoch=1)
    assert outcome.is_complete
    assert outcome.run is not None
    errors = {artifact.name: artifact.error for artifact in outcome.run.artifacts if artifact.error}
    assert errors == {"sink_bad": "ConnectionError: nobody is there"}
    (publication,) = Pile.given
    assert (publication.evaluator, publication.step, publication.epoch) == ("good", 5, 1)
    assert "good/score" in publication.named_figures()
    (video,) = publication.named_videos().values()
    assert video.is_file()
    assert "_epoch1_step5_ego" in video.name


@pytest.mark.row("EVAL-9")
def test_the_roll_up_is_null_when_a_weighted_part_is_missing(tmp_path: Path, streets: Pack) -> None:
    sections = read_sections(write(tmp_path, streets), overrides=["episodes=3"])
    wanted = [section for section in sections if section.name in ("good", "also_good", "missing_pack")]
    outcomes = {outcome.name: outcome for outcome in evaluate_sections(wanted, None, tmp_path / "runs")}
    good, also_good, missing = (outcomes[name] for name in ("good", "also_good", "missing_pack"))
    whole = eval_summary([good, also_good])
    values = {part["evaluator"]: part["value"] for part in whole["parts"]}
    assert whole["value"] == pytest.approx((values["good"] + 3.0 * values["also_good"]) / 4.0)
    assert eval_summary([good, also_good, missing])["value"] is None
    assert eval_summary([good, also_good, missing])["missing"] == ["missing_pack"]
    assert missing.config is not None
    unweighted = replace(missing, config=replace(missing.config, summary=SummaryConfig(weight=0.0)))
    assert eval_summary([good, also_good, unweighted]) == whole
    assert eval_summary([])["value"] is None
