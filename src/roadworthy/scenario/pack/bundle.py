"""Blocks of bytes that hold arrays and a few plain values, and are read as views.

    uint32      length of the directory in bytes
    directory   JSON: {"arrays": [[name, dtype, shape, offset], ...], "values": {...}}
    zeros       up to the next multiple of 64, where the data area starts
    arrays      each at a multiple of 64 (its offset counts from the start of the data area), zeros between them

The size of a block is a multiple of 64. A reader picks the arrays that it knows by name and ignores others.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError, ScenarioError

ALIGNMENT = 64
_DIRECTORY_LENGTH = struct.Struct("<I")
_LARGEST_EXTENT = 2**48
Buffer = bytes | mmap | memoryview


@dataclass(frozen=True)
class ArraySpec:
    """The allowed little-endian dtypes and the shape of an array.

    A length is a number, or a word that stands for the same number throughout a block.
    """

    dtypes: str  # such as "<f4", or "<u2 <i4" if both are allowed
    shape: tuple[int | str, ...]

    @cached_property
    def allowed(self) -> dict[str, np.dtype[Any]]:
        """Return the dtypes by name."""
        return {name: np.dtype(name) for name in self.dtypes.split()}

    def fault(self, array: NDArray[Any], lengths: dict[str, int]) -> str | None:
        """Return what is wrong with an array, if anything. Words are entered into lengths at their first use."""
        if array.dtype.newbyteorder("<").str not in self.allowed:
            return f"is {array.dtype}, expected {' or '.join(map(str, self.allowed.values()))}"
        return self.shape_fault(array.shape, lengths)

    def shape_fault(self, shape: Sequence[int], lengths: dict[str, int]) -> str | None:
        """Return what is wrong with the shape of an array, if anything."""
        if len(shape) != len(self.shape):
            return f"has shape {tuple(shape)}, expected {len(self.shape)} dimensions"
        for length, wanted in zip(shape, self.shape, strict=True):
            known = wanted if type(wanted) is int else lengths.setdefault(wanted, length)  # type: ignore[arg-type]
            if length != known:
                expected = tuple(lengths.get(w, w) if isinstance(w, str) else w for w in self.shape)
                return f"has shape {tuple(shape)}, expected {expected}"
        return None


def aligned(size: int) -> int:
    """Return the size rounded up to a multiple of 64."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def encode_bundle(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> bytes:
    """Encode a block. Equal arrays and values give equal bytes."""
    entries, pieces, offset = [], [], 0
    for name, array in arrays.items():
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        entries.append([name, little.dtype.str, list(little.shape), offset])
        pieces.append((offset, little.tobytes()))
        offset = aligned(offset + little.nbytes)
    directory = json.dumps({"arrays": entries, "values": dict(values)}, separators=(",", ":"), allow_nan=False).encode()
    data = aligned(_DIRECTORY_LENGTH.size + len(directory))
    block = bytearray(data + offset)
    _DIRECTORY_LENGTH.pack_into(block, 0, len(directory))
    block[_DIRECTORY_LENGTH.size : _DIRECTORY_LENGTH.size + len(directory)] = directory
    for start, piece in pieces:
        block[data + start : data + start + len(piece)] = piece
    return bytes(block)


def require_fit(arrays: Mapping[str, NDArray[Any]], specs: Mapping[str, ArraySpec], owner: str) -> None:
    """Raise ScenarioError unless every array has the dtype and shape that readers expect."""
    lengths: dict[str, int] = {}
    for name, array in arrays.items():
        fault = specs[name].fault(array, lengths)
        if fault:
            raise ScenarioError(f"{owner}: {name} {fault}")


def first_array(buffer: Buffer, offset: int, size: int, dtype: str) -> NDArray[Any]:
    """Return the data area of the block buffer[offset:offset + size] from its first array on."""
    length = _DIRECTORY_LENGTH.unpack_from(buffer, offset)[0] if size >= _DIRECTORY_LENGTH.size else size
    data = aligned(_DIRECTORY_LENGTH.size + length)
    if data > size:
        raise PackError(f"its directory of {length} bytes is larger than its block of {size} bytes")
    return np.frombuffer(buffer, dtype, (size - data) // np.dtype(dtype).itemsize, offset + data)


class Bundle:
    """A block that is read. Its content is not trusted: inconsistent data raise PackError."""

    def __init__(self, buffer: Buffer, offset: int, size: int) -> None:
        """Open the block buffer[offset:offset + size], which must lie within the buffer."""
        if size < _DIRECTORY_LENGTH.size:
            raise PackError(f"its block of {size} bytes is too small")
        (length,) = _DIRECTORY_LENGTH.unpack_from(buffer, offset)
        start = offset + _DIRECTORY_LENGTH.size
        if _DIRECTORY_LENGTH.size + length > size:
            raise PackError(f"its directory of {length} bytes is larger than its block")
        try:
            directory = json.loads(bytes(buffer[start : start + length]))
            self.values: dict[str, Any] = dict(directory["values"])
            self._entries = {name: (dtype, shape, at) for name, dtype, shape, at in directory["arrays"]}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise PackError("its directory is not readable") from None
        data = aligned(_DIRECTORY_LENGTH.size + length)
        self._buffer, self._data, self._room = buffer, offset + data, size - data

    def array(self, name: str, spec: ArraySpec, lengths: dict[str, int]) -> NDArray[Any]:
        """Return a read-only view of an array."""
        entry = self._entries.get(name)
        if entry is None:
            raise PackError(f"array {name!r} is missing")
        dtype_text, shape, offset = entry
        dtype = spec.allowed.get(dtype_text) if type(dtype_text) is str else None
        if dtype is None:
            raise PackError(f"array {name!r} is {dtype_text!r}, expected {' or '.join(spec.allowed)}")
        if type(shape) is not list or type(offset) is not int or offset < 0:
            raise PackError(f"array {name!r} has no readable shape and offset")
        wanted = spec.shape
        fits = len(shape) == len(wanted)
        # An array without elements may have other lengths, but only such that NumPy can multiply.
        size = extent = dtype.itemsize
        for place, length in enumerate(shape):
            if type(length) is not int or length < 0:
                raise PackError(f"array {name!r} has no readable shape and offset")
            size *= length
            extent *= length or 1
            if fits:
                word = wanted[place]
                fits = length == (word if type(word) is int else lengths.setdefault(word, length))  # type: ignore[arg-type]
        if extent > _LARGEST_EXTENT or offset % ALIGNMENT or offset + size > self._room:
            raise PackError(f"array {name!r} doesn't fit into its block")
        if not fits:
            raise PackError(f"array {name!r} {spec.shape_fault(shape, lengths)}")
        return np.ndarray(shape, dtype, self._buffer, self._data + offset)

    def arrays(self, specs: Mapping[str, ArraySpec], optional: Sequence[str] = ()) -> dict[str, Any]:
        """Return views of all arrays in specs, without the optional ones that are missing or empty."""
        lengths: dict[str, int] = {}
        present = (name for name in specs if name not in optional or self._holds(name))
        return {name: self.array(name, specs[name], lengths) for name in present}

    def _holds(self, name: str) -> bool:
        """Return whether an array is stored and not empty."""
        shape = self._entries[name][1] if name in self._entries else [0]
        return type(shape) is not list or 0 not in shape

    def value(self, name: str, kind: type) -> Any:
        """Return a plain value and check its type."""
        value = self.values.get(name)
        if type(value) is not kind:
            raise PackError(f"value {name!r} is {value!r}, expected {kind.__name__}")
        return value
