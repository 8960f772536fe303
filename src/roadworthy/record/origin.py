"""Provenance of a run: time, machine, versions, and the scenarios that it uses."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import shutil
import socket
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from roadworthy.record.files import naming, sync
from roadworthy.revision import revision

_PACKAGES = ("roadworthy", "numpy", "numba", "torch", "pyarrow", "scipy")


def now() -> str:
    """Return the current time as records hold it."""
    return _text(datetime.now(UTC))


def when(path: Path) -> str:
    """Return the time at which a file was last written."""
    return _text(datetime.fromtimestamp(path.stat().st_mtime, UTC))


def origin() -> dict[str, Any]:
    """Describe the code and the machine of this process."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "revision": revision(),
        "versions": {"python": sys.version.split()[0], **{name: _version(name) for name in _PACKAGES}},
    }


def hash_values(values: Any) -> str:
    """Return a hash of plain values that does not depend on the order of keys."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_table(table: pa.Table) -> str:
    """Return a hash of a table's columns and rows."""
    return hash_values([table.column_names, table.to_pydict()])


def copy_scenarios(source: str | Path, numbers: Sequence[int], target: Path) -> None:
    """Write scenarios of a pack to another pack, in this order, with their maps and the tables of the maps."""
    from roadworthy.scenario.pack import Pack, PackWriter
    from roadworthy.scenario.pack.layout import Index
    from roadworthy.scenario.pack.reader import map_file

    with Pack(source) as pack:
        if list(numbers) == list(range(len(pack))):
            _copy(Path(source), target)  # ten times as fast
            return
        buffer, header = map_file(pack.path)
        index = Index.decode(buffer, header)
        map_blocks = list(zip(index.map_offsets.tolist(), index.map_sizes.tolist(), strict=True))
        blocks = list(zip(index.scenario_offsets.tolist(), index.scenario_sizes.tolist(), strict=True))
        # Copy the encoded blocks: decoding and encoding them takes twice as long.
        with PackWriter(target) as writer:
            maps: dict[int, int] = {}
            for number in numbers:
                place = pack.map_number(number)
                if place not in maps:
                    pack.packed_tables(place)  # raises if the block is damaged
                    offset, size = map_blocks[place]
                    maps[place] = writer.add_encoded_map(buffer[offset : offset + size])
                pack.packed_scenario(number)
                offset, size = blocks[number]
                writer.add_encoded(buffer[offset : offset + size], maps[place])


def _copy(source: Path, target: Path) -> None:
    """Copy a file atomically."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with naming(target):
            shutil.copyfile(source, temporary)
            sync(temporary)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
