"""Sections with a policy of their own: baselines beside the checkpoint that is evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.config import Layer
from roadworthy.errors import ConfigError
from roadworthy.evaluation.config import EvaluatorConfig, SummaryConfig
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.recorded import open_run
from roadworthy.evaluation.replay import replay
from roadworthy.evaluation.runs import eval_summary
from roadworthy.evaluation.sections import read_sections
from roadworthy.evaluation.training import training_of
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import SimConfig
from tests.plugin_package import install_own

SUITE = """
[eval.driven]
type = "multi_scenario"
clean = true
scenarios = "{pack}"
episode.trial_steps = 10
env.control.rows = 4

[eval.baseline]
type = "multi_scenario"
inherits = "driven"
policy = "expert:log"

[eval.counted]
type = "multi_scenario"
inherits = "baseline"
policy = "zero"
summary.weight = 2.0
"""


@pytest.fixture(autouse=True)
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_own(tmp_path / "site", monkeypatch)


@pytest.fixture
def suite(tmp_path: Path, streets: Pack) -> Path:
    file = tmp_path / "suite.toml"
    file.write_text(SUITE.format(pack=streets.path))
    return file


@pytest.mark.row("EVAL-1")
def test_a_baseline_drives_whatever_checkpoint_is_evaluated_and_has_no_part_in_the_summary(
    tmp_path: Path, suite: Path
) -> None:
    outcomes = evaluate_sections(read_sections(suite), "random", tmp_path / "runs")
    runs = {outcome.name: outcome.run for outcome in outcomes}
    assert {name: run.header["policy_spec"] for name, run in runs.items() if run} == {
        "driven": "random",
        "baseline": "expert:log",
        "counted": "zero",
    }
    parts = eval_summary(outcomes)["parts"]
    assert {part["evaluator"]: part["weight"] for part in parts} == {"driven": 1.0, "counted": 2.0}
    baseline = runs["baseline"]
    assert baseline is not None
    replay(open_run(baseline), baseline.ledger["episode_id"][0].as_py())  # the run knows its own policy


def test_a_baseline_knows_nothing_of_the_checkpoints_training(suite: Path) -> None:
    trained = Layer("policy.json", {"env": {"model": "jerk", "disturb": {"dropout": 0.5}}})
    beside = {section.name: section.config for section in read_sections(suite, training=trained)}
    alone = {section.name: section.config for section in read_sections(suite)}
    assert beside["driven"].digest != alone["driven"].digest
    assert beside["baseline"].digest == alone["baseline"].digest


def test_without_any_other_policy_a_baseline_still_runs(tmp_path: Path, suite: Path) -> None:
    outcomes = {outcome.name: outcome for outcome in evaluate_sections(read_sections(suite), None, tmp_path / "runs")}
    assert isinstance(outcomes["driven"].error, ConfigError)
    assert outcomes["baseline"].is_complete


def test_a_weight_that_is_given_counts() -> None:
    def weight(**settings: object) -> float | None:
        return EvaluatorConfig(type="any", scenarios="some.pack", **settings).summary.weight  # type: ignore[arg-type]

    assert (weight(), weight(policy="zero")) == (1.0, 0.0)
    assert weight(policy="zero", summary=SummaryConfig(weight=0.5)) == 0.5
    with pytest.raises(ConfigError, match="weight is -1"):
        SummaryConfig(weight=-1.0)


def test_the_shipped_baseline_is_evaluated_with_the_weights_that_it_was_trained_with(suite: Path) -> None:
    layer = training_of("baseline:town")
    assert layer is not None
    told = layer.values["env"]["reward"]["progress"]
    sections = {
        section.name: section.config for section in read_sections(suite, training=layer, overrides=["env.mode=replay"])
    }
    assert sections["driven"].env.reward.progress == told != SimConfig().reward.progress
    assert sections["baseline"].env.reward.progress == SimConfig().reward.progress
