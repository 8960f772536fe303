"""Encode messages with msgpack, with NumPy arrays and Gymnasium spaces. Decoding never runs code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from roadworthy.errors import RoadworthyError, UsageError

try:
    import msgpack
except ImportError as error:
    raise UsageError(f"can't import msgpack ({error}); pip install 'roadworthy[remote]'") from error

PROTOCOL = 2
_ARRAY = 1  # msgpack extension type
_PLAIN_KINDS = "biufc"  # bool, int, uint, float, complex: kinds without pointers


class RemoteError(RoadworthyError):
    """The peer sent a message that can't be read, or reported an error."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as bytes."""
    packed: bytes = msgpack.packb(message, default=_pack, use_bin_type=True)
    return packed


def decode(data: bytes | str) -> dict[str, Any]:
    """Return the message in bytes."""
    if isinstance(data, str):
        raise RemoteError("the peer sent text, expected msgpack")
    try:
        message = msgpack.unpackb(data, ext_hook=_unpack, raw=False, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise RemoteError(f"the peer sent {len(data)} bytes that are not a message: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise RemoteError("the peer sent a message without `kind`")
    return message


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind not in _PLAIN_KINDS:
            raise UsageError(f"an array of {array.dtype} can't be sent; expected numbers or booleans")
        # Not ascontiguousarray, which turns a scalar into an array of shape (1,).
        head = msgpack.packb([array.dtype.str, list(array.shape)])
        return msgpack.ExtType(_ARRAY, head + array.tobytes())
    if isinstance(value, Mapping):
        return dict(value)
    raise UsageError(
        f"a {type(value).__name__} can't be sent; expected numbers, text, arrays, lists and tables of them"
    )


def _unpack(code: int, data: bytes) -> Any:
    if code != _ARRAY:
        return msgpack.ExtType(code, data)
    unpacker = msgpack.Unpacker(raw=False)
    unpacker.feed(data)
    name, shape = unpacker.unpack()
    dtype = np.dtype(name)
    if dtype.kind not in _PLAIN_KINDS:
        raise ValueError(f"an array of {dtype}")
    # Copied, because an array over a buffer is read-only.
    return np.frombuffer(data, dtype, offset=unpacker.tell()).reshape(shape).copy()


def describe_space(space: Space[Any]) -> dict[str, Any]:
    """Return a space as part of a message."""
    if isinstance(space, spaces.Box):
        return {"space": "box", "low": space.low, "high": space.high}
    if isinstance(space, spaces.Discrete):
        return {"space": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"space": "multi_discrete", "nvec": space.nvec, "start": space.start}
    if isinstance(space, spaces.MultiBinary):
        return {"space": "multi_binary", "shape": list(space.shape)}
    if isinstance(space, spaces.Dict):
        return {"space": "dict", "parts": {name: describe_space(part) for name, part in space.spaces.items()}}
    if isinstance(space, spaces.Tuple):
        return {"space": "tuple", "parts": [describe_space(part) for part in space.spaces]}
    raise UsageError(f"can't describe a {type(space).__name__} space to a policy server; wrap the environment")


def make_space(described: Mapping[str, Any]) -> Space[Any]:
    """Return the space that a message describes."""
    kind = described["space"]
    if kind == "box":
        return spaces.Box(described["low"], described["high"], dtype=described["low"].dtype.type)
    if kind == "discrete":
        return spaces.Discrete(described["n"], start=described["start"])
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(described["nvec"], start=described["start"])
    if kind == "multi_binary":
        return spaces.MultiBinary(described["shape"])
    if kind == "dict":
        return spaces.Dict({name: make_space(part) for name, part in described["parts"].items()})
    if kind == "tuple":
        return spaces.Tuple([make_space(part) for part in described["parts"]])
    raise RemoteError(f"the peer described a space of unknown kind {kind!r}; update Roadworthy")
