"""Ledgers: what a run owes is decided by ids, seeds and nothing else."""

from __future__ import annotations

import pytest

from roadworthy.errors import UsageError
from roadworthy.evaluation.evaluators.driving import sample
from roadworthy.evaluation.ledger import EpisodeSpec, Ledger, episode_seed, plan_ledger
from roadworthy.scenario.pack import Pack


def test_every_scenario_is_planned_equally_often_with_seeds_of_its_own(streets: Pack) -> None:
    ledger = plan_ledger(streets, range(len(streets)), 3, seed=1)
    assert len(ledger) == 3 * len(streets)
    assert len({planned.seed for planned in ledger}) == len(ledger)
    for name in streets.ids:
        assert [planned.replicate for planned in ledger if planned.scenario_id == name] == [0, 1, 2]


@pytest.mark.row("EVAL-6")
def test_a_seed_depends_on_the_run_seed_the_scenario_and_the_replicate_alone(streets: Pack) -> None:
    whole = plan_ledger(streets, range(len(streets)), 2, seed=1)
    part = plan_ledger(streets, [7, 3], 1, seed=1)
    for planned in part:
        assert planned.seed == whole[planned.episode_id].seed
        assert streets.ids[(7, 3)[planned.scenario]] == planned.scenario_id
    seeds = {episode_seed(seed, name, replicate) for seed in (0, 1) for name in ("a", "b") for replicate in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 1 << 64 for seed in seeds)


def test_a_ledger_survives_its_table_and_is_known_by_its_hash(streets: Pack) -> None:
    ledger = plan_ledger(streets, range(5), 2, seed=3)
    varied = Ledger((*ledger.episodes, EpisodeSpec("x-r0", 0, "x", (1 << 64) - 1, 0, {"light": 0.5, "object": "cup"})))
    assert Ledger.from_table(varied.table()) == varied
    assert Ledger(ledger.episodes[::-1]).hash == ledger.hash
    assert plan_ledger(streets, range(5), 2, seed=4).hash != ledger.hash != varied.hash
    assert Ledger.from_table(Ledger(()).table()) == Ledger(())


def test_an_id_is_planned_once_and_an_unknown_one_is_named(streets: Pack) -> None:
    ledger = plan_ledger(streets, range(3), 1, seed=0)
    with pytest.raises(UsageError, match="'street-00-r0' is planned 2 times"):
        Ledger((*ledger.episodes, ledger.episodes[0]))
    with pytest.raises(UsageError, match="no episode 'nowhere'; it has 3, such as street-00-r0"):
        ledger["nowhere"]


@pytest.mark.row("EVAL-2")
def test_a_sample_is_the_same_every_time_and_grows_by_adding(streets: Pack) -> None:
    everything = list(range(len(streets)))
    few, more = (sample(streets, everything, count, 0, "merge") for count in (3, 6))
    assert few == sample(streets, everything, 3, 0, "merge")
    assert set(few) < set(more)
    assert few != sample(streets, everything, 3, 0, "cut_in") or more != sample(streets, everything, 6, 0, "cut_in")
    assert sample(streets, everything, None, 0, "merge") == everything
    with pytest.raises(UsageError, match=r"episodes is 99, but .* has 12 scenarios"):
        sample(streets, everything, 99, 0, "merge")
