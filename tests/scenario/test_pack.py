"""Packs are read as they were written, without loading them."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import PackError, ScenarioError, UsageError
from roadworthy.scenario.pack import Pack, PackWriter, encode_map, encode_scenario, inspect
from roadworthy.scenario.pack.bundle import encode_bundle
from roadworthy.scenario.prepare import prepare
from roadworthy.scenario.schema import OPTIONAL_MAP_ARRAYS, OPTIONAL_SCENARIO_ARRAYS, Scenario
from roadworthy.scenario.source_values import listed_lights, source_motion, source_points
from tests.scenario.example import differences, example_map, example_scenario


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a pack of three scenarios on two maps."""
    path = tmp_path / "town.pack"
    first, second = example_map(), example_map(shift_m=7)
    with PackWriter(path) as writer:
        writer.add(example_scenario("a-1", ("merge", "roundabout"), first))
        writer.add(example_scenario("b-2", (), second, steps=20))
        writer.add(example_scenario("c-ü", ("merge",), first))
    return path


@pytest.mark.row("SCEN-1")
def test_a_scenario_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    scenario = example_scenario()
    with PackWriter(tmp_path / "one.pack") as writer:
        assert writer.add(scenario) == 0
    assert differences(Pack(tmp_path / "one.pack")[0], scenario) == []


@pytest.mark.row("SCEN-1")
def test_a_scenario_without_agents_and_lights_is_read_back(tmp_path: Path) -> None:
    full = example_scenario()
    names = ("agent_ids", "agent_types", "sizes", "positions", "headings", "velocities", "valid", "predict")
    lights = ("light_lanes", "light_stops", "light_states")
    bare = replace(full, sdc=-1, **{name: getattr(full, name)[:0] for name in (*names, *lights)})
    with PackWriter(tmp_path / "bare.pack") as writer:
        writer.add(bare)
    assert differences(Pack(tmp_path / "bare.pack")[0], bare) == []
    assert inspect(tmp_path / "bare.pack") == []


def test_ids_tags_and_maps_are_known_without_reading_blocks(path: Path) -> None:
    pack = Pack(path)
    assert len(pack) == 3
    assert pack.ids == ("a-1", "b-2", "c-ü")
    assert [pack.tags(i) for i in range(3)] == [("merge", "roundabout"), (), ("merge",)]
    assert pack.tag_counts == {"merge": 2, "roundabout": 1}
    assert pack.select("merge").tolist() == [0, 2]
    assert pack.select("roundabout").tolist() == [0]
    assert [pack.map_number(i) for i in range(3)] == [0, 1, 0]


def test_a_scenario_is_found_by_number_and_by_id(path: Path) -> None:
    pack = Pack(path)
    assert pack.number("c-ü") == 2
    assert pack.scenario("b-2").id == pack[1].id == pack[np.int32(-2)].id == "b-2"
    assert [scenario.id for scenario in pack] == list(pack.ids)


def test_an_equal_map_is_stored_once(tmp_path: Path) -> None:
    with PackWriter(tmp_path / "maps.pack") as writer:
        shared = example_map()
        assert writer.add_map(shared) == writer.add_map(shared) == writer.add_map(example_map()) == 0
        assert writer.add_map(example_map(shift_m=1)) == 1
        writer.add(example_scenario("a", road_map=example_map()))
        writer.add(example_scenario("b"), map_number=0)
    pack = Pack(tmp_path / "maps.pack")
    assert pack.map_count == 2
    a, b = pack[0], pack[1]
    assert a.map is b.map is pack.map(0) is pack.map_of(1)


@pytest.mark.row("SCEN-6")
def test_the_tables_in_a_pack_are_those_that_prepare_makes(path: Path) -> None:
    pack = Pack(path)
    for number in range(pack.map_count):
        tables = pack.tables(number)
        assert differences(tables, prepare(pack.map(number))) == []
        assert not tables.lane_lists.flags.owndata
        assert pack.tables(number) is tables


def test_tables_of_another_version_are_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("roadworthy.scenario.pack.tables.TABLES_VERSION", 0)
        with PackWriter(tmp_path / "old.pack") as writer:
            writer.add(example_scenario())
    pack = Pack(tmp_path / "old.pack")
    tables = pack.tables(0)
    assert differences(tables, prepare(example_map())) == []
    assert tables.lane_lists.flags.owndata
    assert inspect(tmp_path / "old.pack") == []


@pytest.mark.row("SCEN-2")
def test_arrays_are_read_only_views_of_the_file_and_outlive_the_pack(path: Path) -> None:
    pack = Pack(path)
    scenario = pack[0]
    for array in (scenario.positions, scenario.valid, scenario.map.points, pack.tables(0).lane_lists):
        assert not array.flags.owndata
        assert array.ctypes.data % 64 == 0
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    pack.close()
    del pack
    gc.collect()
    assert differences(scenario, example_scenario("a-1", ("merge", "roundabout"))) == []


@pytest.mark.row("SCEN-2")
def test_opening_ten_thousand_scenarios_takes_hardly_any_memory(tmp_path: Path) -> None:
    road_map, tags = encode_map(example_map()), ["merge", "nudge_parked"]
    with PackWriter(tmp_path / "large.pack") as writer:
        number = writer.add_encoded_map(road_map)
        for i in range(10_000):
            writer.add_encoded(encode_bundle({}, {"id": f"town-{i:06d}", "tags": tags}), number)
    tracemalloc.start()
    pack = Pack(tmp_path / "large.pack")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(pack) == 10_000
    assert kept < 100_000  # so nothing is cached per scenario
    assert peak < 5_000_000
    assert pack.number("town-007777") == 7777


def test_an_unknown_id_names_the_nearest(path: Path) -> None:
    with pytest.raises(UsageError, match=r"town\.pack: no scenario has the id 'a-2' .*'a-1'"):
        Pack(path).scenario("a-2")


def test_an_unknown_tag_names_the_existing_ones(path: Path) -> None:
    with pytest.raises(UsageError, match="no scenario has the tag 'mergee'; its tags are: merge, roundabout"):
        Pack(path).select("mergee")


@pytest.mark.parametrize("number", [3, -4])
def test_a_number_outside_says_what_is_allowed(path: Path, number: int) -> None:
    with pytest.raises(UsageError, match=f"scenario number {number} was asked for; allowed: 0 to 2"):
        Pack(path)[number]
    with pytest.raises(UsageError, match="map number 2 was asked for; allowed: 0 to 1"):
        Pack(path).map(2)


def test_an_empty_pack_is_a_pack(tmp_path: Path) -> None:
    with PackWriter(tmp_path / "none.pack"):
        pass
    pack = Pack(tmp_path / "none.pack")
    assert (len(pack), pack.map_count, pack.ids, list(pack), inspect(tmp_path / "none.pack")) == (0, 0, (), [], [])
    with pytest.raises(UsageError, match="there is no scenario"):
        pack[0]


def test_using_a_closed_pack_is_an_error(path: Path) -> None:
    with Pack(path) as pack:
        pack[0]
    pack.close()
    uses = [
        lambda: pack[0],
        lambda: pack.scenario("a-1"),
        lambda: pack.ids,
        lambda: pack.tags(0),
        lambda: pack.tag_counts,
        lambda: pack.select("merge"),
        lambda: pack.map(0),
        lambda: pack.map_of(0),
        lambda: pack.tables(0),
        lambda: pickle.dumps(pack),
        lambda: next(iter(pack)),
        lambda: pack.__enter__(),
    ]
    for use in uses:
        with pytest.raises(UsageError, match=r"town\.pack: this Pack is closed; open it again"):
            use()
    assert "closed" in repr(pack)


def test_a_pack_can_be_sent_to_another_process(path: Path) -> None:
    pack = Pack(path)
    copy = pickle.loads(pickle.dumps(pack))
    assert copy.ids == pack.ids
    assert differences(copy[1], pack[1]) == []


def test_a_pack_replaced_before_it_is_opened_again_is_noticed(path: Path) -> None:
    sent = pickle.dumps(Pack(path))
    with PackWriter(path) as writer:
        writer.add(example_scenario("other"))
    with pytest.raises(PackError, match=r"town\.pack: the file was replaced"):
        pickle.loads(sent)


@pytest.mark.row("SCEN-2")
def test_an_exception_leaves_nothing_behind_and_the_old_file_as_it_was(path: Path) -> None:
    before = path.read_bytes()

    def interrupted() -> None:
        with PackWriter(path) as writer:
            writer.add(example_scenario())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.row("SCEN-2")
def test_the_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "late.pack"
    with PackWriter(path) as writer:
        writer.add(example_scenario())
        assert not path.exists()
    assert os.listdir(tmp_path) == ["late.pack"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_is_an_error_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, function, fail)
    with (
        pytest.raises(PackError, match=r"full\.pack: can't be written: No space left"),
        PackWriter(tmp_path / "full.pack") as writer,
    ):
        writer.add(example_scenario())
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_writer_that_failed_writes_no_pack_even_if_the_error_is_ignored(tmp_path: Path) -> None:
    writer = PackWriter(tmp_path / "full.pack").__enter__()
    assert writer._file is not None
    writer._file.close()
    writer._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - closed by the writer
    with pytest.raises(PackError, match=r"full\.pack: can't be written: No space left"):
        writer.add(example_scenario())
    with pytest.raises(PackError, match="not written, because writing failed"):
        writer.__exit__(None, None, None)
    assert os.listdir(tmp_path) == []


def test_missing_folders_are_created_and_removed_if_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="map number 3"), PackWriter(tmp_path / "new" / "er" / "a.pack") as writer:
        writer.add(example_scenario(), 3)
    assert os.listdir(tmp_path) == []
    with PackWriter(tmp_path / "new" / "er" / "a.pack"):
        pass
    assert os.listdir(tmp_path / "new" / "er") == ["a.pack"]


def test_a_pack_cannot_be_written_over_a_folder_or_below_a_file(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="it is a folder"), PackWriter(tmp_path):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(PackError, match="can't be written: "), PackWriter(tmp_path / "file" / "a.pack"):
        pass


def test_a_writer_is_used_in_a_with_statement(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="use it in a `with` statement"):
        PackWriter(tmp_path / "a.pack").add(example_scenario())


def test_invalid_scenarios_are_refused_and_the_rest_is_written(tmp_path: Path) -> None:
    good = example_scenario("good")
    with PackWriter(tmp_path / "a.pack") as writer:
        writer.add(good)
        with pytest.raises(ScenarioError, match=r"scenario id 'good' is in a\.pack already"):
            writer.add(good)
        with pytest.raises(ScenarioError, match="scenario 'odd': dt is 0"):
            writer.add(replace(good, id="odd", dt=0.0))
        with pytest.raises(ScenarioError, match="scenario 'odd': headings is float64, expected float32"):
            writer.add(replace(good, id="odd", headings=good.headings.astype(np.float64)))
        with pytest.raises(ScenarioError, match=r"scenario 'odd': valid has shape \(3, 5\), expected \(3, 91\)"):
            writer.add(replace(good, id="odd", valid=good.valid[:, :5]))
        with pytest.raises(ScenarioError, match=r"tags are .*, expected a tuple of different words"):
            writer.add(replace(good, id="odd", tags=("merge", "merge")))
        with pytest.raises(ScenarioError, match="empty id"):
            writer.add(replace(good, id=""))
        with pytest.raises(ScenarioError, match="map: points is float64"):
            writer.add_map(replace(good.map, points=good.map.points.astype(np.float64)))
        with pytest.raises(ScenarioError, match="map: points contain NaN"):
            writer.add_map(replace(good.map, points=np.full_like(good.map.points, np.nan)))
        with pytest.raises(UsageError, match="map number 1 was not added; there are 1 maps"):
            writer.add(replace(good, id="odd"), map_number=1)
        with pytest.raises(UsageError, match="a block of 3 bytes was given"):
            writer.add_encoded_map(b"abc")
    assert Pack(tmp_path / "a.pack").ids == ("good",)
    assert inspect(tmp_path / "a.pack") == []


def test_blocks_encoded_elsewhere_give_the_same_file(path: Path, tmp_path: Path) -> None:
    pack, other = Pack(path), tmp_path / "other.pack"
    encoded = [(encode_map(scenario.map), encode_scenario(scenario)) for scenario in pack]
    with PackWriter(other) as writer:
        for map_block, block in encoded:
            writer.add_encoded(block, writer.add_encoded_map(map_block))
    assert other.read_bytes() == path.read_bytes()


def test_another_process_encodes_the_same_bytes() -> None:
    program = (
        "import hashlib, json, sys\n"
        "from roadworthy.scenario.pack import encode_map, encode_scenario\n"
        "from tests.scenario.example import example_map, example_scenario\n"
        "blocks = encode_map(example_map()), encode_scenario(example_scenario(tags=('merge', 'cut_in')))\n"
        "json.dump([hashlib.sha256(block).hexdigest() for block in blocks], sys.stdout)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "77"}
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment).stdout
    blocks = encode_map(example_map()), encode_scenario(example_scenario(tags=("merge", "cut_in")))
    assert json.loads(answer) == [hashlib.sha256(block).hexdigest() for block in blocks]


def test_arrays_of_a_later_minor_version_are_ignored(tmp_path: Path) -> None:
    scenario = example_scenario()
    values = {"id": "example", "source": "handmade", "tags": ["merge"], "dt": 0.1, "current_step": 10, "sdc": 0}
    names = [name for name in scenario.__dataclass_fields__ if isinstance(getattr(scenario, name), np.ndarray)]
    arrays = {name: getattr(scenario, name) for name in names}
    block = encode_bundle({"weather": np.zeros(4, "<c16"), **arrays}, {"mood": [None], **values})
    with PackWriter(tmp_path / "a.pack") as writer:
        writer.add_encoded(block, writer.add_map(scenario.map))
    assert differences(Pack(tmp_path / "a.pack")[0], scenario) == []
    assert inspect(tmp_path / "a.pack") == []


def with_source_values() -> Scenario:
    """Return the example with every optional array, each filled with different numbers."""
    scenario = example_scenario("full")
    rng, lights = np.random.default_rng(0), scenario.light_states.shape
    road_map = replace(
        scenario.map,
        left_neighbor_ranges=np.arange(8, dtype=np.int32).reshape(2, 4),
        right_neighbor_ranges=np.arange(8, 16, dtype=np.int32).reshape(2, 4),
        source_points=(scenario.map.points + scenario.map.origin).astype(np.float32),
    )
    positions = (scenario.positions + scenario.map.origin).astype(np.float32)
    positions[~scenario.valid] = np.nan
    return replace(
        scenario,
        map=road_map,
        light_listed=rng.random(lights) < 0.5,
        source_light_stops=rng.random((*lights, 3)).astype(np.float32),
        source_positions=positions,
        source_headings=rng.random(scenario.valid.shape).astype(np.float32),
    )


def test_optional_arrays_are_read_back_bit_for_bit(tmp_path: Path) -> None:
    scenario = with_source_values()
    with PackWriter(tmp_path / "a.pack") as writer:
        writer.add(scenario)
    assert differences(Pack(tmp_path / "a.pack")[0], scenario) == []
    assert inspect(tmp_path / "a.pack") == []


def test_a_pack_without_optional_arrays_is_read_with_their_defaults(tmp_path: Path) -> None:
    """Return a pack as version 2.0 wrote it, without such arrays in its blocks."""
    scenario = example_scenario()
    with PackWriter(tmp_path / "old.pack") as writer:
        writer.add(scenario)
    data = (tmp_path / "old.pack").read_bytes()
    assert not any(name.encode() in data for name in (*OPTIONAL_MAP_ARRAYS, *OPTIONAL_SCENARIO_ARRAYS))
    found = Pack(tmp_path / "old.pack")[0]
    listed, stops = listed_lights(replace(found, light_states=np.array([[0, 4] * 45 + [6]], np.uint8)))
    assert listed[0, :3].tolist() == [False, True, False]
    expected = (found.light_stops[0] + found.map.origin).astype(np.float32).tolist()
    assert stops[0, :2].tolist() == [[0.0, 0.0, 0.0], expected]
    positions, headings = source_motion(found)
    expected = (found.positions[0, 5] + found.map.origin).astype(np.float32).tolist()
    assert positions[0, 5].tolist() == expected
    assert positions[1, 0].tolist() == [0.0, 0.0, 0.0]  # the second car is absent
    np.testing.assert_array_equal(headings, found.headings)
    assert source_points(found.map)[3].tolist() == (found.map.points[3] + found.map.origin).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"light_listed": np.ones((1, 90), np.bool_)}, "light_listed has shape"),
        ({"source_positions": np.zeros((3, 91, 3), np.float32)}, "source_positions are not the positions"),
        ({"source_headings": np.zeros((2, 91), np.float32)}, "source_headings has shape"),
    ],
)
def test_optional_arrays_that_do_not_fit_are_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with PackWriter(tmp_path / "a.pack") as writer, pytest.raises(ScenarioError, match=words):
        writer.add(replace(with_source_values(), **changes))
