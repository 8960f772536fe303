"""Messages as bytes: msgpack, with arrays of NumPy and spaces of Gymnasium. Reading one never runs code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from roadworthy.errors import RoadworthyError, UsageError

try:
    import msgpack
except ImportError as error:
    raise UsageError(f"msgpack can't be imported ({error}); pip install 'roadworthy[remote]'") from error

PROTOCOL = 2
_ARRAY = 1  # the number of msgpack's extension
_PLAIN_KINDS = "biufc"  # bool, int, uint, float, complex: whatever has no pointers in it


class RemoteError(RoadworthyError):
    """The other side said something that can't be understood, or that it failed."""


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as bytes."""
    packed: bytes = msgpack.packb(message, default=_pack, use_bin_type=True)
    return packed


def decode(data: bytes | str) -> dict[str, Any]:
    """The message that bytes hold."""
    if isinstance(data, str):
        raise RemoteError("the other side sent text, expected msgpack")
    try:
        message = msgpack.unpackb(data, ext_hook=_unpack, raw=False, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise RemoteError(f"the other side sent {len(data)} bytes that are no message: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise RemoteError("the other side sent a message without `kind`")
    return message


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind not in _PLAIN_KINDS:
            raise UsageError(f"an array of {array.dtype} can't be sent; expected numbers or booleans")
        # Not ascontiguousarray, which turns a single number into an array of one.
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
    # A copy: what is read from a buffer can't be written to.
    return np.frombuffer(data, dtype, offset=unpacker.tell()).reshape(shape).copy()


def describe_space(space: Space[Any]) -> dict[str, Any]:
    """A space as a message can hold it."""
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
    raise UsageError(f"a space {type(space).__name__} can't be described to a policy elsewhere; wrap the environment")


def make_space(told: Mapping[str, Any]) -> Space[Any]:
    """The space that a message describes."""
    kind = told["space"]
    if kind == "box":
        return spaces.Box(told["low"], told["high"], dtype=told["low"].dtype.type)
    if kind == "discrete":
        return spaces.Discrete(told["n"], start=told["start"])
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(told["nvec"], start=told["start"])
    if kind == "multi_binary":
        return spaces.MultiBinary(told["shape"])
    if kind == "dict":
        return spaces.Dict({name: make_space(part) for name, part in told["parts"].items()})
    if kind == "tuple":
        return spaces.Tuple([make_space(part) for part in told["parts"]])
    raise RemoteError(f"the other side described a space {kind!r}, which is unknown; update Roadworthy")
