"""Packs of generated scenarios: equal bytes with any number of processes, classes in turn, many networks."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from roadworthy.errors import ConfigError
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.generate.pack import generate_pack, plan
from roadworthy.scenario.generate.scenarios import build_place, generate_scenario
from roadworthy.scenario.pack import Pack, encode_map, encode_scenario, inspect
from roadworthy.scenario.validate import faults

CLASSES = ("highway_straight", "nudge_parked", "roundabout")


def distinct_maps(pack: Pack) -> int:
    """Return the number of maps with different content."""
    blocks = {pack.map_number(number): encode_map(pack[number].map) for number in range(len(pack))}
    return len({hashlib.sha256(block).digest() for block in blocks.values()})


@pytest.mark.row("SCEN-3")
def test_one_process_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    config = GenerateConfig(count=8, seed=7, classes=CLASSES)
    for processes in (1, 2):
        generate_pack(config, tmp_path / f"{processes}.pack", processes=processes)
    assert (tmp_path / "1.pack").read_bytes() == (tmp_path / "2.pack").read_bytes()


@pytest.fixture(scope="module")
def pack_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return seven scenarios of each of three classes."""
    path = tmp_path_factory.mktemp("packs") / "town.pack"
    calls: list[tuple[int, int]] = []
    generate_pack(
        GenerateConfig(count=21, seed=3, classes=CLASSES), path, processes=1, progress=lambda *now: calls.append(now)
    )
    assert calls[-1] == (21, 21)
    assert calls == sorted(set(calls))
    return path


def test_every_class_comes_equally_often_and_can_be_selected(pack_file: Path) -> None:
    with Pack(pack_file) as pack:
        assert Counter(tag for scenario in pack for tag in scenario.tags) == dict.fromkeys(CLASSES, 7)
        assert len({scenario.id for scenario in pack}) == len(pack) == 21
        assert [len(pack.select(name)) for name in CLASSES] == [7, 7, 7]


def test_a_pack_holds_the_scenarios_of_the_generator_and_is_sound(pack_file: Path) -> None:
    assert list(inspect(pack_file)) == []
    with Pack(pack_file) as pack:
        for scenario in pack:
            _, behavior, index = scenario.id.split("-")
            assert encode_scenario(scenario) == encode_scenario(generate_scenario(3, behavior, int(index))), scenario.id


def test_five_scenarios_share_a_network_and_its_prepared_tables(pack_file: Path) -> None:
    with Pack(pack_file) as pack:
        numbers: dict[str, list[int]] = {name: [] for name in CLASSES}
        for number, scenario in enumerate(pack):
            numbers[scenario.tags[0]].append(pack.map_number(number))
        for name, maps in numbers.items():
            assert len(set(maps[:5])) == 1, name
            assert maps[4] != maps[5], name
        assert distinct_maps(pack) == 6 >= len(pack) / 6


@pytest.mark.row("SCEN-3")
def test_places_of_all_classes_and_numbers_differ() -> None:
    maps = [encode_map(build_place(7, behavior, number).road_map) for behavior in BEHAVIORS for number in range(2)]
    assert len({hashlib.sha256(block).digest() for block in maps}) == 24


def test_the_plan_takes_the_classes_in_turn_and_has_exactly_the_count() -> None:
    tasks = plan(GenerateConfig(count=125, seed=1))
    owed = Counter((task.behavior, index) for task in tasks for index in task.indices)
    assert sum(owed.values()) == 125 == len(owed)
    per_class = Counter(behavior for behavior, _ in owed)
    assert set(per_class) == set(BEHAVIORS)
    assert set(per_class.values()) == {10, 11}
    assert all(len(task.indices) <= 5 for task in tasks)


def test_a_pack_of_longer_scenarios_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "long.pack"
    generate_pack(GenerateConfig(count=2, seed=5, steps=300, classes=("merge", "protected_left")), path, processes=1)
    with Pack(path) as pack:
        assert [scenario.steps for scenario in pack] == [300, 300]
        assert [faults(scenario) for scenario in pack] == [[], []]


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"count": 0}, "count is 0, expected at least 1"),
        ({"count": -3}, "count is -3, expected at least 1"),
        ({"seed": -1}, "seed is -1, expected 0 or more"),
        ({"steps": 0}, "steps is 0, expected at least"),
        ({"classes": ("cut_inn",)}, "'cut_inn' is unknown; known: hard_stop"),
        ({"classes": ()}, "known: hard_stop"),
        ({"classes": ("merge", "cut_in", "merge")}, "classes name one class twice: merge, cut_in, merge"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(settings: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        GenerateConfig(**settings)  # type: ignore[arg-type]
    assert fault in str(caught.value)


@pytest.mark.long
@pytest.mark.row("SCEN-3")
@pytest.mark.row("SCEN-4")
def test_twelve_hundred_scenarios_have_two_hundred_networks_and_every_class_a_hundred_times(tmp_path: Path) -> None:
    path = tmp_path / "town.pack"
    generate_pack(GenerateConfig(count=1200, seed=7), path)
    with Pack(path) as pack:
        assert Counter(tag for scenario in pack for tag in scenario.tags) == dict.fromkeys(BEHAVIORS, 100)
        assert distinct_maps(pack) >= 200
        for scenario in pack:
            assert faults(scenario) == [], scenario.id
