"""A check finds order and stopping bias where there is some, and stays calm where there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import roadworthy as rw
from roadworthy.results.check import check, check_results
from roadworthy.results.episodes import Episodes, episodes_of_run
from roadworthy.results.findings import Finding, Report
from roadworthy.results.order import place_in_environment
from tests.report.made_up import drive, make_run
from tests.results import made_up_logs as logs

SHARED = Path(os.environ.get("ROADWORTHY_LOGS", "/nonexistent"))
TRUTH = 0.5


def farm(seed: int, environments: int = 10, finished: int = 200, *, quick_successes: bool = True) -> Episodes:
    """Simulate environments that run episode after episode until a number of episodes has finished."""
    rng = np.random.default_rng(seed)
    each = 4 * finished // environments
    won = rng.random((environments, each)) < TRUTH
    short, long = rng.integers(200, 600, won.shape), np.full(won.shape, 1000)
    length = np.where(won, short, long) if quick_successes else np.where(rng.random(won.shape) < 0.5, short, long)
    ends = np.cumsum(length, axis=1).ravel()
    order = np.argsort(ends, kind="stable")[:finished]
    return episodes(won.ravel()[order], length.ravel()[order], np.repeat(np.arange(environments), each)[order])


def episodes(value: Any, length: Any, environment: Any, **more: Any) -> Episodes:
    count = len(value)
    given: dict[str, Any] = {
        "name": "pick pi0",
        "outcome": "success",
        "value": np.asarray(value, np.float64),
        "length": np.asarray(length, np.float64),
        "length_unit": "steps",
        "environment": np.asarray(environment, np.int64),
        "seed": np.full(count, np.nan),
        "key": np.arange(count),
        "row": np.arange(count),
        "has_crashed": np.zeros(count, np.bool_),
        "has_order": True,
        "has_plan": False,
        "planned": count,
    }
    return Episodes(**{**given, **more})


def finding(report: Report, name: str) -> Finding | None:
    return next((one for one in report.findings if one.check == name), None)


def severity(report: Report, name: str) -> str:
    found = finding(report, name)
    return "" if found is None else found.severity.word


def value_of(report: Report, name: str) -> float:
    (found,) = [estimate.interval.value for estimate in report.estimates if estimate.name == name]
    assert found is not None
    return found


@pytest.mark.row("STAT-6")
def test_stopping_bias_is_found_and_the_first_episodes_of_each_environment_are_free_of_it() -> None:
    reports = [check(farm(seed)) for seed in range(60)]
    for report in reports:
        assert severity(report, "length") == severity(report, "environments") == "warning"
    early = np.mean([value_of(report, "first_finished") for report in reports])
    balanced = np.mean([value_of(report, "first_k_of_each") for report in reports])
    each = np.mean([value_of(report, "first_of_each") for report in reports])
    # Of 10 episodes that started together, the first to finish among all later ones are nearly all successes.
    assert early > TRUTH + 0.15
    assert abs(balanced - TRUTH) < 3 * 0.5 / np.sqrt(60 * 140)
    assert abs(each - TRUTH) < 3 * 0.5 / np.sqrt(60 * 10)


@pytest.mark.row("STAT-6")
def test_where_length_does_not_depend_on_success_there_are_hardly_any_warnings() -> None:
    """Four tests at 1% each: 3.3% of 600 simulated logs had a warning (binomial error 0.7%)."""
    warnings = [check(farm(seed, quick_successes=False)).worst.word == "warning" for seed in range(100)]
    assert np.mean(warnings) <= 0.09


def test_a_plan_that_was_fixed_in_advance_is_not_biased() -> None:
    report = check(Episodes(**{**vars(farm(0)), "has_plan": True}))
    assert report.worst.word == "note"
    found = finding(report, "length")
    assert found is not None
    assert "not affected" in found.text


def test_the_place_in_an_environment_counts_its_own_episodes() -> None:
    environment = np.array([2, 0, 2, 2, 0, 7])
    assert place_in_environment(environment).tolist() == [0, 0, 1, 2, 1, 0]


def test_missing_episodes_move_the_rate_between_its_worst_cases() -> None:
    value: NDArray[np.float64] = np.array([1.0] * 6 + [0.0] * 2 + [np.nan] * 1)
    report = check(episodes(value, np.full(9, 5.0), np.full(9, -1), has_crashed=np.isnan(value), planned=10))
    found = finding(report, "missing")
    assert found is not None
    assert found.numbers == {
        "planned": 10, "missing": 2, "crashed": 1, "never_ran": 1, "worst_low": 0.6, "worst_high": 0.8
    }  # fmt: skip
    assert found.severity.word == "warning"


def test_equal_outcomes_are_reported_with_what_they_leave_open() -> None:
    report = check(episodes(np.ones(10), np.full(10, 5.0), np.full(10, -1)))
    found = finding(report, "constant")
    assert found is not None
    # Wilson's lower end for 10 of 10 is 1 / (1 + 1.96**2 / 10).
    assert found.numbers["low"] == pytest.approx(1 / (1 + 1.959964**2 / 10), abs=1e-4)


def test_episodes_cut_at_the_time_limit_are_counted() -> None:
    length = np.r_[np.arange(100.0, 150.0), np.full(50, 300.0)]
    value = np.r_[np.ones(50), np.zeros(40), np.ones(10)]
    found = finding(check(episodes(value, length, np.full(100, -1))), "limit")
    assert found is not None
    assert (found.numbers["limit"], found.numbers["episodes"], found.numbers["failures"]) == (300.0, 50, 40)
    quick = np.r_[np.ones(50), np.ones(50)]
    quick[0] = 0.0
    assert finding(check(episodes(quick, length, np.full(100, -1))), "limit") is None  # no failure among those cut


def test_the_interval_of_a_run_counts_the_clusters_of_the_run(tmp_path: Path) -> None:
    """Four equal episodes on each of ten maps say as much as ten episodes."""
    run = make_run(tmp_path, [drive(k, [[k // 4 % 2]]) for k in range(40)])
    names = run.episodes(["scenario_id"])["scenario_id"].to_pylist()
    vars(run)["clusters"] = {name: f"map {int(name[-3:]) // 4}" for name in names}
    found = check(episodes_of_run(run, "score")).estimates[0].interval
    assert found.value == 0.5
    assert found.low is not None
    assert found.high is not None
    alone = stats.binomtest(5, 10).proportion_ci(method="wilson")
    assert found.low <= alone.low + 1e-9
    assert found.high >= alone.high - 1e-9


def test_copies_of_rows_and_repeated_seeds_are_found(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    lines = [f"{seed},{seed % 2},{10 + seed}" for seed in range(8)]
    path.write_text("\n".join(["seed,success,steps", *lines, *lines]) + "\n")
    (report,) = check_results(path)
    copies, repeated = finding(report, "copies"), finding(report, "repetitions")
    assert copies is not None
    assert copies.numbers == {"copies": 8}
    assert repeated is not None
    assert repeated.severity.word == "warning"
    assert repeated.numbers == {"groups": 8, "repetitions": 8, "equal_outcomes": 8, "distinct": 8}


def test_something_that_carries_over_between_episodes_is_found() -> None:
    rng = np.random.default_rng(0)
    environment, place = np.repeat(np.arange(10), 20), np.tile(np.arange(20), 10)
    value = rng.random(200) < 0.9 - 0.04 * place
    assert severity(check(episodes(value, np.full(200, 9.0), environment)), "drift") == "warning"
    assert severity(check(episodes(rng.random(200) < 0.5, np.full(200, 9.0), environment)), "drift") == ""


def test_a_log_and_its_run_give_the_same_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    path = logs.arena(tmp_path, [bool(won) for won in rng.random(40) < 0.6])
    (run,) = rw.import_results(path, out=tmp_path / "runs")
    (of_log,), (of_run,) = check_results(path), check_results(run.folder)
    assert [one.text for one in of_log.findings] == [one.text for one in of_run.findings]
    assert [one.as_json() for one in of_log.estimates] == [one.as_json() for one in of_run.estimates]


def test_a_run_of_the_simulator_has_a_plan(tmp_path: Path) -> None:
    run = make_run(tmp_path, [drive(k, [[k % 2]]) for k in range(12)])
    names = [name for name in run.column_names("episodes") if name.startswith("outcomes.")]
    if not names:
        pytest.skip("the made-up run has no outcomes")
    (report,) = check_results(run.folder, outcome=names[0].removeprefix("outcomes."))
    assert all(one.check != "environments" or one.severity.word != "warning" for one in report.findings)


@pytest.mark.skipif(not SHARED.is_dir(), reason="ROADWORTHY_LOGS names no folder")
@pytest.mark.row("STAT-6")
def test_arenas_own_example_is_explained() -> None:
    (report,) = check_results(SHARED / "arena_episode_results_camera_displacement.jsonl")
    assert (value_of(report, "first_finished"), value_of(report, "first_of_each")) == (0.8, 0.4)
    assert value_of(report, "all") == 0.525
    length, first = finding(report, "length"), finding(report, "first_finished")
    assert length is not None
    assert "Successes last 392 steps on average, failures 983" in length.text
    assert first is not None
    assert (
        "The first 10 episodes to finish give 0.80, the first episode of each of the 10 environments 0.40" in first.text
    )
    assert "all 200 episodes 0.525" in first.text
    assert first.severity.word == length.severity.word == "warning"


def test_the_report_is_plain_json() -> None:
    assert json.loads(json.dumps(check(farm(1)).as_json()))["worst"] == "warning"
