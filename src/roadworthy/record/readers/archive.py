"""Read members of a zip archive from a stranger: nothing is unpacked to disk, and sizes are limited."""

from __future__ import annotations

import struct
import zipfile
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError
from roadworthy.record.readers.log import printable
from roadworthy.record.readers.row_streams import parse_json

LARGEST_MEMBER = 256 << 20  # bytes, unpacked
MOST_MEMBERS = 2_000_000
_ZSTANDARD = 93  # Inspect uses it; the standard library knows it from Python 3.14 on
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")


class Archive:
    """An archive opened for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
            self._members = {info.filename: info for info in self._archive.infolist()}
        except zipfile.BadZipFile as error:
            raise RecordError(
                f"{path}: is not a whole zip archive ({printable(str(error))}); if the evaluation was killed, recover "
                "the log with `inspect log recover`"
            ) from error
        except (OSError, ValueError, NotImplementedError, struct.error, UnicodeDecodeError) as error:
            raise RecordError(f"{path}: can't be read as a zip archive: {printable(str(error))}") from error
        if len(self._members) > MOST_MEMBERS:
            raise RecordError(f"{path}: has {len(self._members)} members; expected at most {MOST_MEMBERS}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the members, in the order of the archive."""
        return tuple(self._members)

    def json(self, name: str) -> Any:
        """Return a member as JSON."""
        return parse_json(self._read(name), f"{self.path}, {printable(name)}")

    def _read(self, name: str) -> bytes:
        info, where = self._members[name], f"{self.path}, {printable(name)}"
        try:
            if info.compress_type == _ZSTANDARD:
                data = self._zstandard(info)
            else:
                with self._archive.open(info) as file:
                    data = file.read(LARGEST_MEMBER + 1)  # whatever size the archive states
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, struct.error) as error:
            raise RecordError(f"{where}: is damaged: {printable(str(error))}") from error
        except (NotImplementedError, RuntimeError) as error:  # an unknown compression, or encrypted
            raise RecordError(f"{where}: can't be unpacked: {printable(str(error))}") from error
        if len(data) > LARGEST_MEMBER:
            raise RecordError(f"{where}: is larger than {LARGEST_MEMBER >> 20} MiB")
        return data

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack a member with Arrow's decompressor, which every installation has."""
        import pyarrow

        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            header = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if header[0] != b"PK\x03\x04":
                raise zipfile.BadZipFile("bad magic bytes of a member")
            file.seek(header[-2] + header[-1], 1)
            packed = file.read(min(info.compress_size, LARGEST_MEMBER))
        with pyarrow.input_stream(pyarrow.BufferReader(packed), compression="zstd") as stream:
            data: bytes = stream.read(LARGEST_MEMBER + 1)
        if zlib.crc32(data) != info.CRC and len(data) <= LARGEST_MEMBER:
            raise zipfile.BadZipFile("its checksum is wrong")
        return data
