"""Engines: the same rows from all of them, whatever happens to their processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from roadworthy.config import parse
from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.engines import Limits
from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.engines.workers import WorkersEngine
from roadworthy.evaluation.ledger import Ledger, plan_ledger
from roadworthy.evaluation.runners.driving.probe import probe
from roadworthy.policy.checkpoint import save_policy
from roadworthy.policy.config import PolicyConfig
from roadworthy.policy.load import load_policy
from roadworthy.policy.network import PolicyNetwork
from roadworthy.record.episodes import EpisodeResult
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import EpisodeConfig, ObserveConfig
from roadworthy.sim.layout import layout
from roadworthy.sim.rules.dynamics import ACTION_CHOICES
from tests.evaluation.actors import (
    BAD_ONE_IN,
    AlwaysDies,
    AlwaysHangs,
    AlwaysRaises,
    Coin,
    Dies,
    Hangs,
    Hoards,
    Raises,
    Wander,
)
from tests.evaluation.rows import SHORT, Results, spec_of

SOON = Limits(time_s=2.0, retries=0)


@pytest.fixture(scope="module")
def ledger(streets: Pack) -> Ledger:
    return plan_ledger(streets, range(len(streets)), 2, seed=5)


@pytest.fixture(scope="module")
def undisturbed(streets: Pack, ledger: Ledger) -> Results:
    """What one world at a time gives, in this process."""
    results = Results()
    InlineEngine(threads=1).run(spec_of(streets, Wander, worlds=1), ledger.episodes, results.append)
    return results


@pytest.fixture(scope="module")
def processes() -> Iterator[WorkersEngine]:
    """Processes that stay alive from one test to the next."""
    with WorkersEngine(2) as engine:
        yield engine


@pytest.fixture
def pool(processes: WorkersEngine) -> WorkersEngine:
    processes.count, processes.limits = 2, Limits()
    return processes


def bad_ones(ledger: Ledger) -> set[str]:
    """The episodes that tests' bad policies can't stand."""
    return {planned.episode_id for planned in ledger if planned.seed % BAD_ONE_IN == 0}


@pytest.mark.row("EVAL-6")
def test_the_estimate_does_not_depend_on_the_number_of_worlds(coins: Pack) -> None:
    ledger = plan_ledger(coins, range(len(coins)), 1, seed=0)
    rows = {}
    for worlds in (1, 10, 25, 50):
        results = Results()
        InlineEngine(threads=1).run(spec_of(coins, Coin, worlds), ledger.episodes, results.append)
        assert results.cover(ledger)
        rows[worlds] = results.rows()
        assert rows[worlds] == rows[1]
        scores = [result.episode.outcomes["score"] for result in results]
        assert sum(score == 1.0 for score in scores) / len(scores) == 0.5
        lengths = [{r.episode.steps for r in results if r.episode.outcomes["score"] == score} for score in (0.0, 1.0)]
        assert max(lengths[1]) < min(lengths[0]), "successes are short, which biases whoever counts what ends first"


@pytest.mark.row("EVAL-6")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_give_the_rows_of_this_process(
    streets: Pack, ledger: Ledger, undisturbed: Results, pool: WorkersEngine, workers: int
) -> None:
    pool.count = workers
    results = Results()
    pool.run(spec_of(streets, Wander, worlds=3), ledger.episodes, results.append)
    assert results.cover(ledger)
    assert results.rows() == undisturbed.rows()
    assert {result.episode.slot for result in results} <= set(range(workers))


@pytest.mark.row("EVAL-6")
@pytest.mark.parametrize("core", ["transformer", pytest.param("mlp", marks=pytest.mark.long)])
def test_a_network_gives_the_same_rows_whoever_runs_it(
    streets: Pack, tmp_path: Path, pool: WorkersEngine, core: str
) -> None:
    seen = ObserveConfig(partners=4, lanes=8, edges=8, lights=1)
    env = replace(SHORT, episode=EpisodeConfig(2, 8), observe=seen)
    torch.manual_seed(3)
    config = parse({"core": core, "encoder": 8, "hidden": 16}, PolicyConfig)
    policy = PolicyNetwork(config, layout(env), ACTION_CHOICES[env.model])
    maker = partial(load_policy, str(save_policy(tmp_path / "policy", policy)))
    ledger = plan_ledger(streets, range(5), 1, seed=1)
    rows = []
    for engine, worlds in ((InlineEngine(), 1), (InlineEngine(), 5), (pool, 2)):
        results = Results()
        engine.run(spec_of(streets, maker, worlds, env), ledger.episodes, results.append)
        assert results.cover(ledger)
        assert not results.failed()
        rows.append(results.rows())
    assert rows[0] == rows[1] == rows[2]
    assert probe(spec_of(streets, maker, env=env)) == ()


def test_a_pool_stays_alive_from_run_to_run(streets: Pack, ledger: Ledger, pool: WorkersEngine) -> None:
    processes = []
    for _ in range(2):
        results = Results()
        pool.run(spec_of(streets, Wander), ledger.episodes[:4], results.append)
        assert len(results) == 4
        processes.append({worker.process.pid for worker in pool._workers})
    assert processes[0] == processes[1]


@pytest.mark.row("EVAL-5")
def test_a_killed_worker_is_replaced_and_nothing_is_lost(
    streets: Pack, ledger: Ledger, undisturbed: Results, pool: WorkersEngine
) -> None:
    results, killed = Results(), []

    def collect(result: EpisodeResult) -> None:
        results.append(result)
        if len(results) == 3:
            worker = next(worker for worker in pool._workers if worker.is_busy)
            os.kill(worker.process.pid or 0, signal.SIGKILL)
            killed.append(worker.process.pid)

    pool.run(spec_of(streets, Wander, worlds=2), ledger.episodes, collect)
    assert killed
    assert results.rows() == undisturbed.rows()
    assert not {worker.process.pid for worker in pool._workers} & set(killed)


@pytest.mark.row("EVAL-5")
@pytest.mark.parametrize(
    ("actor", "words", "limits"),
    [
        (Raises, "this policy can't drive here", Limits(retries=0)),
        (Dies, "SIGKILL, as happens when the machine runs out of memory", Limits(retries=0)),
        (Hangs, "longer than its limit of 2 s", SOON),
        pytest.param(
            Hoards,
            "more than its limit of 0.80 GB",
            Limits(memory_bytes=800_000_000, retries=0),
            marks=pytest.mark.long,
        ),
    ],
)
def test_an_episode_that_breaks_its_process_fails_with_the_reason_and_no_other_does(
    streets: Pack, pool: WorkersEngine, actor: type, words: str, limits: Limits
) -> None:
    ledgers = (Ledger(plan_ledger(streets, range(6), 1, seed).episodes) for seed in range(100))
    ledger = next(ledger for ledger in ledgers if len(bad_ones(ledger)) == 1)
    pool.count, pool.limits = 1, limits
    results, expected = Results(), Results()
    pool.run(spec_of(streets, actor, worlds=2), ledger.episodes, results.append)
    InlineEngine(threads=1).run(spec_of(streets, Wander), ledger.episodes, expected.append)
    failed = results.failed()
    assert set(failed) == bad_ones(ledger)
    assert all(words in reason for reason in failed.values()), failed
    rows, good = results.rows(), expected.rows()
    assert {name: row for name, row in rows.items() if name not in failed} == {
        name: row for name, row in good.items() if name not in failed
    }


@pytest.mark.row("EVAL-5")
@pytest.mark.parametrize(
    ("actor", "words"),
    [
        (AlwaysRaises, "no episode could be started.*drives nowhere"),
        pytest.param(AlwaysDies, "3 losses in a row, with 0 episodes completed.*SIGKILL", marks=pytest.mark.long),
        # The log tells where it hung.
        pytest.param(AlwaysHangs, "3 losses in a row.*limit of 0.5 s.*in act", marks=pytest.mark.long),
    ],
)
def test_a_policy_that_never_works_is_given_up_soon(
    streets: Pack, ledger: Ledger, pool: WorkersEngine, actor: type, words: str
) -> None:
    pool.count, pool.limits = 1, Limits(time_s=0.5, retries=0)
    results = Results()
    with pytest.raises(RoadworthyError, match=f"(?s){words}"):
        pool.run(spec_of(streets, actor, worlds=8), ledger.episodes, results.append)
    assert not results, "all stay in the ledger as not run"


def test_a_policy_that_raises_in_this_process_fails_where_it_raises(
    streets: Pack, ledger: Ledger, undisturbed: Results
) -> None:
    results = Results()
    InlineEngine(limits=Limits(retries=0), threads=1).run(
        spec_of(streets, Raises, worlds=5), ledger.episodes, results.append
    )
    assert results.cover(ledger)
    assert set(results.failed()) == bad_ones(ledger) != set()
    rows, expected = results.rows(), undisturbed.rows()
    assert all(rows[name] == expected[name] for name in rows if name not in results.failed())


def test_what_can_not_be_written_ends_the_run_and_is_not_blamed_on_the_policy(
    streets: Pack, ledger: Ledger, pool: WorkersEngine
) -> None:
    def refuse(_: EpisodeResult) -> None:
        raise OSError(28, "No space left on device")

    pool.count = 1
    for engine in (InlineEngine(threads=1), pool):
        with pytest.raises(OSError, match="No space left"):
            engine.run(spec_of(streets, Wander), ledger.episodes, refuse)


def test_no_process_is_left_behind(streets: Pack, ledger: Ledger, pool: WorkersEngine) -> None:
    pool.run(spec_of(streets, Wander), ledger.episodes[:2], Results().append)
    processes = [worker.process for worker in pool._workers]
    assert all(process.is_alive() for process in processes)
    pool.close()
    assert not any(process.is_alive() for process in processes)
