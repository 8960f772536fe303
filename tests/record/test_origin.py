"""The scenarios in a run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.errors import PackError
from roadworthy.record.origin import copy_scenarios
from roadworthy.scenario.pack import Pack
from tests.sim.scenes import Actor, pack_of, scene


@pytest.mark.row("REC-1")
@pytest.mark.parametrize("numbers", [[0, 1, 2], [2, 0], [1], [0, 2, 1]])
def test_a_run_copies_its_scenarios_in_its_own_order(tmp_path: Path, numbers: list[int]) -> None:
    source = pack_of(tmp_path / "all.pack", *(scene(Actor(10.0 + k), id=f"scene-{k}") for k in range(3)))
    copy_scenarios(source.path, numbers, tmp_path / "own.pack")
    with Pack(tmp_path / "own.pack") as own:
        assert list(own.ids) == [source.ids[number] for number in numbers]
        for place, number in enumerate(numbers):
            assert (own.packed_scenario(place).words == source.packed_scenario(number).words).all()
            assert (own.packed_tables(own.map_number(place)).words == source.packed_tables(0).words).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.pack", "own.pack"]


@pytest.mark.parametrize("what", ["map", "scenario"])
def test_a_damaged_block_is_not_copied(tmp_path: Path, what: str) -> None:
    source = pack_of(tmp_path / "all.pack", *(scene(Actor(10.0 + k), id=f"scene-{k}") for k in range(3)))
    words = source.packed_tables(0).words if what == "map" else source.packed_scenario(1).words
    block = source.path.read_bytes()
    place = block.index(words.tobytes()) + words.nbytes // 2
    source.path.write_bytes(block[:place] + bytes([block[place] ^ 1]) + block[place + 1 :])
    with pytest.raises(PackError, match="is damaged"):
        copy_scenarios(source.path, [1], tmp_path / "own.pack")
    assert [path.name for path in tmp_path.iterdir()] == ["all.pack"]
