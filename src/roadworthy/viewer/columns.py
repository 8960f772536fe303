"""Tables for the browser: typed columns in one compressed file, which plain JavaScript decodes without a library.

A file is gzip of: `RWCOLS1\\0`, the length of the header (uint32), the header (JSON), zeros up to a multiple of 8, and
the data. The header is `{"rows", "columns": [...], ...}`. Each column has `name`, `kind` and `offset` in bytes from the
start of the data, which is a multiple of 8; all numbers are little-endian.

    number  `dtype` u1, i1, u2, i2, i4, f4 or f8, `length` values, times `scale` if there is one; NaN is no data
    word    `dtype` u1, u2 or u4: places in `values`, a list of distinct JSON values (null, texts, lists, objects)
    text    `rows` + 1 offsets (u4) into UTF-8 text, which follows at `text_offset`; for ids that differ in every row
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MAGIC = b"RWCOLS1\0"
SUFFIX = "cols"
_WHOLE = ("u1", "i1", "u2", "i2", "i4")
_MOST_WORDS_SHARE = 0.5  # of rows; with more distinct values, a column is stored as text


class Columns:
    """Collects the columns of a table and encodes them."""

    def __init__(self, rows: int, **more: Any) -> None:
        """Start a table; `more` are further fields of its header."""
        self._header: dict[str, Any] = {"rows": rows, "columns": [], **more}
        self._parts: list[bytes] = []
        self._size = 0

    def numbers(self, name: str, values: NDArray[Any], shape: Sequence[int] | None = None) -> None:
        """Add numbers of any shape, in the smallest type that holds them exactly."""
        array = smallest(np.asarray(values))
        entry = {"kind": "number", "dtype": array.dtype.str[1:], "length": array.size}
        self._add(name, array.tobytes(), entry | ({"shape": list(shape)} if shape is not None else {}))

    def centimeters(self, name: str, meters: NDArray[Any]) -> None:
        """Add lengths of any shape in whole centimeters, which compress well."""
        whole = np.round(np.asarray(meters, np.float64) * 100.0).astype(np.int64)
        array = smallest(whole)
        entry = {"kind": "number", "dtype": array.dtype.str[1:], "length": array.size, "scale": 0.01}
        self._add(name, array.tobytes(), entry | {"shape": list(whole.shape)})

    def words(self, name: str, values: Sequence[Any]) -> None:
        """Add values of which many are equal: None, texts, or lists and objects of plain values."""
        places: dict[Any, int] = {}
        codes = np.fromiter((places.setdefault(_key(value), len(places)) for value in values), np.uint32, len(values))
        distinct: list[Any] = [None] * len(places)
        for row in np.unique(codes, return_index=True)[1].tolist():
            distinct[codes[row]] = values[row]
        self._add_words(name, codes, distinct)

    def texts(self, name: str, column: pa.ChunkedArray) -> None:
        """Add a column of text: as words if few values are distinct, else value by value."""
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        distinct = encoded.dictionary
        if len(distinct) <= max(16, _MOST_WORDS_SHARE * len(column)) or column.null_count:
            self._add_words(name, encoded.indices.to_numpy().astype(np.uint32), distinct.to_pylist())
            return
        whole = pa.concat_arrays([column.combine_chunks()])  # without the rest of a table that it is a slice of
        _, places, text = whole.buffers()
        offsets = np.frombuffer(places, np.int32)[whole.offset : whole.offset + len(whole) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        data = (offsets - first).astype("<u4").tobytes()
        start = self._size + len(data)
        block = data + text.to_pybytes()[first:last]
        self._add(name, block, {"kind": "text", "text_offset": start, "bytes": last - first})

    def encode(self, level: int) -> bytes:
        """Return the file; equal tables give equal bytes."""
        header = json.dumps(self._header, separators=(",", ":"), allow_nan=False).encode()
        start = MAGIC + struct.pack("<I", len(header)) + header
        padding = b"\0" * (-len(start) % 8)
        return gzip.compress(start + padding + b"".join(self._parts), level, mtime=0)

    def _add_words(self, name: str, codes: NDArray[np.uint32], distinct: Sequence[Any]) -> None:
        size = len(distinct)
        array = codes.astype("<u1" if size <= 1 << 8 else "<u2" if size <= 1 << 16 else "<u4")
        self._add(name, array.tobytes(), {"kind": "word", "dtype": array.dtype.str[1:], "values": list(distinct)})

    def _add(self, name: str, data: bytes, entry: Mapping[str, Any]) -> None:
        self._header["columns"].append({"name": name, "offset": self._size, **entry})
        padded = data + b"\0" * (-len(data) % 8)
        self._parts.append(padded)
        self._size += len(padded)


def _key(value: Any) -> Any:
    """Return a value as a key; keys of texts, lists and objects differ."""
    if isinstance(value, dict):
        return ("object", *value.items())
    return ("list", *value) if isinstance(value, list | tuple) else value


def smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the smallest type of the format that holds them exactly."""
    if values.dtype == np.bool_:
        return values.astype("|u1")
    if values.size == 0:
        return values.astype("|u1")
    low, high = np.min(values), np.max(values)  # NaN if any is NaN
    if low == low and (values.dtype.kind in "iu" or bool(np.isfinite(low) and np.isfinite(high))):
        if values.dtype.kind in "iu" or bool((values == np.rint(values)).all()):
            for name in _WHOLE:
                bounds = np.iinfo(name)
                if bounds.min <= low and high <= bounds.max:
                    return values.astype(f"<{name}")
    wide = values.astype("<f8")
    narrow = wide.astype("<f4")
    return narrow if np.array_equal(narrow.astype("<f8"), wide, equal_nan=True) else wide
