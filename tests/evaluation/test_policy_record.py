"""What a policy observed, expected and chose is recorded for chosen episodes, and is what it did."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roadworthy as rw
from roadworthy.errors import UsageError
from roadworthy.evaluation.policy_record import parse_record, record_policy
from roadworthy.evaluation.recorded import open_run
from roadworthy.record import Run
from roadworthy.render.resimulate import Resimulation
from roadworthy.scenario.pack import Pack
from tests.viewer.drives import SECTION, recorded_policy

MORE = 'references = []\nenv.goal.at_goal = "leave"\n'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded_policy(tmp_path_factory.getbasetemp())


def recorded(run: Run) -> tuple[str, dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the episode, the header and the columns of the only record, decoded without the code that wrote it."""
    (artifact,) = [artifact for artifact in run.artifacts if artifact.name == "policy"]
    assert artifact.error is None
    block = gzip.decompress((run.folder / str(artifact.path)).read_bytes())
    (length,) = struct.unpack_from("<I", block, 8)
    header = json.loads(block[12 : 12 + length])
    start = (12 + length + 7) // 8 * 8
    columns = {}
    for entry in header["columns"]:
        array = np.frombuffer(block, f"<{entry['dtype']}", entry["length"], start + entry["offset"])
        columns[entry["name"]] = array.reshape(entry["shape"])
    return str(artifact.episode_id), header, columns


@pytest.mark.row("UI-2")
def test_the_observations_are_those_of_the_simulator(run: Run) -> None:
    id, header, columns = recorded(run)
    assert header["differs_from"] is None
    trace = run.trace(id)
    number = run.ledger["episode_id"].to_pylist().index(id)
    scenario, seed = (run.ledger[name][number].as_py() for name in ("scenario", "seed"))
    simulation = Resimulation(Pack(run.pack), open_run(run).env)
    assert header["layout"]["size"] == columns["observation"].shape[2]
    last = set((trace.trial_starts[1:] - 1).tolist())
    checked = 0
    for frame, seen in enumerate(simulation.observations(trace, scenario, seed)):
        for place, agent in enumerate(header["agents"]):
            if frame in last or not trace.active[frame, agent]:
                assert np.isnan(columns["value"][frame, place])
            elif seen.has_seen[agent]:
                layout = simulation.layout
                blocks = [block for block in header["layout"]["blocks"] if block["name"] in ("ego", "partners")]
                for block in blocks:
                    own = layout[block["name"]].of(seen.observations[agent])
                    stored = columns["observation"][frame, place, block["start"] : block["stop"]].reshape(len(own), -1)
                    shared = min(own.shape[1], stored.shape[1])
                    np.testing.assert_allclose(stored[:, :shared], own[:, :shared], atol=2e-4)
                checked += 1
    assert checked > 100


@pytest.mark.row("UI-2")
def test_probabilities_sum_to_one_and_rewards_to_the_return(run: Run) -> None:
    id, header, columns = recorded(run)
    trace = run.trace(id)
    known = ~np.isnan(columns["value"])
    first = header["choices"][0]
    for part in (columns["probabilities"][..., :first], columns["probabilities"][..., first:]):
        np.testing.assert_allclose(part[known].sum(-1), 1.0, atol=2e-3)
    log = np.log(np.maximum(columns["probabilities"], 1e-12))
    entropy = -(columns["probabilities"] * log).sum(-1)
    np.testing.assert_allclose(columns["entropy"][known], entropy[known], atol=2e-2)
    agents = run.trials(["episode_id", "agent", "trial", "figures.return"]).to_pylist()
    returns = {(row["agent"], row["trial"]): row["figures.return"] for row in agents if row["episode_id"] == id}
    assert returns
    for (agent, trial), expected in returns.items():
        frames = trace.trial(trial)
        found = np.nansum(columns["reward"][frames, header["agents"].index(agent)])
        assert found == pytest.approx(expected, abs=1e-3)


def test_what_cannot_be_recorded_is_refused_before_anything_is_written(tmp_path: Path, run: Run) -> None:
    assert [parse_record(text) for text in ("policy", "policy:12")] == [3, 12]
    (tmp_path / "suite.toml").write_text(SECTION + MORE)
    cases = [("polic", "baseline:town", "--record 'polic' is unknown"), ("policy:0", "baseline:town", "is unknown")]
    for record, policy, words in (*cases, ("policy", "zero", "not a checkpoint")):
        with pytest.raises(UsageError, match=words):
            rw.evaluate(tmp_path / "suite.toml", policy=policy, out=tmp_path / "runs", record=record)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(UsageError, match="no episode 'nobody'"):
        record_policy(run, ["nobody"])
