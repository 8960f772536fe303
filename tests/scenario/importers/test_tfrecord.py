"""TFRecord files: checksums, and reports about damaged files."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import UsageError
from roadworthy.scenario.importers import Damage, Record
from roadworthy.scenario.importers.tfrecord import crc32c, masked_crc32c, records
from tests.scenario.importers.encoder import frame

PARTS = [b"first", b"", b"third, a longer one" * 10]
HEADER_BYTES, FOOTER_BYTES = 12, 4


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def whole_file() -> bytes:
    return b"".join(map(frame, PARTS))


def bitwise_crc32c(data: bytes) -> int:
    """Return the checksum bit by bit, from its definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    # From appendix B.4 of RFC 3720, and the check value of the CRC catalogs.
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_crc32c_gives_the_published_values(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@given(st.binary(max_size=70))
def test_crc32c_is_what_its_definition_says(data: bytes) -> None:
    assert crc32c(data) == bitwise_crc32c(data)


def test_the_mask_rotates_and_adds() -> None:
    crc = bitwise_crc32c(b"123456789")
    rotated = int(f"{crc:032b}"[-15:] + f"{crc:032b}"[:-15], 2)
    assert masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) % 2**32


@pytest.mark.parametrize("name", ["x.tfrecord", "x.tfrecord.gz"])
def test_records_are_read_in_order(name: str, tmp_path: Path) -> None:
    data = whole_file()
    path = write(tmp_path / name, gzip.compress(data) if name.endswith(".gz") else data)
    found = list(records(path))
    assert all(isinstance(record, Record) for record in found)
    assert [record.data for record in found if isinstance(record, Record)] == PARTS
    offsets = [record.location.offset for record in found]
    assert offsets == [data.index(frame(part)) for part in PARTS]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    assert list(records(write(tmp_path / "x", b""))) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        list(records(tmp_path / "nowhere"))


def damages(path: Path) -> list[Damage]:
    return [item for item in records(path) if isinstance(item, Damage)]


@given(st.integers(0, len(whole_file()) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, at: int, change: int) -> None:
    data = bytearray(whole_file())
    data[at] ^= change
    (damage,) = damages(write(tmp_path_factory.mktemp("x") / "x", bytes(data)))
    ends = [sum(len(frame(part)) for part in PARTS[: k + 1]) for k in range(len(PARTS))]
    assert damage.location.number == next(k for k, end in enumerate(ends) if at < end)


@given(st.integers(1, len(whole_file()) - 1))
def test_any_truncation_inside_a_record_is_noticed(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    found = damages(write(tmp_path_factory.mktemp("x") / "x", whole_file()[:size]))
    ends = {sum(len(frame(part)) for part in PARTS[: k + 1]) for k in range(len(PARTS))}
    assert len(found) == (size not in ends)
    assert all("the file ends after" in damage.reason for damage in found)


def test_after_damaged_data_the_next_record_is_found(tmp_path: Path) -> None:
    data = bytearray(whole_file())
    data[HEADER_BYTES] ^= 1
    found = list(records(write(tmp_path / "x", bytes(data))))
    assert [type(item) for item in found] == [Damage, Record, Record]
    assert isinstance(found[0], Damage)
    assert "the checksum of its 5 bytes is" in found[0].reason


def test_after_a_damaged_length_the_rest_is_reported_as_lost(tmp_path: Path) -> None:
    data = bytearray(whole_file())
    second = len(frame(PARTS[0]))
    data[second] ^= 1
    found = list(records(write(tmp_path / "x", bytes(data))))
    assert [type(item) for item in found] == [Record, Damage]
    assert found[1].location == (tmp_path / "x", 1, second)
    assert isinstance(found[1], Damage)
    assert "the checksum of its length" in found[1].reason
    assert "the rest of this file is lost" in found[1].reason


def test_a_record_that_no_message_could_fill_is_damaged(tmp_path: Path) -> None:
    length = struct.pack("<Q", 2**31)
    (damage,) = damages(write(tmp_path / "x", length + struct.pack("<I", masked_crc32c(length))))
    assert f"it has {2**31} bytes, allowed: {2**31 - 1}" in damage.reason


def test_a_truncated_or_invalid_gzip_file_is_damaged(tmp_path: Path) -> None:
    packed = gzip.compress(whole_file())
    for data in (packed[: len(packed) // 2], whole_file(), packed[:-8] + bytes(8)):
        found = damages(write(tmp_path / "x.gz", data))
        assert len(found) == 1
        assert "can't be unpacked" in found[0].reason
