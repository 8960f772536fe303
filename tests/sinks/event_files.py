"""Read the files that the clients of TensorBoard and W&B write."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_BLOCK = 32768
_HEAD = struct.Struct("<IHB")  # checksum, length, kind: the log format of LevelDB


def wandb_history(folder: Path) -> list[dict[str, Any]]:
    """What was logged to the one offline run below a folder, call by call."""
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    history = []
    for data in _records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            history.append(_tree(record.history.item))
    return history


@dataclass
class WandbRun:
    """An offline run, as its file has it."""

    id: str = ""
    name: str = ""
    job_type: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)


def wandb_runs(folder: Path) -> list[WandbRun]:
    """The offline runs below a folder, in the order in which they were begun."""
    from wandb.proto import wandb_internal_pb2

    runs = []
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb"), key=lambda file: file.stat().st_mtime_ns):
        found = WandbRun()
        for data in _records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "history":
                found.history.append(_tree(record.history.item))
            elif kind == "run":
                found.id, found.name = record.run.run_id, record.run.display_name
                found.job_type = record.run.job_type
                found.config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        runs.append(found)
    return runs


def _tree(items: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for item in items:
        *above, last = item.nested_key
        table = tree
        for key in above:
            table = table.setdefault(key, {})
        table[last] = json.loads(item.value_json)
    return tree


def _records(data: bytes) -> Iterator[bytes]:
    place, parts = 7, b""  # behind the file's own head
    while place + _HEAD.size <= len(data):
        room = _BLOCK - place % _BLOCK
        if room < _HEAD.size:
            place += room
            continue
        _, length, kind = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        parts += data[place : place + length]
        place += length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def tensorboard_events(folder: Path) -> Any:
    """An accumulator of all events in a folder, read as TensorBoard itself does."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"images": 0, "scalars": 0, "tensors": 0}).Reload()
