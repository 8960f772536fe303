"""Rollouts as messages of the challenge, encoded byte by byte from the description of protobuf's wire format."""

from __future__ import annotations

import struct

import numpy as np

from roadworthy.metrics.realism import Rollouts


def varint(value: int) -> bytes:
    value &= 2**64 - 1  # negative numbers take ten bytes
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*octets, value])


def chunk(number: int, content: bytes) -> bytes:
    """A field of bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def floats(number: int, values: np.ndarray, is_packed: bool) -> bytes:
    if is_packed:
        return chunk(number, struct.pack(f"<{len(values)}f", *values))
    return b"".join(varint(number << 3 | 5) + struct.pack("<f", value) for value in values)


def scenario_rollouts(name: str, rollouts: Rollouts, orders: list[list[int]], is_packed: bool = True) -> bytes:
    """Each rollout lists its agents in an order of its own."""
    scenes = b""
    for number, order in enumerate(orders):
        trajectories = b""
        for agent in order:
            motion = (rollouts.x, rollouts.y, rollouts.z, rollouts.heading)
            fields = [floats(2 + place, values[number, agent], is_packed) for place, values in enumerate(motion)]
            identity = varint(6 << 3) + varint(int(rollouts.agent_ids[agent]))
            trajectories += chunk(1, b"".join(fields) + identity)
        scenes += chunk(2, trajectories)
    return chunk(1, name.encode()) + scenes


def submission(*parts: bytes) -> bytes:
    """With fields that nobody needs, before and after."""
    others = varint(2 << 3) + varint(1) + chunk(3, b"somebody@example.com") + chunk(5, b"A. Author")
    return others + b"".join(chunk(1, part) for part in parts) + varint(9 << 3) + varint(1)
