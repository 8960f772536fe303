"""Gates that run episodes: in blocks until decided, resumed, with any number of workers, against runs and policies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import roadworthy as rw
from roadworthy.comparison.gate import GateDecision
from roadworthy.errors import UsageError
from roadworthy.evaluation.gate import GateResult
from roadworthy.evaluation.ledger import Ledger
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack

HOME = "tests.evaluation.guesses"
SUITE = f"""
[eval.guess]
type = "gym"
environment = "{HOME}:Guess"
episodes = 300
worlds = 8
"""


class Bench:
    """A suite, a run of the baseline, and gates against it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.suite = folder, folder / "suite.toml"
        self.suite.write_text(SUITE)
        self.baseline = rw.evaluate(self.suite, f"{HOME}:Skilled", out=folder / "old")["guess"]

    def gate(self, candidate: str, out: str, **options: Any) -> GateResult:
        settings = {"metric": "success", "margin": 0.1, "suite": self.suite, "block": 50, **options}
        baseline = settings.pop("baseline", self.baseline)
        return rw.gate(f"{HOME}:{candidate}", baseline, out=self.folder / out, **settings)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("gate"))


def rows(run: Run) -> list[dict[str, Any]]:
    """What an episode did, without where and how long it ran."""
    names = ["episode_id", "scenario_id", "seed", "status", "outcomes.success", "outcomes.difficulty"]
    return run.episodes(names).to_pylist()


@pytest.mark.row("STAT-3")
def test_an_equal_policy_passes_before_the_budget_is_spent(bench: Bench) -> None:
    looks: list[GateDecision] = []
    result = bench.gate("Equal", "equal", block=30, on_look=looks.append)
    run = result.candidate
    # Bets 0.2, 0.4, 0.8 and (twice) 0.9: (1.02^k + 1.04^k + 1.08^k + 2 * 1.09^k) / 5 is above 20 from k = 42 on.
    assert (result.verdict.value, result.decision.episodes, result.budget) == ("pass", 60, 300)
    assert looks[0].more == 12
    assert [look.verdict.value for look in looks] == ["undecided", "pass"]
    assert (run.status, run.missing, run.episodes().num_rows) == ("completed", (), 60)
    assert run.decided == {"verdict": "pass", "metric": "success", "margin": 0.1, "not_needed": 240}
    assert len(run.whole_ledger) == 300
    assert (run.metrics or {})["num_failed_episodes"] == 0
    # The run folders alone give the same decision.
    again = rw.gate(run.folder, bench.baseline, "success", 0.1)
    assert (again.verdict.value, again.decision.notes, again.decision.unmatched) == ("pass", (), 0)
    assert (again.decision.low, again.decision.high) == pytest.approx((result.decision.low, result.decision.high))


def test_the_ledger_holds_all_episodes_of_the_baseline_in_random_order(bench: Bench) -> None:
    ours = Ledger.from_table(bench.gate("Equal", "order", block=300).candidate.whole_ledger)
    theirs = Ledger.from_table(bench.baseline.ledger)
    assert ours.hash == theirs.hash
    assert [e.episode_id for e in ours] != [e.episode_id for e in theirs]
    other = Ledger.from_table(bench.gate("Equal", "order", block=300, seed=1).candidate.whole_ledger)
    assert [e.episode_id for e in ours] != [e.episode_id for e in other]
    # Episodes are not run in the order of difficulty or of the old ledger.
    places = {episode.episode_id: place for place, episode in enumerate(theirs)}
    first = [places[episode.episode_id] for episode in ours][:100]
    assert 110 < sum(first) / 100 < 190


@pytest.mark.row("STAT-3")
def test_a_worse_policy_is_a_regression(bench: Bench) -> None:
    result = bench.gate("Worse", "worse", margin=0.05)
    assert result.verdict.value == "regression"
    assert result.decision.high < -0.05
    assert result.decision.difference == pytest.approx(-0.2, abs=0.07)
    assert result.decision.episodes < 300


def test_episodes_that_crash_the_candidate_count_against_it(bench: Bench) -> None:
    result = bench.gate("Crashing", "crashing", margin=0.02, set=["worlds=1"])
    assert result.decision.crashed_candidate > 0
    assert result.decision.difference == pytest.approx(-0.1, abs=0.06)
    assert result.verdict.value != "pass"


@pytest.mark.row("STAT-3")
def test_more_budget_continues_an_undecided_gate(bench: Bench) -> None:
    first = bench.gate("Equal", "more", margin=0.05, budget=60)
    assert (first.verdict.value, first.decision.episodes, first.candidate.status) == ("undecided", 60, "interrupted")
    assert first.decision.more
    same = bench.gate("Equal", "more", margin=0.05, budget=60)
    assert (same.verdict.value, same.decision.low) == ("undecided", first.decision.low)
    second = bench.gate("Equal", "more", margin=0.05)
    assert (second.verdict.value, second.candidate.folder) == ("pass", first.candidate.folder)
    assert second.candidate.status == "completed"
    assert len(list((bench.folder / "more" / "guess").glob("*/run.json"))) == 1


def test_an_interrupted_gate_is_decided_by_its_complete_first_episodes(bench: Bench) -> None:
    first = bench.gate("Equal", "part", margin=0.05, budget=60)
    again = rw.gate(first.candidate.folder, bench.baseline, "success", 0.05)
    assert (again.decision.episodes, again.decision.low) == (60, pytest.approx(first.decision.low))
    assert "240 planned episodes have not run" in again.decision.notes


def test_the_number_of_workers_changes_nothing(bench: Bench) -> None:
    one = bench.gate("Worse", "one", margin=0.05)
    two = bench.gate("Worse", "two", margin=0.05, workers=2)
    assert rows(one.candidate) == rows(two.candidate)
    assert one.decision == two.decision


def test_two_policies_run_on_the_same_episodes(bench: Bench) -> None:
    result = bench.gate("Worse", "both", baseline=f"{HOME}:Skilled", margin=0.05)
    assert result.verdict.value == "regression"
    ours, theirs = result.candidate, result.baseline
    assert ours.whole_ledger.equals(theirs.whole_ledger)
    assert ours.episodes(["episode_id"]).equals(theirs.episodes(["episode_id"]))
    assert (ours.header["gate"]["role"], theirs.header["gate"]["role"]) == ("candidate", "baseline")
    assert theirs.decided is not None
    assert theirs.missing == ()


def test_what_a_gate_can_t_run_is_refused_before_anything_is_written(bench: Bench) -> None:
    policy = f"{HOME}:Skilled"
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: bench.gate("Equal", "no", suite=None), "names code: environment.*--trust"),
        (lambda: bench.gate("Equal", "no", budget=301), "budget is 301 episodes, but 300 are planned"),
        (lambda: bench.gate("Equal", "no", budget=0), "allowed: at least 1"),
        (lambda: bench.gate("Equal", "no", block=0), "block is 0"),
        (lambda: bench.gate("Equal", "no", metric="succes"), "did you mean success"),
        (lambda: bench.gate("Equal", "no", metric="difficulty"), "--bounds LOW,HIGH"),
        (lambda: bench.gate("Equal", "no", baseline=policy, suite=None), "name a suite with --suite"),
        (lambda: bench.gate("Skilled", "no", baseline=policy), "are the same policy"),
        (lambda: rw.gate(bench.baseline, policy), "is not a run folder"),
        (lambda: rw.gate(bench.baseline, bench.baseline, "success", budget=3), "budget was given, but both"),
    ]
    for call, words in cases:
        with pytest.raises(UsageError, match=words):
            call()
    assert not list((bench.folder / "no").glob("*/*/episodes.jsonl"))


def test_a_trusted_baseline_needs_no_suite(bench: Bench) -> None:
    result = bench.gate("Equal", "trusted", suite=None, trust=True)
    assert result.verdict.value == "pass"
    assert result.candidate.header["evaluator"] == "guess"


def test_driving_uses_the_scenarios_of_the_baseline(coins: Pack, tmp_path: Path) -> None:
    suite = tmp_path / "street.toml"
    suite.write_text(
        f'[eval.street]\ntype = "multi_scenario"\nscenarios = "{coins.path}"\nreplicates = 2\nreferences = []\n'
        "episode.trial_steps = 40\n"
    )
    actors = "tests.evaluation.actors"
    old = rw.evaluate(suite, f"{actors}:Cruise", out=tmp_path)["street"]
    result = rw.gate(f"{actors}:Coin", old, "completion_rate", 0.1, out=tmp_path / "new", block=20)
    assert result.verdict.value in ("pass", "regression", "undecided")
    run = result.candidate
    assert run.header["config"]["scenarios"] == old.header["config"]["scenarios"]
    assert run.pack.read_bytes() == old.pack.read_bytes()
    assert set(run.episodes(["episode_id"])["episode_id"].to_pylist()) <= set(old.ledger["episode_id"].to_pylist())
    # An episode of the gate is the episode of an ordinary evaluation.
    plain = rw.evaluate(suite, f"{actors}:Coin", out=tmp_path / "plain")["street"]
    columns = ["episode_id", "seed", "steps", "outcomes.score", "outcomes.goal_rate"]
    expected = plain.episodes(columns).to_pylist()
    found = run.episodes(columns).to_pylist()
    assert found
    assert all(episode in expected for episode in found)
