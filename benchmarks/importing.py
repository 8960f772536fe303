"""Import of WOMD files: each stage of a record on one core, and whole files, which the benchmark creates."""

from __future__ import annotations

import struct
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.runner import Measurements, Sizes
from roadworthy.scenario.importers import Record, import_scenarios
from roadworthy.scenario.importers.tfrecord import masked_crc32c, records
from roadworthy.scenario.importers.womd import read_scenario
from roadworthy.scenario.importers.womd_schema import SCENARIO_READER
from roadworthy.scenario.pack import encode_map, encode_scenario
from roadworthy.scenario.processes import available_cores

STEPS = 91
POINT_SPACING_M = 0.5
POINTS_PER_FEATURE = 32
STREET_SPACING_M = 15.0
LANE, EDGE = 3, 5  # fields of a MapFeature

# A point and a state in wire format: one byte with field and wire type before every number.
POINT = np.dtype([("x_key", "u1"), ("x", "<f8"), ("y_key", "u1"), ("y", "<f8"), ("z_key", "u1"), ("z", "<f8")])
STATE = np.dtype(
    [(name, kind) for field in range(2, 5) for name, kind in ((f"key{field}", "u1"), (f"value{field}", "<f8"))]
    + [(name, kind) for field in range(5, 11) for name, kind in ((f"key{field}", "u1"), (f"value{field}", "<f4"))]
    + [("key11", "u1"), ("value11", "u1")]
)


def womd_import(found: Measurements, sizes: Sizes) -> None:
    """Time the stages of every record, then the whole file with one process and with all."""
    with tempfile.TemporaryDirectory() as folder:
        path, pack = Path(folder) / "made.tfrecord", Path(folder) / "made.pack"
        with open(path, "wb") as file:
            for number in range(sizes["scenarios"]):
                file.write(_frame(_scenario(number, sizes)))
        megabytes = path.stat().st_size / 1e6
        _stages(Measurements(), path)  # the first time compiles
        _stages(found, path)
        for processes in sorted({1, available_cores()}):
            stage = f"file, on {processes} core{'s' if processes > 1 else ''}"
            with found.stage(stage):
                import_scenarios([path], pack, format="womd", processes=processes)
            seconds = found.seconds[stage][-1]
            found.figures[f"{stage}: scenarios/s"] = round(sizes["scenarios"] / seconds, 1)
            found.figures[f"{stage}: MB/s"] = round(megabytes / seconds, 1)
        found.figures["MB per scenario"] = round(megabytes / sizes["scenarios"], 3)


def _stages(found: Measurements, path: Path) -> None:
    with found.stage("framing, file"):
        items = list(records(path))
    for record in items:
        assert isinstance(record, Record)
        with found.stage("wire format"):
            SCENARIO_READER.read(record.data)
        with found.stage("scenario, wire included"):
            scenario = read_scenario(record.data, Counter())
        with found.stage("map block"):
            encode_map(scenario.map)
        with found.stage("scenario block"):
            encode_scenario(scenario)


def _scenario(number: int, sizes: Sizes) -> bytes:
    """Return streets from west to east, each with a chain of lanes and of edges, and cars that drive along them."""
    streets, chain = sizes["streets"], sizes["lanes per street"]
    times = np.arange(STEPS) * 0.1
    parts = [_field(5, f"{number:016x}".encode()), _number(6, 0), _number(10, 10)]
    parts += [b"\x09" + struct.pack("<d", time) for time in times]
    for track in range(sizes["tracks"]):
        parts.append(_field(2, _number(1, track) + _number(2, 1) + _states(times, track % streets, track * 7.0)))
    light = _number(1, 0) + _number(2, 4) + _field(3, _points([[0.0, 0.0, 0.0]]))
    parts += [_field(7, _field(1, light) * 8)] * STEPS
    for street in range(streets):
        for link in range(chain):
            x = (np.arange(POINTS_PER_FEATURE + 1) + link * POINTS_PER_FEATURE) * POINT_SPACING_M + number
            line = np.column_stack([x, np.full(len(x), STREET_SPACING_M * street), np.zeros(len(x))])
            lane_id = street * chain + link
            after = _field(10, _varint(lane_id + 1)) if link + 1 < chain else b""
            lane = struct.pack("<Bd", 9, 25.0) + _number(2, 2) + _lines(8, line) + after
            edge = _number(1, 1) + _lines(2, line + np.array([0.0, -5.0, 0.0]))
            parts.append(_field(8, _number(1, lane_id) + _field(LANE, lane)))
            parts.append(_field(8, _number(1, streets * chain + lane_id) + _field(EDGE, edge)))
    return b"".join(parts)


def _states(times: np.ndarray, street: int, x0: float) -> bytes:
    states = np.zeros(len(times), STATE)
    values = [x0 + 8.0 * times, street * STREET_SPACING_M, 0.8, 4.5, 1.9, 1.6, 0.0, 8.0, 0.0, 1]
    for field, value in enumerate(values, start=2):
        states[f"key{field}"] = field << 3 | (1 if field < 5 else 5 if field < 11 else 0)
        states[f"value{field}"] = value
    return b"".join(_field(3, states[k : k + 1].tobytes()) for k in range(len(states)))


def _lines(number: int, line: np.ndarray) -> bytes:
    points = _points(line)
    return b"".join(_field(number, points[at : at + POINT.itemsize]) for at in range(0, len(points), POINT.itemsize))


def _points(line: np.ndarray | list[list[float]]) -> bytes:
    line = np.asarray(line)
    points = np.zeros(len(line), POINT)
    for field, axis in enumerate("xyz"):
        points[f"{axis}_key"] = (field + 1) << 3 | 1
        points[axis] = line[:, field]
    return points.tobytes()


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))
