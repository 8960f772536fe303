"""Decisions from run folders: what counts as what, which metrics are accepted, and which runs are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.comparison.gate import GateDecision, decide
from roadworthy.comparison.gate_stream import boundaries
from roadworthy.errors import RecordError, UsageError
from roadworthy.record import Run
from roadworthy.statistics.sequential import ConfidenceSequence, Verdict
from tests.comparison.made_up import Made, made_run
from tests.report.made_up import drive, make_run

Outcome = dict[str, float] | str | None


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Run]:
    """Makes a run of these outcomes, one scenario each, or several episodes of each."""

    def make(policy: str, outcomes: Sequence[Outcome], replicates: int = 1, **options: Any) -> Run:
        episodes = [
            Made(f"s{k // replicates:04}", outcome, replicate=k % replicates) for k, outcome in enumerate(outcomes)
        ]
        return made_run(tmp_path, episodes, policy=policy, **options)

    return make


def successes(values: Sequence[float]) -> list[Outcome]:
    return [{"success": float(value)} for value in values]


def gated(candidate: Run, baseline: Run, metric: str = "success", margin: float = 0.1, **more: Any) -> GateDecision:
    return decide(candidate, baseline, metric, margin, **more)


@pytest.mark.row("STAT-3")
def test_equal_runs_pass_and_clearly_worse_ones_are_regressions(made: Callable[..., Run]) -> None:
    rng = np.random.default_rng(0)
    old = rng.random(400) < 0.8
    baseline = made("old", successes(old))
    same = gated(made("same", successes(old)), baseline)
    worse = gated(made("worse", successes(old & (rng.random(400) < 0.6))), baseline)
    few = gated(made("few", successes(old[:20])), made("old-20", successes(old[:20])))
    assert [found.verdict for found in (same, worse, few)] == [Verdict.PASS, Verdict.REGRESSION, Verdict.UNDECIDED]
    assert (same.difference, same.episodes, same.clusters, same.more) == (0.0, 400, 400, 0)
    assert worse.high < -0.1
    assert few.more
    assert few.low < -0.1 < few.high


def test_the_bounds_are_those_of_the_confidence_sequence(made: Callable[..., Run]) -> None:
    rng = np.random.default_rng(1)
    old, new = (rng.random((2, 300)) < 0.7).astype(np.float64)
    found = gated(made("new", successes(new)), made("old", successes(old)))
    sequence = ConfidenceSequence(0.1)
    sequence.add(new - old, [1] * 300)
    assert (found.difference, found.low) == pytest.approx(((new - old).mean(), sequence.bounds().low))
    assert found.looks[-1].episodes == 300
    assert [look.episodes for look in found.looks] == [100, 200, 300]


def test_replicates_of_a_scenario_are_one_cluster(made: Callable[..., Run]) -> None:
    outcomes = successes([1.0] * 400)
    many = gated(made("a", outcomes), made("b", outcomes))
    few = gated(made("c", outcomes, replicates=40), made("d", outcomes, replicates=40))
    assert many.verdict is Verdict.PASS
    assert (few.verdict, few.episodes, few.clusters) == (Verdict.UNDECIDED, 400, 10)
    assert "10 clusters" in few.notes[0]
    assert few.more is not None
    assert few.more % 40 == 0  # whole clusters


def test_a_crash_of_the_candidate_counts_as_a_failure(made: Callable[..., Run]) -> None:
    baseline = made("old", successes([1.0] * 200))
    crashing = made("new", [*successes([1.0] * 100), *["failed"] * 100])
    found = gated(crashing, baseline)
    assert (found.verdict, found.difference, found.crashed_candidate) == (Verdict.REGRESSION, -0.5, 100)
    # Without crashes the same episodes are equal.
    assert gated(made("half", successes([1.0] * 100)), baseline).difference == 0.0


def test_without_a_value_for_failures_crashes_count_worst(made: Callable[..., Run]) -> None:
    length: list[Outcome] = [{"length_m": 50.0}] * 200
    crashing: list[Outcome] = [*length[:150], *["failed"] * 50]
    options = {"metric": "length_m", "margin": 5.0, "bounds": (0.0, 100.0), "better": "higher"}
    worse = gated(made("new", crashing), made("old", length), **options)
    # The candidate's crashes are 0 instead of 50 in a quarter of the episodes.
    assert (worse.verdict, worse.difference) == (Verdict.REGRESSION, -12.5)
    unknown = gated(made("fine", length), made("crashing", crashing), **options)
    # The baseline's crashes may have been anything from 0 to 100, so nothing is certain.
    assert unknown.verdict is Verdict.UNDECIDED
    assert unknown.low < -12.5 < 12.5 < unknown.high


def test_lower_is_better_turns_the_decision_around(tmp_path: Path) -> None:
    good = make_run(tmp_path, [drive(k, [[1.0]]) for k in range(200)])
    bad = make_run(tmp_path, [drive(k, [[float(k % 3 > 0)]]) for k in range(200)])
    found = gated(bad, good, "collision_rate")
    assert (found.verdict, found.threshold) == (Verdict.REGRESSION, 0.1)
    assert found.difference == pytest.approx(67 / 200)
    assert found.low > 0.1
    assert gated(good, bad, "collision_rate").verdict is Verdict.PASS
    assert gated(bad, good, "score").difference == pytest.approx(-67 / 200)


def test_an_episode_counts_once_whatever_the_number_of_its_egos(tmp_path: Path) -> None:
    new = make_run(tmp_path, [drive(0, [[0.0], [0.0], [0.0], [1.0]]), drive(1, [[1.0]])])
    old = make_run(tmp_path, [drive(0, [[1.0], [1.0], [1.0], [1.0]]), drive(1, [[1.0]])])
    assert gated(new, old, "score").difference == pytest.approx((-0.75 + 0.0) / 2.0)


def test_metrics_without_bounds_or_direction_say_what_to_add(made: Callable[..., Run], tmp_path: Path) -> None:
    run = made("a", [{"time_s": 3.0, "held": 1.0}] * 20)
    with pytest.raises(UsageError, match=r"no declared bounds.*--bounds LOW,HIGH"):
        gated(run, run, "time_s")
    with pytest.raises(UsageError, match="add --better higher or --better lower"):
        gated(run, run, "held")
    assert gated(run, run, "time_s", bounds=(0.0, 60.0), better="lower").difference == 0.0
    with pytest.raises(UsageError, match="the first must be lower"):
        gated(run, run, "time_s", bounds=(60.0, 0.0), better="lower")
    with pytest.raises(UsageError, match=r"margin is 60; allowed: from 0 to below 60"):
        gated(run, run, "time_s", 60.0, bounds=(0.0, 60.0), better="lower")
    with pytest.raises(RecordError, match=r"time_s of the candidate is 3 in episode 's0000-r0', outside"):
        gated(run, run, "time_s", bounds=(0.0, 2.0), better="lower")
    with pytest.raises(UsageError, match=r"did you mean held\?"):
        gated(run, run, "heldd")
    driven = make_run(tmp_path, [drive(k, [[1.0]]) for k in range(3)])
    with pytest.raises(UsageError, match="ratio of two sums"):
        gated(driven, driven, "infractions_per_km")


def test_what_does_not_count_is_said(made: Callable[..., Run]) -> None:
    sparse: list[Outcome] = [{"success": 1.0, "held": 1.0}] * 50 + [{"success": 1.0}] * 10
    whole: list[Outcome] = [{"success": 1.0, "held": 1.0}] * 70
    found = gated(made("new", sparse), made("old", whole), "held", better="higher")
    assert (found.episodes, found.without_data, found.unmatched) == (50, 10, 10)
    assert [note[:32] for note in found.notes] == [
        "10 episodes of the baseline have",
        "10 pairs have no value of the me",
    ]


def test_runs_that_are_not_complete_or_share_nothing_are_refused(made: Callable[..., Run], tmp_path: Path) -> None:
    whole = made("old", successes([1.0] * 30))
    with pytest.raises(UsageError, match=r"10 planned episodes have not ended.*not a fair sample"):
        gated(made("new", [*successes([1.0] * 20), *[None] * 10]), whole)
    other = made_run(tmp_path, [Made(f"x{k}", {"success": 1.0}) for k in range(5)], policy="x")
    with pytest.raises(UsageError, match="share no episode"):
        gated(other, whole)


def test_the_order_of_the_ledger_and_the_seed_do_not_change_the_decision(made: Callable[..., Run]) -> None:
    rng = np.random.default_rng(2)
    values = (rng.random((2, 150)) < 0.7).astype(np.float64)
    runs = made("new", successes(values[0])), made("old", successes(values[1]))
    first, second = gated(*runs, seed=0), gated(*runs, seed=1)
    assert first.low == pytest.approx(second.low)
    assert first.high == pytest.approx(second.high)
    assert first.looks[0] != second.looks[0]


def test_blocks_are_whole_clusters() -> None:
    assert list(boundaries([3, 3, 3, 3], 5)) == [2, 4]
    assert list(boundaries([10, 1, 1], 5)) == [1, 3]
    assert list(boundaries([], 5)) == []
