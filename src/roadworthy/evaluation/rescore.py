"""Re-score a run: compute every figure again from its traces, by the simulator's rules, without the policy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.recorded import RecordedRun
from roadworthy.evaluation.runners.driving.capture import EXTRA, MOTION
from roadworthy.evaluation.runners.driving.rows import are_rows_equal, ego_rows, mean_figures, track_id_of
from roadworthy.metrics.trace_figures import with_trace_figures
from roadworthy.record import AgentRow, EpisodeResult, Run, RunWriter, Trace, TrialRow
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import AGENT_COUNT, COS, FAILED_SPAWNS, HEADING, IS_PRESENT, SIN

_VALUE_KEYS = ("value", "n", "per", "unit", "version")


@dataclass(frozen=True)
class FigureChange:
    """A figure with another value or another version."""

    name: str
    recorded: Mapping[str, Any] | None
    recomputed: Mapping[str, Any] | None

    @property
    def is_new(self) -> bool:
        """Return whether the run has no such figure: it was recorded before the figure existed."""
        return self.recorded is None

    @property
    def is_other_version(self) -> bool:
        """Whether the metric's definition changed since the run."""
        versions = [figure and figure["version"] for figure in (self.recorded, self.recomputed)]
        return None not in versions and versions[0] != versions[1]


@dataclass(frozen=True)
class Rescored:
    """The result of re-scoring a run."""

    episodes: int
    # With a trace.
    untraced: tuple[str, ...]
    # Completed episodes without a trace: their rows were taken as they are.
    differing: tuple[str, ...]
    # Episodes with a row that differs from the recorded one.
    moved: tuple[str, ...]
    # Episodes whose motion this machine's simulator does not repeat bit for bit; the motion of the trace was judged.
    changes: tuple[FigureChange, ...]
    metrics: Mapping[str, Any]

    @property
    def agrees(self) -> bool:
        """Return whether every row and every figure equals the recorded one; new figures do not count."""
        return not self.differing and all(change.is_new for change in self.changes)


def rescore(recorded: RecordedRun, progress: Callable[[int, int], None] = lambda done, total: None) -> Rescored:
    """Judge every traced episode of a run again, and compare rows and figures with the recorded ones."""
    run = recorded.run
    recorded.require_trusted_code()
    judge = Judge(recorded)
    header = {key: run.header.get(key) for key in ("config", "checkpoint")}
    untraced, differing, moved, count = [], [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        writer = RunWriter.start(folder, recorded.name, run.header["policy"], header, run.clustered_ledger())
        with writer:
            for done, before in enumerate(run.results(), 1):
                name, after = before.episode.episode_id, before
                if before.episode.status == "completed" and "trace" not in before.episode.artifacts:
                    untraced.append(name)
                elif before.episode.status == "completed":
                    after, is_moved = judge.result(recorded.ledger[name], run.trace(name), before)
                    count += 1
                    moved += [name] if is_moved else []
                    differing += [] if are_rows_equal(before, after) else [name]
                writer.append(after)
                progress(done, len(recorded.ledger))
            writer.seal(lambda rows: recorded.evaluator.metrics(rows, run))
        metrics = Run(writer.folder).metrics or {}
    changes = tuple(_changes(run.metrics or {}, metrics)) if run.metrics else ()
    return Rescored(count, tuple(untraced), tuple(differing), tuple(moved), changes, metrics)


class Judge:
    """One world of a run, in which traced motion replaces that of the simulator before it is judged."""

    def __init__(self, recorded: RecordedRun) -> None:
        config: SimConfig = recorded.env
        self._trace_figures = recorded.evaluator.all_trace_figures(recorded.config)
        self._names = DriveEnv(recorded.run.pack, 1, config, sampling=False).figure_names
        unseen = replace(config, observe=replace(config.observe, final=False))
        self._env = DriveEnv(recorded.run.pack, 1, unseen, sampling=False, threads=1)
        self._env.reset()

    def result(self, episode: EpisodeSpec, trace: Trace, before: EpisodeResult) -> tuple[EpisodeResult, bool]:
        """Return the result of an episode with rows from its trace, and whether the simulator moves differently."""
        env = self._env
        env.assign(0, episode.scenario, episode.seed, now=True)
        env.ended_episodes()  # drops those of the previous call
        agents: list[AgentRow] = []
        trials: list[TrialRow] = []
        is_moved = int(env.clocks[0, AGENT_COUNT]) != trace.agent_count

        def set_motion() -> None:
            nonlocal is_moved
            is_moved |= self._put(trace, frame)

        for number in range(trace.trial_count):
            frames = trace.trial(number)
            is_moved |= self._put(trace, frames.start)
            for frame in range(frames.start + 1, frames.stop):
                actions = np.zeros((env.row_count, 2), np.float32)
                driven = min(env.row_count, trace.agent_count)
                actions[:driven] = trace.actions[frame, :driven]
                env.step_with_motion(actions, set_motion, observe=False)
                ended = env.ended_episodes()
                for k in np.flatnonzero(ended.is_ego):
                    agent = int(ended.rows[k])
                    attempt = sum(row.agent == agent for row in agents)
                    track_id = track_id_of(env.pack[episode.scenario], int(trace.sources[agent]))
                    own, rows = ego_rows(
                        episode.episode_id, agent, attempt, self._names, ended.figures[k], ended.trials[k], track_id
                    )
                    agents.append(own)
                    trials += rows
        agents.sort(key=lambda row: (row.agent, row.attempt))
        trials.sort(key=lambda row: (row.agent, row.attempt, row.trial))
        outcomes = mean_figures(agents, self._names)
        outcomes["failed_spawns"] = float(env.clocks[0, FAILED_SPAWNS])
        row = replace(before.episode, outcomes=outcomes, artifacts={})
        result = EpisodeResult(row, tuple(agents), tuple(trials))
        if self._trace_figures:
            result = with_trace_figures(result, trace, env.pack[episode.scenario], self._trace_figures)
        return result, is_moved

    def _put(self, trace: Trace, frame: int) -> bool:
        """Replace the simulator's motion by a frame of the trace; return whether they differed."""
        count = trace.agent_count
        agents, flags = self._env.agents[0, :, :count], self._env.agent_flags[0, :, :count]
        motion = {line: getattr(trace, name)[frame] for name, line in MOTION.items()}
        driven = trace.active[frame]
        extra = {line: np.where(driven, trace.extra[name][frame], agents[line]) for name, line in EXTRA.items()}
        differs = bool(np.any((flags[IS_PRESENT] != 0) != trace.present[frame]))
        turned = agents[HEADING] != motion[HEADING]
        for line, values in (motion | extra).items():
            differs |= agents[line].tobytes() != values.tobytes()
            agents[line] = values
        if turned.any():
            agents[COS] = np.where(turned, np.cos(agents[HEADING]), agents[COS])
            agents[SIN] = np.where(turned, np.sin(agents[HEADING]), agents[SIN])
        flags[IS_PRESENT] = trace.present[frame]
        return differs


def _changes(recorded: Mapping[str, Any], recomputed: Mapping[str, Any]) -> Iterator[FigureChange]:
    before = {figure["name"]: figure for figure in recorded["figures"]}
    after = {figure["name"]: figure for figure in recomputed["figures"]}
    # Before 1.2, scenarios were clusters of their own, so intervals had other methods; their figures can still agree.
    is_old = "by_cluster" not in recorded
    for name in [*before, *(name for name in after if name not in before)]:
        if _compared(before.get(name), is_old) != _compared(after.get(name), is_old):
            yield FigureChange(name, before.get(name), after.get(name))


def _compared(figure: Mapping[str, Any] | None, is_old: bool) -> Mapping[str, Any] | None:
    """Return what must agree in a figure: all of it, but only its value if the run is older than its intervals."""
    return {key: figure[key] for key in _VALUE_KEYS} if is_old and figure is not None else figure
