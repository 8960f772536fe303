"""Damaged, foreign, newer and hostile packs give an error that names file and fault, and never a crash."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadworthy.errors import PackError, RoadworthyError
from roadworthy.scenario.pack import Fault, Pack, PackWriter, inspect
from roadworthy.scenario.pack.bundle import Bundle, encode_bundle
from roadworthy.scenario.pack.checksum import checksum
from roadworthy.scenario.pack.layout import HEADER_SIZE, INDEX_ARRAYS, MAJOR_VERSION, Header, Index
from tests.scenario.example import example_map, example_scenario

pytestmark = pytest.mark.row("SCEN-2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


@pytest.fixture(scope="module")
def sound(folder: Path) -> bytes:
    """Return a pack of three scenarios on two maps."""
    first, second = example_map(), example_map(shift_m=7)
    with PackWriter(folder / "sound.pack") as writer:
        writer.add(example_scenario("a-1", ("merge", "roundabout"), first, steps=12))
        writer.add(example_scenario("b-2", (), second, steps=12))
        writer.add(example_scenario("c-3", ("merge",), first, steps=12))
    return (folder / "sound.pack").read_bytes()


def written(folder: Path, data: bytes) -> Path:
    path = folder / "given.pack"
    path.unlink(missing_ok=True)  # an earlier file may still be mapped, and truncating it would crash its readers
    path.write_bytes(data)
    return path


def read_all(path: Path) -> None:
    pack = Pack(path)
    for number in range(pack.map_count):
        pack.map(number)
        pack.tables(number)
    for scenario in pack:
        pack.number(scenario.id)
        [pack.select(tag) for tag in scenario.tags]


def resealed(data: bytes, header: dict[str, Any] | None = None, **index: Any) -> bytes:
    """Return the same file with other numbers in header and index, and correct checksums."""
    old = Header.decode(data)
    now = Index.decode(data, old)
    arrays = {name: np.asarray(index.pop(name, getattr(now, name))) for name in INDEX_ARRAYS}
    block = encode_bundle(arrays, index or {"tags": list(now.tag_names)})
    fields = {
        "file_size": old.index_offset + len(block),
        "map_count": old.map_count,
        "scenario_count": old.scenario_count,
        "index_offset": old.index_offset,
        "index_size": len(block),
        "index_crc": zlib.crc32(block),
    }
    return Header(**(fields | (header or {}))).encode() + data[HEADER_SIZE : old.index_offset] + block


def with_version(data: bytes, major: int) -> bytes:
    head = data[:8] + struct.pack("<H", major) + data[10 : HEADER_SIZE - 4]
    return head + struct.pack("<I", zlib.crc32(head)) + data[HEADER_SIZE:]


def test_resealing_changes_nothing_by_itself(sound: bytes) -> None:
    assert resealed(sound) == sound


@pytest.mark.parametrize("place", range(16))
def test_a_truncated_pack_names_the_fault(folder: Path, sound: bytes, place: int) -> None:
    path = written(folder, sound[: len(sound) * place // 16])
    with pytest.raises(PackError, match=r"given\.pack: the file is (truncated|empty)"):
        Pack(path)
    assert len(inspect(path)) == 1


def test_a_pack_truncated_within_its_header_names_the_fault(folder: Path, sound: bytes) -> None:
    for size in range(1, HEADER_SIZE + 1):
        with pytest.raises(PackError, match=r"given\.pack: the file is truncated"):
            Pack(written(folder, sound[:size]))


def test_a_pack_that_continues_after_its_end_is_refused(folder: Path, sound: bytes) -> None:
    path = written(folder, sound + b"\0")
    with pytest.raises(PackError, match=r"given\.pack: the file continues after its end"):
        Pack(path)
    assert [fault.where for fault in inspect(path)] == ["file"]


@pytest.mark.parametrize("data", [b"PK\x03\x04" + bytes(200), b"\x89PNG\r\n\x1a\n" + bytes(99), b"{}", b"\0" * 4096])
def test_a_foreign_file_is_not_a_pack(folder: Path, data: bytes) -> None:
    with pytest.raises(PackError, match=r"given\.pack: this is not a pack"):
        Pack(written(folder, data))


def test_a_newer_version_asks_for_an_upgrade(folder: Path, sound: bytes) -> None:
    path = written(folder, with_version(sound, MAJOR_VERSION + 1))
    with pytest.raises(PackError, match=r"given\.pack: .* written by a newer version .*version 3.* upgrade Roadworthy"):
        Pack(path)
    assert "newer version" in inspect(path)[0].what


def test_an_older_version_asks_to_make_the_pack_again(folder: Path, sound: bytes) -> None:
    path = written(folder, with_version(sound, 1))
    with pytest.raises(PackError, match=r"given\.pack: .* written by an older version .*version 1.* generate .* again"):
        Pack(path)
    assert "older version" in inspect(path)[0].what


def test_an_impossible_version_is_refused(folder: Path, sound: bytes) -> None:
    with pytest.raises(PackError, match=r"given\.pack: the header has an unknown format"):
        Pack(written(folder, with_version(sound, 0)))


def test_a_missing_file_a_folder_and_a_pipe_are_named(folder: Path) -> None:
    with pytest.raises(PackError, match=r"missing\.pack: there is no such file"):
        Pack(folder / "missing.pack")
    with pytest.raises(PackError, match="this is a folder, not a pack"):
        Pack(folder)
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe")
        with pytest.raises(PackError, match="pipe: this is not a regular file"):
            Pack(folder / "pipe")
    assert [str(fault) for fault in inspect(folder / "missing.pack")] == ["file: there is no such file"]


def test_any_flipped_byte_of_the_header_is_found(folder: Path, sound: bytes) -> None:
    for place in range(HEADER_SIZE):
        data = bytearray(sound)
        data[place] ^= 0x10
        path = written(folder, bytes(data))
        with pytest.raises(PackError, match=r"given\.pack: (the header is damaged|this is not a pack)"):
            Pack(path)
        assert len(inspect(path)) == 1


@settings(deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_any_flipped_byte_of_the_file_is_found(folder: Path, sound: bytes, where: float, flip: int) -> None:
    data = bytearray(sound)
    data[int(where * len(data))] ^= flip
    path = written(folder, bytes(data))
    with pytest.raises(PackError, match=r"given\.pack: "):
        read_all(path)
    assert inspect(path)


def test_a_damaged_block_is_named_and_the_others_are_still_read(folder: Path, sound: bytes) -> None:
    index = Index.decode(sound, Header.decode(sound))
    data = bytearray(sound)
    data[int(index.scenario_offsets[2] + index.scenario_sizes[2] - 1)] ^= 1  # a byte of padding
    path = written(folder, bytes(data))
    pack = Pack(path)
    assert pack[0].id == "a-1"
    for _ in range(2):
        with pytest.raises(PackError, match=r"given\.pack: scenario 'c-3': its block is damaged"):
            pack[2]
    assert inspect(path) == [Fault("scenario 'c-3'", "its block is damaged (its checksum is wrong)")]


def test_inspect_continues_after_the_first_fault(folder: Path, sound: bytes) -> None:
    index = Index.decode(sound, Header.decode(sound))
    data = bytearray(sound + b"after the end")
    for offset in (index.map_offsets[1], index.scenario_offsets[0]):
        data[int(offset) + 70] ^= 1
    place = sound.rindex(b"roundabout")
    data[place] ^= 1
    told = []
    faults = inspect(written(folder, bytes(data)), on_progress=lambda done, total: told.append((done, total)))
    assert [fault.where for fault in faults] == ["file", "index", "map 1", "scenario 'a-1'", "scenario 'b-2'"]
    assert "its map 1 has faults" in faults[-1].what
    assert told == [(done, 5) for done in range(1, 6)]


def test_inspect_finds_data_that_do_not_fit_together(folder: Path, sound: bytes) -> None:
    index = Index.decode(sound, Header.decode(sound))
    data, checksums = bytearray(sound), index.scenario_checksums.copy()
    start, end = int(index.scenario_offsets[1]), int(index.scenario_offsets[1] + index.scenario_sizes[1])
    place = data.index(b'"sdc":0', start, end)
    data[place : place + 7] = b'"sdc":9'
    valid = Bundle(sound, start, end - start)._entries["valid"]
    data[start + Bundle(sound, start, end - start)._data - start + valid[2]] = 2
    checksums[1] = checksum(bytes(data[start:end]))
    found = inspect(written(folder, resealed(bytes(data), scenario_checksums=checksums)))
    assert [str(fault) for fault in found] == [
        "scenario 'b-2': its outline is that of another scenario",
        "scenario 'b-2': valid holds bytes other than 0 and 1",
        "scenario 'b-2': the self-driving car is agent 9, but there are 3 agents",
    ]


def test_inspect_finds_two_scenarios_of_one_id(folder: Path, sound: bytes) -> None:
    text = np.frombuffer(b"a-1b-2a-1", np.uint8)
    faults = inspect(written(folder, resealed(sound, id_text=text)))
    assert [fault.what for fault in faults] == [
        "scenarios 0 and 2 have the same id",
        "its id and tags are not those that the index gives",
    ]


HUGE = 2**62
HOSTILE: list[dict[str, Any]] = [
    {"header": {"scenario_count": 4}},
    {"header": {"map_count": HUGE}},
    {"header": {"index_offset": HUGE}},
    {"header": {"index_offset": HUGE, "file_size": 2 * HUGE, "index_size": HUGE}},
    {"header": {"index_size": 0}},
    {"header": {"file_size": 2**64 - 1, "index_offset": 2**63, "index_size": 2**63 - 1}},
    {"map_offsets": np.array([64, HUGE])},
    {"map_offsets": np.array([-64, 64])},
    {"map_sizes": np.array([HUGE, HUGE])},
    {"map_sizes": np.array([0, -64])},
    {"scenario_maps": np.array([0, 2, 0], np.int32)},
    {"scenario_maps": np.array([0, -1, 0], np.int32)},
    {"scenario_maps": np.array([0, 1, 0], np.float32)},
    {"id_starts": np.array([0, 3, HUGE, 9])},
    {"id_starts": np.array([0, 3, 9])},
    {"id_starts": np.array([], np.int64)},
    {"tag_starts": np.array([0, -2, 2, 3])},
    {"tag_numbers": np.array([0, 1, 2], np.int32)},
    {"tags": "merge"},
    {"tags": [1, 2]},
]


@pytest.mark.parametrize("change", HOSTILE, ids=str)
def test_an_inconsistent_index_is_refused(folder: Path, sound: bytes, change: dict[str, Any]) -> None:
    path = written(folder, resealed(sound, **change))
    with pytest.raises(PackError, match=r"given\.pack: "):
        Pack(path)
    assert inspect(path)


@pytest.mark.parametrize(
    "directory",
    [
        b"",
        b"[]",
        b"null",
        b'{"arrays":[],"values":{}',
        b"[" * 100_000,
        b'{"arrays":[[1,2]],"values":{}}',
        b'{"arrays":[[["a"],"<f4",[1],0]],"values":{}}',
        b'{"arrays":[],"values":3}',
        b"\xff\xfe",
        b'{"arrays":[],"values":{"id":' + b"9" * 5000 + b"}}",
    ],
)
def test_an_invalid_directory_is_refused(directory: bytes) -> None:
    block = struct.pack("<I", len(directory)) + directory
    with pytest.raises(PackError, match="directory is not readable"):
        Bundle(block, 0, len(block))


def test_a_directory_larger_than_its_block_is_refused() -> None:
    with pytest.raises(PackError, match="larger than its block"):
        Bundle(struct.pack("<I", 2**32 - 1) + bytes(60), 0, 64)
    with pytest.raises(PackError, match="too small"):
        Bundle(b"abc", 0, 3)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('["kinds","|u1",[1e3],0]', "no readable shape"),
        ('["kinds","|u1",[-1],0]', "no readable shape"),
        ('["kinds","|u1",[true],0]', "no readable shape"),
        ('["kinds","|u1",7,0]', "no readable shape"),
        ('["kinds","|u1",[65],0]', "doesn't fit"),
        ('["kinds","|u1",[9223372036854775807,4],0]', "doesn't fit"),
        ('["kinds","|u1",[0,9223372036854775807],0]', "doesn't fit"),
        ('["kinds","|u1",[1],64]', "doesn't fit"),
        ('["kinds","|u1",[1],3]', "doesn't fit"),
        ('["kinds","|O8",[1],0]', "expected"),
        ('["kinds",["|u1"],[1],0]', "expected"),
        ('["types","|u1",[1],0]', "missing"),
    ],
)
def test_an_inconsistent_array_is_refused(entry: str, words: str) -> None:
    directory = f'{{"arrays":[{entry}],"values":{{}}}}'.encode().ljust(124)
    block = struct.pack("<I", len(directory)) + directory + bytes(64)
    with pytest.raises(PackError, match=words):
        Bundle(block, 0, len(block)).array("kinds", INDEX_ARRAYS["id_text"], {})


@settings(deadline=None)
@given(st.data())
def test_a_forged_pack_with_right_checksums_never_crashes(folder: Path, sound: bytes, data: st.DataObject) -> None:
    header = Header.decode(sound)
    index = Index.decode(sound, header)
    blocks = [
        *zip(index.map_offsets.tolist(), index.map_sizes.tolist(), strict=True),
        *zip(index.scenario_offsets.tolist(), index.scenario_sizes.tolist(), strict=True),
    ]
    forged = bytearray(sound)
    start, size = data.draw(st.sampled_from(blocks))
    # Most of the flips hit the directory, whose numbers control the reader.
    reach = min(size, data.draw(st.sampled_from([4, 1500, size])))
    for _ in range(data.draw(st.integers(1, 4))):
        forged[start + data.draw(st.integers(0, reach - 1))] ^= data.draw(st.integers(1, 255))
    sums = [checksum(bytes(forged), at, length) for at, length in blocks]
    maps = len(index.map_offsets)
    checksums = {
        "map_checksums": np.array(sums[:maps], np.uint64),
        "scenario_checksums": np.array(sums[maps:], np.uint64),
    }
    path = written(folder, resealed(bytes(forged), **checksums))
    inspect(path)
    try:
        read_all(path)
        message = None
    except RoadworthyError as error:
        message = str(error)
    assert message is None or "given.pack: " in message
