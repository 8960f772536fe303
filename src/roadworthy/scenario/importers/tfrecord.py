"""TFRecord files: records framed by their length and by checksums of both the length and the data.

A record is its length (8 bytes, little-endian), the length's masked CRC-32C (4 bytes), the data, and the data's masked
CRC-32C. The record after damaged data can be found, but not the record after a damaged length.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import kernel
from roadworthy.scenario.importers.importer import Damage, Location, Record
from roadworthy.scenario.importers.wire import MAX_BYTES
from roadworthy.scenario.schema import Bytes

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, lowest bit first
_MASK_DELTA = 0xA282EAD8


def records(path: Path) -> Iterator[Record | Damage]:
    """Yield the records of a file in order, or damage in their place. Files whose name ends in .gz are decompressed."""
    with _open(path) as file:
        number = offset = 0
        while True:
            location = Location(path, number, offset)
            try:
                header = file.read(HEADER.size)
                if not header:
                    return
                fault = _header_fault(header)
                length = 0 if fault else HEADER.unpack(header)[0]
                body = b"" if fault else file.read(length + FOOTER.size)
            except (EOFError, OSError, zlib.error) as error:
                fault, length, body = f"can't be unpacked or read: {error}", 0, b""
            if not fault and len(body) < length + FOOTER.size:
                fault = f"the file ends after {len(body)} of {length + FOOTER.size} bytes of data and checksum"
            if fault:
                yield Damage(location, f"{fault}; the rest of this file is lost")
                return
            data, expected = body[:length], FOOTER.unpack_from(body, length)[0]
            found = masked_crc32c(data)
            if found == expected:
                yield Record(location, data)
            else:
                what = f"the checksum of its {length} bytes is {found:#010x}, but the file says {expected:#010x}"
                yield Damage(location, what)
            number += 1
            offset += HEADER.size + len(body)


def is_tfrecord(path: Path) -> bool:
    """Return whether a file starts with a sound TFRecord header."""
    with _open(path) as file:
        try:
            return not _header_fault(file.read(HEADER.size))
        except (EOFError, OSError, zlib.error):
            return False


def _open(path: Path) -> IO[bytes]:
    try:
        return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else open(path, "rb")
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror or error}") from error


_NO_RECORDS = "the file is not a TFRecord file, or is damaged"


def _header_fault(header: bytes) -> str:
    """Return what is wrong with a record's header, an empty text if nothing is."""
    if len(header) < HEADER.size:
        return f"the file ends after {len(header)} of {HEADER.size} bytes of length and checksum: {_NO_RECORDS}"
    length, expected = HEADER.unpack(header)
    found = masked_crc32c(header[:8])
    if found != expected:
        return f"the checksum of its length is {found:#010x}, but the file says {expected:#010x}: {_NO_RECORDS}"
    return f"it has {length} bytes, allowed: {MAX_BYTES}" if length > MAX_BYTES else ""


def masked_crc32c(data: bytes) -> int:
    """Return TFRecord's checksum: rotated and shifted, so that data with their own checksum stay well mixed."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of data."""
    return int(_crc32c(np.frombuffer(data, np.uint8), _TABLES))


def _tables() -> NDArray[np.uint32]:
    """Return (8, 256) the effect of a byte on the checksum when k more bytes follow it."""
    tables = np.empty((8, 256), np.uint32)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = tables[0] >> 1 ^ (tables[0] & 1) * np.uint32(_POLYNOMIAL)
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> 8 ^ tables[0, tables[k - 1] & 0xFF]
    return tables


_TABLES = _tables()


@kernel
def _crc32c(data: Bytes, tables: NDArray[np.uint32]) -> Any:
    # Eight bytes at a time, each with its own table, so that the lookups are independent.
    crc = np.uint32(0xFFFFFFFF)
    byte = np.uint32(0xFF)
    whole = len(data) // 8 * 8
    for i in range(0, whole, 8):
        low = crc ^ (
            np.uint32(data[i])
            | np.uint32(data[i + 1]) << np.uint32(8)
            | np.uint32(data[i + 2]) << np.uint32(16)
            | np.uint32(data[i + 3]) << np.uint32(24)
        )
        crc = (
            tables[7, low & byte]
            ^ tables[6, low >> np.uint32(8) & byte]
            ^ tables[5, low >> np.uint32(16) & byte]
            ^ tables[4, low >> np.uint32(24)]
            ^ tables[3, data[i + 4]]
            ^ tables[2, data[i + 5]]
            ^ tables[1, data[i + 6]]
            ^ tables[0, data[i + 7]]
        )
    for i in range(whole, len(data)):
        crc = tables[0, (crc ^ np.uint32(data[i])) & byte] ^ crc >> np.uint32(8)
    return crc ^ np.uint32(0xFFFFFFFF)
