"""Realism in reports: likelihoods with their intervals, histograms, runs side by side, the worst scenarios first."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from roadworthy.metrics.driving import driving_metrics
from roadworthy.metrics.realism.config import CHALLENGE_2025, Event
from roadworthy.metrics.realism.likelihood import bin_edges
from roadworthy.metrics.realism.run_figures import REALISM_METRICS, realism_figure
from roadworthy.record import Run, RunWriter
from roadworthy.report import worst_first
from roadworthy.report.words import counted, interval_of, plain_name, value_of
from tests.metrics.driven import episode
from tests.report.made_up import Page, make_run, page_of

UNSCORED = {"scenario_id": "no-edges", "reason": "scenario 'no-edges': its map has no <road> edge"}
OUTCOMES = {"score": 0.0, "goal_rate": 0.0, "infractions": 1.0, "distance_m": 30.0, "comfort": 0.5}


def parts() -> list[dict[str, Any]]:
    """Counts of all features: the recording falls into the first bin, rollouts into the first and, half, the last."""
    found = []
    for name, part in CHALLENGE_2025.parts.items():
        bins = 2 if isinstance(part, Event) else part.histogram.bins
        edges = None if isinstance(part, Event) else bin_edges(part.histogram).tolist()
        log, simulated = [8.0] + [0.0] * (bins - 1), [6.0] + [0.0] * (bins - 2) + [2.0]
        found.append({"name": name, "weight": part.weight, "edges": edges, "log": log, "simulated": simulated})
    return found


def with_realism(run: Run, values: Mapping[str, Sequence[float]], unscored: Sequence[Any]) -> dict[str, Any]:
    """Figures of a run, values being those of each scenario."""
    metrics = driving_metrics(run)
    columns = metrics["by_scenario"]
    kept = [f for f in metrics["figures"] if f["name"].removesuffix("_per_scenario") in ("collision_rate", "comfort")]
    return {
        **metrics,
        "figures": [*(realism_figure(metric, values[metric.name]) for metric in REALISM_METRICS), *kept],
        "by_scenario": {**columns, "figures": {**values, "collision_rate": columns["figures"]["collision_rate"]}},
        "realism": {"challenge": "2025", "unscored": list(unscored), "parts": parts()},
    }


def rollouts(root: Path, seed: int = 1, count: int = 60, unscored: Sequence[Any] = (), **header: Any) -> Run:
    """A run of two rollouts of each scenario, with likelihoods that are drawn."""
    draw = random.Random(seed)
    values = {metric.name: [draw.random() for _ in range(count)] for metric in REALISM_METRICS}
    egos = [[{"collisions": 1.0, "score": 0.0, "timed_out_rate": 1.0, "comfort": 0.5}]]
    results = [
        episode(f"scene-{k:02}", egos, replicate, tags=("merge",), outcomes=OUTCOMES)
        for replicate in range(2)
        for k in range(count)
    ]

    def end(writer: RunWriter) -> None:
        writer.seal(lambda run: with_realism(run, values, unscored))

    return make_run(root, results, end=end, **header)


def words_of(page: Page) -> str:
    return page.text.lower()


@pytest.mark.row("EVAL-2")
def test_every_likelihood_is_there_with_its_weight_its_interval_and_what_it_counts(tmp_path: Path) -> None:
    run = rollouts(tmp_path / "runs")
    text = words_of(page_of(tmp_path, run))
    assert run.metrics is not None
    for figure in run.metrics["figures"]:
        assert f"{value_of(figure)} {interval_of(figure)} {counted(figure)}".lower() in text, figure["name"]
    for part in parts():
        told = plain_name(part["name"])
        told += " of evaluated agents: recorded 0.0%, in rollouts 25.0%" if part["edges"] is None else ""
        assert f"{told} {part['weight']:.2f}" in text
    assert "not comparable with its leaderboard" in text


@pytest.mark.row("EVAL-2")
def test_there_is_a_histogram_of_recordings_against_rollouts_for_each_feature(tmp_path: Path) -> None:
    page = page_of(tmp_path, rollouts(tmp_path / "runs"))
    charts = [label for label in page.attributes("aria-label") if "; simulated " in label]
    features = [part for part in parts() if part["edges"]]
    assert len(charts) == len(features) == 7
    for part, told in zip(features, charts, strict=True):
        assert told.startswith(plain_name(part["name"]))
        assert told.endswith("75.0%, " + "0.0%, " * (len(part["log"]) - 2) + "25.0%")


@pytest.mark.row("EVAL-2")
def test_scenarios_come_least_realistic_first_once_each(tmp_path: Path) -> None:
    run = rollouts(tmp_path / "runs", count=12)
    assert run.metrics is not None
    columns = run.metrics["by_scenario"]
    realism = dict(zip(columns["scenario_id"], columns["figures"]["realism"], strict=True))
    assert worst_first(run) == [f"{id}-r0" for id in sorted(realism, key=lambda id: realism[id])]
    text = words_of(page_of(tmp_path, run))
    assert "all 12 scenarios, least realistic first the first rollout of each." in text
    assert "out of time" not in text, "all rollouts continue to the end"
    assert "goal rate" not in text, "no goal can be reached"


@pytest.mark.row("EVAL-2")
def test_scenarios_that_could_not_be_scored_are_named_with_the_reason(tmp_path: Path) -> None:
    page = page_of(tmp_path, rollouts(tmp_path / "runs", unscored=[UNSCORED]))
    assert "1 scenario could not be scored" in page.text
    assert UNSCORED["reason"] in page.text


@pytest.mark.row("EVAL-2")
def test_several_runs_stand_side_by_side_and_baselines_have_no_part_in_the_summary(tmp_path: Path) -> None:
    own = {"carried_out": {"summary": {"weight": 1.0, "figure": "realism"}}}
    beside = {"carried_out": {"summary": {"weight": 0.0, "figure": "realism"}}}
    runs = [
        rollouts(tmp_path / "runs", 1, evaluator="realism", **own),
        rollouts(tmp_path / "runs", 2, evaluator="realism_recorded", **beside),
        rollouts(tmp_path / "runs", 3, evaluator="realism_random", **beside),
    ]
    page = page_of(tmp_path, *runs)
    compared = page.text.partition("Realism side by side")[2].partition("realism completed")[0]
    for name in ("realism", "collision_indication_likelihood", "min_average_displacement_error"):
        told = []
        for run in runs:
            assert run.metrics is not None
            told.append(value_of(next(f for f in run.metrics["figures"] if f["name"] == name)))
        assert " ".join(told) in compared, name
    value = next(f["value"] for f in (runs[0].metrics or {})["figures"] if f["name"] == "realism")
    assert f"eval_summary {value:.4f}" in page.text
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))


def test_a_run_without_realism_has_no_such_section(tmp_path: Path) -> None:
    results = [episode(f"scene-{k}", [[{"score": 1.0}]], outcomes={"score": 1.0}) for k in range(3)]
    assert "realism" not in words_of(page_of(tmp_path, make_run(tmp_path / "runs", results)))
