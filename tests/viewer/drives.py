"""Real episodes for tests of playback: two policies in the same generated town, evaluated once per session."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import roadworthy as rw
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.sections import read_sections
from roadworthy.record import Run
from roadworthy.record.run import trace_path
from roadworthy.record.traces import Trace, write_trace

SECTION = """
[eval.town]
type = "multi_scenario"
clean = true
scenarios = "generate:town?count=2&seed=900001"
episode.trials = 2
episode.trial_steps = 60
worlds = 2
env.mode = "open"
env.control.rows = 4
env.control.ego_share = 1.0
env.open.agents = 4
env.open.traffic = 4
env.open.goals = 3
env.open.goal_spacing_m = 20.0
env.infraction.collision = "ignore"
env.infraction.off_road = "ignore"
env.infraction.red_light = "ignore"
"""
_MADE: dict[Path, tuple[Run, Run]] = {}
_RECORDED: dict[Path, Run] = {}


def two_policies(base: Path) -> tuple[Run, Run]:
    """Return the runs of the scripted driver and of doing nothing, with the same episodes."""
    if base not in _MADE:
        folder = base / "drives"
        folder.mkdir()
        (folder / "suite.toml").write_text(SECTION)
        found = []
        for policy in ("expert:drive", "zero"):
            (outcome,) = evaluate_sections(read_sections(folder / "suite.toml"), policy, folder / "runs")
            assert outcome.run is not None
            found.append(outcome.run)
        _MADE[base] = found[0], found[1]
    return _MADE[base]


def recorded_policy(base: Path) -> Run:
    """Return the run of a network whose worst episode is recorded with what the network did."""
    if base not in _RECORDED:
        folder = base / "recorded"
        folder.mkdir()
        (folder / "suite.toml").write_text(f'{SECTION}references = []\nenv.goal.at_goal = "leave"\n')
        runs = rw.evaluate(folder / "suite.toml", policy="baseline:town", out=folder / "runs", record="policy:1")
        assert not runs.errors
        _RECORDED[base] = runs["town"]
    return _RECORDED[base]


def altered(run: Run, name: str, change: Callable[[Trace], Trace]) -> Run:
    """Return a copy of a run beside it in which the motion of the first episode is another; `name` has 8 hex digits."""
    folder = run.folder.with_name(f"{run.folder.name.rpartition('-')[0]}-{name}")
    shutil.copytree(run.folder, folder)
    episode = run.ledger["episode_id"][0].as_py()
    write_trace(folder / trace_path(episode), change(run.trace(episode)))
    return Run(folder)


def moved(trace: Trace, frame: int, agent: int, meters: float) -> Trace:
    """Return a trace in which an agent is aside from a frame on."""
    x = trace.x.copy()
    x[frame:, agent] += np.float32(meters)
    return replace(trace, x=x)
