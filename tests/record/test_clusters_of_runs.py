"""Clusters of a run: the maps that scenarios share, the same in every pack and in runs of before ledgers had them."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.evaluation.ledger import Ledger, plan_ledger
from roadworthy.record import Run, RunWriter
from roadworthy.scenario.pack import Pack
from tests.record.made_up import HEADER, ledger
from tests.scenario.example import example_map, example_scenario
from tests.sim.scenes import pack_of


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Six scenarios on two maps: those with an even number on one, the others on the other."""
    maps = example_map(), example_map(5.0)
    scenes = [example_scenario(f"town-{k}", road_map=maps[k % 2]) for k in range(6)]
    return pack_of(tmp_path_factory.mktemp("towns") / "towns.pack", *scenes)


def run_of(root: Path, pack: Pack, scenarios: list[int], *, is_old: bool = False) -> Run:
    planned = plan_ledger(pack, scenarios, 2, seed=1).table()
    table = planned.drop_columns(["cluster"]) if is_old else planned
    with RunWriter.start(root, "town", "zero", HEADER, table, pack=pack.path, scenarios=scenarios) as writer:
        pass
    return Run(writer.folder)


@pytest.mark.row("STAT-1")
def test_scenarios_on_one_map_are_one_cluster_with_the_same_name_in_every_run(tmp_path: Path, towns: Pack) -> None:
    run = run_of(tmp_path / "a", towns, list(range(6)))
    even, odd = run.clusters["town-0"], run.clusters["town-1"]
    assert even != odd
    assert run.clusters == {f"town-{k}": (even, odd)[k % 2] for k in range(6)}
    # Another pack, in which the maps have other numbers.
    assert run_of(tmp_path / "b", towns, [5, 2]).clusters == {"town-5": odd, "town-2": even}


def test_an_old_run_has_the_clusters_of_its_pack_and_the_same_ledger_hash(tmp_path: Path, towns: Pack) -> None:
    new, old = run_of(tmp_path / "a", towns, [0, 1, 2]), run_of(tmp_path / "b", towns, [0, 1, 2], is_old=True)
    assert "cluster" not in old.ledger.column_names
    assert old.clusters == new.clusters
    assert old.header["ledger_hash"] == new.header["ledger_hash"]
    assert old.clustered_ledger().equals(new.ledger.replace_schema_metadata(old.ledger.schema.metadata))
    assert [episode.cluster for episode in Ledger.from_table(old.ledger)] == [None] * 6


def test_scenarios_that_share_nothing_or_all_the_same_map_are_clusters_of_their_own(
    tmp_path: Path, towns: Pack
) -> None:
    one_map = run_of(tmp_path / "a", towns, [0, 2, 4])
    assert one_map.clusters == {name: name for name in ("town-0", "town-2", "town-4")}
    with RunWriter.start(tmp_path / "b", "town", "zero", HEADER, ledger()) as writer:
        pass
    assert Run(writer.folder).clusters == {f"town-{k}": f"town-{k}" for k in range(6)}
    (one_map.folder / "scenarios.pack").write_bytes(b"damaged")
    assert set(Run(one_map.folder).clusters) == {"town-0", "town-2", "town-4"}
