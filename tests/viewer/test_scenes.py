"""What playback gets of a run's pack and traces is what they hold."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from roadworthy.record import Run, RunWriter
from roadworthy.scenario.pack import PackWriter
from roadworthy.viewer.site import NotThere, Site
from tests.record.made_up import result
from tests.scenario.example import example_scenario


def columns_of(site: Site, path: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Decode numbers of a table without the code that wrote it: see the docstring of viewer/columns.py."""
    block = gzip.decompress(bytes(site.get(path).body))  # type: ignore[arg-type]
    (length,) = struct.unpack_from("<I", block, 8)
    header = json.loads(block[12 : 12 + length])
    start = (12 + length + 7) // 8 * 8
    found = {}
    for entry in header["columns"]:
        array = np.frombuffer(block, f"<{entry['dtype']}", entry["length"], start + entry["offset"])
        found[entry["name"]] = (array * entry.get("scale", 1)).reshape(entry.get("shape", -1))
    return header, found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("runs")
    with PackWriter(root / "two.pack") as writer:
        for name in ("town-0", "town-1"):
            writer.add(example_scenario(name))
    names = pa.table(
        {"episode_id": ["town-0-r0", "town-1-r0"], "scenario": [0, 1], "scenario_id": ["town-0", "town-1"]}
    )
    header = {"config": {}, "checkpoint": None}
    with RunWriter.start(root, "town", "best", header, names, pack=root / "two.pack", scenarios=[0, 1]) as writer:
        for name in names["episode_id"].to_pylist():
            writer.append(result(name))
    return Run(writer.folder)


@pytest.mark.row("UI-2")
def test_a_scenario_has_its_lights_and_its_recording(run: Run) -> None:
    site = Site([run.folder])
    wanted = example_scenario("town-1")
    header, found = columns_of(site, f"data/run/{run.header['run_id']}/scenario/1.cols")
    assert header["scenario_id"] == "town-1"
    assert (header["steps"], header["sdc"], header["current_step"]) == (wanted.steps, wanted.sdc, wanted.current_step)
    assert header["dt"] == pytest.approx(wanted.dt)
    assert np.array_equal(found["light_states"], wanted.light_states)
    assert np.array_equal(found["valid"], wanted.valid)
    assert np.abs(found["positions"] - wanted.positions[:, :, :2]).max() <= 0.005 + 1e-6
    assert np.abs(found["light_stops"] - wanted.light_stops[:, :2]).max(initial=0.0) <= 0.005 + 1e-6
    assert np.array_equal(found["headings"], wanted.headings)


@pytest.mark.row("UI-2")
def test_a_map_has_its_features(run: Run) -> None:
    site = Site([run.folder])
    key = run.header["run_id"]
    number = columns_of(site, f"data/run/{key}/scenario/0.cols")[0]["map"]
    header, found = columns_of(site, f"data/run/{key}/map/{number}.cols")
    wanted = example_scenario("town-0").map
    assert header["rows"] == wanted.feature_count
    assert header["kind_names"][0] == "lane"
    assert np.array_equal(found["kinds"], wanted.kinds)
    assert np.array_equal(found["starts"], wanted.starts)
    assert np.abs(found["points"] - wanted.points[:, :2]).max() <= 0.005 + 1e-6
    with pytest.raises(NotThere):
        site.get(f"data/run/{key}/map/{header['map'] + 99}.cols")


@pytest.mark.row("UI-2")
def test_a_trace_is_the_file_of_the_record(run: Run) -> None:
    site = Site([run.folder])
    content = site.get(f"data/run/{run.header['run_id']}/trace/1.trace")
    assert isinstance(content.body, Path)
    assert content.body == run.folder / "traces" / "town-1-r0.trace"
    assert f"data/run/{run.header['run_id']}/trace/1.trace" in set(site.paths())
    with pytest.raises(NotThere):
        site.get(f"data/run/{run.header['run_id']}/trace/2.trace")
