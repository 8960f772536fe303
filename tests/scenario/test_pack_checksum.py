"""The checksum of a pack's blocks, and the parts of a block that are found without its directory."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import PackError
from roadworthy.scenario.pack import Pack, PackWriter, encode_scenario, inspect
from roadworthy.scenario.pack.bundle import encode_bundle, first_array
from roadworthy.scenario.pack.checksum import checksum
from roadworthy.scenario.pack.outline import ARRAY_PLACES, OUTLINE_WORDS, outline_of, read_scenario
from roadworthy.scenario.schema import SCENARIO_ARRAYS
from tests.scenario.example import example_map, example_scenario

pytestmark = pytest.mark.row("SCEN-2")
BLOCK = np.random.default_rng(5).integers(0, 256, 64 * 200, np.uint8).tobytes()


def reference(data: bytes) -> int:
    """Return the sum of the docstring, in Python integers."""
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    total = len(words) * 0x78DDE6C4
    for i, word in enumerate(words):
        low, high = (i * 0x78DDE6C4) % 2**32 | 0b01, (i * 0x17AF29AC) % 2**32 | 0b11
        total += (word % 2**32) * low + (word >> 32) * high
    return total % 2**64


@pytest.mark.parametrize("size", [0, 64, 128, 64 * 200])
def test_the_checksum_is_the_documented_sum(size: int) -> None:
    assert checksum(BLOCK[:size]) == reference(BLOCK[:size])
    assert checksum(BLOCK, 64, max(size - 64, 0)) == reference(BLOCK[64 : 64 + max(size - 64, 0)])


def test_factors_are_odd_and_differ() -> None:
    places = np.arange(2_000_000, dtype=np.uint64)
    low = (places * np.uint64(0x78DDE6C4)) % 2**32 | 0b01
    high = (places * np.uint64(0x17AF29AC)) % 2**32 | 0b11
    assert len(np.unique(np.concatenate([low, high]))) == 2 * len(places)
    assert (0x78DDE6C4 // 4) % 2 == (0x17AF29AC // 4) % 2 == 1  # so they differ up to 2**30 words


@given(st.lists(st.integers(0, 8 * len(BLOCK) - 1), min_size=1, max_size=2, unique=True))
def test_one_or_two_flipped_bits_are_noticed(bits: list[int]) -> None:
    damaged = bytearray(BLOCK)
    for bit in bits:
        damaged[bit // 8] ^= 1 << (bit % 8)
    assert checksum(bytes(damaged)) != checksum(BLOCK)


@given(st.integers(0, len(BLOCK) // 8 - 1), st.integers(0, len(BLOCK) // 8 - 1))
def test_exchanged_words_are_noticed(one: int, two: int) -> None:
    words = np.frombuffer(BLOCK, np.uint64).copy()
    words[[one, two]] = words[[two, one]]
    assert (checksum(words.tobytes()) == checksum(BLOCK)) == (one == two)


@given(st.integers(0, len(BLOCK) // 64 - 1), st.integers(1, 64))
def test_missing_added_and_zeroed_ranges_are_noticed(first: int, length: int) -> None:
    assert checksum(BLOCK[: 64 * first]) != checksum(BLOCK)
    assert checksum(BLOCK + bytes(64 * length)) != checksum(BLOCK)
    stretch = min(64 * length, len(BLOCK) - 64 * first)
    assert checksum(BLOCK[: 64 * first] + bytes(stretch) + BLOCK[64 * first + stretch :]) != checksum(BLOCK)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with PackWriter(tmp_path / "town.pack") as writer:
        writer.add(example_scenario("a", road_map=example_map()))
        writer.add(example_scenario("b", road_map=example_map(shift_m=7), steps=20))
    return tmp_path / "town.pack"


def test_verifying_all_blocks_notices_no_less_than_reading_them(path: Path) -> None:
    pack = Pack(path)
    pack.verify()
    index = pack._index
    assert pack._verified == {*index.map_offsets.tolist(), *index.scenario_offsets.tolist()}
    assert pack.size == path.stat().st_size
    data = bytearray(path.read_bytes())
    data[int(index.scenario_offsets[1]) + 500] ^= 4
    copy = path.with_name("copy.pack")
    shutil.copy(path, copy)
    copy.write_bytes(data)
    damaged = Pack(copy)
    damaged.verify()
    damaged.packed_scenario(0)
    with pytest.raises(PackError, match=r"copy\.pack: scenario 'b': its block is damaged"):
        damaged.packed_scenario(1)


def test_the_outline_leads_to_every_array(path: Path) -> None:
    pack = Pack(path)
    for number, scenario in enumerate(pack):
        packed = pack.packed_scenario(number)
        assert (packed.agents, packed.steps) == scenario.valid.shape
        assert (packed.predicted, packed.lights, packed.sdc) == (len(scenario.predict), 1, scenario.sdc)
        assert packed.dt == np.float32(scenario.dt)
        for name in SCENARIO_ARRAYS:
            expected = getattr(scenario, name).tobytes()
            assert packed.words[packed.starts[ARRAY_PLACES[name]] :].tobytes()[: len(expected)] == expected, name


def test_a_block_without_an_outline_is_packed_again(tmp_path: Path) -> None:
    scenario = example_scenario()
    arrays = {name: getattr(scenario, name) for name in SCENARIO_ARRAYS}
    values = {"id": "example", "source": "handmade", "tags": ["merge"], "dt": 0.1, "current_step": 10, "sdc": 0}
    with PackWriter(tmp_path / "bare.pack") as writer:
        writer.add_encoded(encode_bundle(arrays, values), writer.add_map(scenario.map))
    packed = Pack(tmp_path / "bare.pack").packed_scenario(0)
    block = encode_scenario(scenario)
    assert packed.words.tobytes() == first_array(block, 0, len(block), "<i4").tobytes()


def test_an_outline_larger_than_its_block_is_invalid() -> None:
    block = encode_scenario(example_scenario())
    words = first_array(block, 0, len(block), "<i4")
    assert read_scenario(words) is not None
    assert read_scenario(words[: len(words) - 16]) is None
    assert read_scenario(words[: OUTLINE_WORDS - 1]) is None
    for place, wrong in ((0, 1), (1, 10**9), (1, -1), (2, 2**31 - 1), (3, 10**6), (4, -5), (5, 3), (5, -2)):
        forged = words.copy()
        forged[place] = wrong
        forged.flags.writeable = False
        assert read_scenario(forged) is None, (place, wrong)


def test_an_outline_of_another_scenario_is_a_fault(tmp_path: Path) -> None:
    scenario = example_scenario()
    arrays = {name: getattr(scenario, name) for name in SCENARIO_ARRAYS}
    values = {"id": "example", "source": "handmade", "tags": ["merge"], "dt": 0.1, "current_step": 10, "sdc": 0}
    other = outline_of(replace(scenario, sdc=1))
    with PackWriter(tmp_path / "odd.pack") as writer:
        writer.add_encoded(encode_bundle({"outline": other, **arrays}, values), writer.add_map(scenario.map))
    assert [str(fault) for fault in inspect(tmp_path / "odd.pack")] == [
        "scenario 'example': its outline is that of another scenario"
    ]
