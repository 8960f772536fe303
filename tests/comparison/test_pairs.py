"""Pairs: which episodes of two runs are the same, and what their rows hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.comparison.matching import match
from roadworthy.comparison.pairs import Pairs, comparable_metrics, pair
from roadworthy.errors import UsageError
from roadworthy.record import Run
from tests.comparison.made_up import Made, made_run
from tests.report.made_up import drive, failure, make_run


def successes(root: Path, *values: object, **changes: object) -> Run:
    """A run with one scenario per value: 0 or 1, "failed", or None."""
    made = [
        Made(f"s{k}", {"success": float(v)} if isinstance(v, int | float) else v, **changes)  # type: ignore[arg-type]
        for k, v in enumerate(values)
    ]
    return made_run(root, made)


def pairs_of(a: Run, b: Run, name: str = "success") -> Pairs:
    return pair(a, b, next(metric for metric in comparable_metrics(a, b) if metric.name == name))


@pytest.mark.row("STAT-2")
def test_equal_ledgers_pair_every_episode(tmp_path: Path) -> None:
    found = pairs_of(successes(tmp_path / "a", 1, 1, 0, 0), successes(tmp_path / "b", 1, 0, 1, 0))
    assert found.episode_ids.tolist() == ["s0-r0", "s1-r0", "s2-r0", "s3-r0"]
    assert found.differences.tolist() == [0, 1, -1, 0]
    assert (found.unmatched_candidate, found.unmatched_baseline, found.missing) == (0, 0, 0)


@pytest.mark.row("STAT-2")
def test_the_order_of_the_ledgers_and_the_ids_do_not_matter(tmp_path: Path) -> None:
    made = [Made(f"s{k}", {"success": float(k % 3 == 0)}, id=f"first {k}") for k in range(9)]
    other = [Made(m.scenario, m.outcome, id=f"second {9 - k}") for k, m in enumerate(made)][::-1]
    found = pairs_of(made_run(tmp_path / "a", made), made_run(tmp_path / "b", other))
    assert len(found) == 9
    assert not found.differences.any()


@pytest.mark.row("STAT-2")
def test_partly_shared_runs_pair_what_they_share_and_say_why_the_rest_is_alone(tmp_path: Path) -> None:
    one = {"success": 1.0}
    a = [Made("s0", one), Made("s1", one), Made("s1", one, replicate=1), Made("s2", one), Made("only a", one)]
    b = [Made("s0", one), Made("s1", one), Made("s2", one, seed=8), Made("s3", one, factors={"light": 0.5})]
    a += [Made("s3", one, factors={"light": 0.25})]
    matched = match(made_run(tmp_path / "a", a), made_run(tmp_path / "b", b))
    assert matched.episode_ids().tolist() == ["s0-r0", "s1-r0"]
    assert matched.unmatched_candidate.count == 4
    assert matched.unmatched_candidate.reasons == {
        "its scenario is not in the other run": 1,
        "the other run has fewer replicates of its scenario": 1,
        "the other run has another seed": 1,
        "the other run has other factors": 1,
    }
    assert matched.unmatched_baseline.count == 2
    assert matched.unmatched_candidate.examples == ("s1-r1", "s2-r0", "only a-r0")


@pytest.mark.row("STAT-2")
def test_episodes_with_equal_keys_match_by_id_or_not_at_all(tmp_path: Path) -> None:
    def run(name: str, ids: list[str]) -> Run:
        return made_run(tmp_path / name, [Made("s", {"success": 1.0}, id=id) for id in ids])

    assert match(run("a", ["x", "y"]), run("b", ["y", "x", "z"])).episode_ids().tolist() == ["y", "x"]
    alone = match(run("c", ["x", "y"]), run("d", ["u", "v"]))
    assert len(alone) == 0
    assert "the same scenario, seed, replicate and factors as another of its run" in alone.why_not


@pytest.mark.row("STAT-2")
def test_runs_that_share_nothing_say_why(tmp_path: Path) -> None:
    a, b = successes(tmp_path / "a", 1, 0), successes(tmp_path / "b", 1, 0, seed=9)
    with pytest.raises(UsageError, match="share no episode: the other run has another seed; run both with"):
        pairs_of(a, b)


@pytest.mark.row("STAT-4")
def test_episodes_that_crashed_or_never_ran_are_rows_without_data_that_can_count_as_failures(tmp_path: Path) -> None:
    a = successes(tmp_path / "a", 1, "failed", 1, None, "failed")
    b = successes(tmp_path / "b", 1, 1, "failed", 1, "failed")
    found = pairs_of(a, b)
    np.testing.assert_array_equal(found.candidate, [1, np.nan, 1, np.nan, np.nan])
    np.testing.assert_array_equal(found.baseline, [1, 1, np.nan, 1, np.nan])
    assert found.missing_candidate.tolist() == [False, True, False, True, True]
    assert found.missing_baseline.tolist() == [False, False, True, False, True]
    assert found.missing == 0.8
    assert found.counted().differences.tolist() == [0, -1, 1, -1, 0]


@pytest.mark.row("STAT-2")
def test_rows_of_egos_pair_by_agent_and_trial(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [drive(0, [[1.0, 1.0], [0.0, 1.0]]), drive(1, [[1.0, 0.0]])])
    b = make_run(tmp_path / "b", [drive(0, [[0.0, 1.0], [0.0, 0.0]]), drive(1, [[1.0, 1.0]])])
    found = pairs_of(a, b, "score")
    assert found.trials is not None
    # By episode, agent and trial: what a scored minus what b scored.
    assert found.differences.tolist() == [1, 0, 0, 1, 0, -1]
    assert found.trials.tolist() == [0, 1, 0, 1, 0, 1]
    assert found.clusters.codes.tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.row("STAT-4")
def test_a_crashed_episode_has_the_rows_of_its_partner(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [failure(0, "out of memory"), drive(1, [[1.0]])])
    b = make_run(tmp_path / "b", [drive(0, [[1.0], [0.0], [1.0]]), drive(1, [[1.0], [1.0]])])
    found = pairs_of(a, b, "score")
    np.testing.assert_array_equal(found.candidate, [np.nan, np.nan, np.nan, 1])
    np.testing.assert_array_equal(found.baseline, [1, 0, 1, 1])
    assert found.missing_candidate.tolist() == [True, True, True, False]
    # The second ego of the second episode is in one run only, although both episodes were completed.
    assert (found.unmatched_candidate, found.unmatched_baseline) == (0, 1)


@pytest.mark.row("STAT-2")
def test_ratios_pair_both_sums(tmp_path: Path) -> None:
    a, b = (make_run(tmp_path / name, [drive(k, [[0.0]]) for k in range(3)]) for name in "ab")
    found = pairs_of(a, b, "infractions_per_km")
    assert found.candidate.tolist() == [1, 1, 1]
    assert found.weights_candidate is not None
    np.testing.assert_allclose(found.weights_candidate, [0.100, 0.101, 0.102])


@pytest.mark.row("STAT-1")
def test_clusters_come_from_the_ledger_where_it_names_them(tmp_path: Path) -> None:
    made = [Made(f"map{k // 2}-{k}", {"success": 1.0}, tags=["left"] if k < 3 else ["right"]) for k in range(6)]
    a, b = (made_run(tmp_path / name, made, clusters=True) for name in "ab")
    found = pairs_of(a, b)
    assert found.clusters.codes.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.scenarios.count == 6
    assert {name: flags.tolist() for name, flags in found.classes.items()} == {
        "left": [True, True, True, False, False, False],
        "right": [False, False, False, True, True, True],
    }
