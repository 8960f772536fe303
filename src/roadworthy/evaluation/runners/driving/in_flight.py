"""The episodes that run in the worlds of an env, and their results when they end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import NextSpec, OnResult, episode_row
from roadworthy.evaluation.runners.driving.capture import Capture
from roadworthy.evaluation.runners.driving.rows import ego_rows, hidden_factors, mean_figures, track_id_of
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.evaluation.watch import Whereabouts
from roadworthy.metrics.trace_figures import with_trace_figures
from roadworthy.record.episodes import AgentRow, EpisodeResult, TrialRow
from roadworthy.sim.env import DriveEnv, on_host
from roadworthy.sim.episodes import EndedEpisodes
from roadworthy.sim.state import FAILED_SPAWNS, SOURCE


@dataclass
class _Episode:
    """An episode that runs."""

    spec: EpisodeSpec
    started_s: float
    first_step: int
    agents: list[AgentRow] = field(default_factory=list)
    trials: list[TrialRow] = field(default_factory=list)


class InFlight:
    """The episodes that run in an env. `seeds` and `steps` give policies, row by row, the episode's seed and step."""

    def __init__(self, env: DriveEnv, spec: DrivingSpec, process: int) -> None:
        self._env, self._spec, self._process = env, spec, process
        self._capture = Capture(env) if spec.keeps_traces else None
        env.set_pre_reset_callback(self._capture.watch if self._capture else None)
        env.ended_episodes()  # drops those of earlier episodes
        self._episodes: dict[int, _Episode] = {}
        self._has_room = True  # whether there may be another episode
        self._step = 0  # steps made in the batch
        self.seeds = np.zeros(env.row_count, np.uint64)
        self.steps = np.zeros(env.row_count, np.int64)

    def __len__(self) -> int:
        return len(self._episodes)

    def fill(self, next_spec: NextSpec, on_result: OnResult) -> NDArray[np.bool_]:
        """Start the next episode in every resting world; return which rows belong to the episodes that start."""
        begun = np.zeros(self._env.row_count, np.bool_)
        if self._has_room:
            for world in self._env.resting_worlds.tolist():
                if not self._begin_next(world, next_spec, on_result):
                    break
                begun[self._rows(world)] = True
            self._has_room = False
        return begun

    def after_step(self, on_result: OnResult) -> None:
        """Record the step that was just made, and hand over the results of episodes that ended with it."""
        self.steps += 1
        self._step += 1
        if on_host(self._env.signals.episode_ended).any():
            self._note_rows(self._env.ended_episodes())
        over = [world for world in self._env.resting_worlds.tolist() if world in self._episodes]
        if self._capture:
            self._capture.after_step([world for world in self._episodes if world not in over])
        for world in over:
            result = self._result(world, self._episodes.pop(world))
            self._has_room = True
            on_result(result)

    def _begin_next(self, world: int, next_spec: NextSpec, on_result: OnResult) -> bool:
        """Start the next episode that can be started in a world; return False if there is none."""
        while (spec := next_spec()) is not None:
            try:
                _refuse_factors(spec)
                self._env.assign(world, spec.scenario, spec.seed)
            except ScenarioError as error:
                on_result(self._spec.failed(spec, str(error)))
                continue
            rows = self._rows(world)
            self.seeds[rows], self.steps[rows] = spec.seed, 0
            self._episodes[world] = _Episode(spec, time.monotonic(), self._step)
            if self._capture:
                self._capture.begin(world)
            return True
        return False

    def _rows(self, world: int) -> slice:
        width = self._env.rows_per_world
        return slice(world * width, (world + 1) * width)

    def _note_rows(self, ended: EndedEpisodes) -> None:
        """Keep the rows of egos whose own episode has ended."""
        for k in np.flatnonzero(ended.is_ego & ~ended.is_cut).tolist():
            world, agent = divmod(int(ended.rows[k]), self._env.rows_per_world)
            episode = self._episodes[world]
            attempt = sum(row.agent == agent for row in episode.agents)
            source = int(on_host(self._env.agent_flags[world])[SOURCE, agent])
            track_id = track_id_of(self._env.pack[episode.spec.scenario], source)
            own, trials = ego_rows(
                episode.spec.episode_id,
                agent,
                attempt,
                self._env.figure_names,
                ended.figures[k],
                ended.trials[k],
                track_id,
            )
            episode.agents.append(own)
            episode.trials += trials

    def _result(self, world: int, episode: _Episode) -> EpisodeResult:
        spec, env = episode.spec, self._env
        agents = sorted(episode.agents, key=lambda row: (row.agent, row.attempt))
        trials = sorted(episode.trials, key=lambda row: (row.agent, row.attempt, row.trial))
        steps = int(self.steps[self._rows(world).start])
        clock = on_host(env.clocks[world])
        hidden = hidden_factors(env.hidden, world, env.config.hidden)
        outcomes = mean_figures(agents, env.figure_names) | {"failed_spawns": float(clock[FAILED_SPAWNS])}
        row = episode_row(
            spec,
            self._spec.evaluator,
            Whereabouts(world, spec.scenario, episode.first_step, steps, time.monotonic() - episode.started_s),
            self._process,
            trials=env.config.episode.trials,
            status="completed",
            tags=env.pack.tags(spec.scenario),
            factors=hidden,
            outcomes=outcomes,
        )
        trace = self._capture.end(world, spec) if self._capture else None
        result = EpisodeResult(row, tuple(agents), tuple(trials), trace)
        if trace is None or not self._spec.trace_figures:
            return result
        return with_trace_figures(result, trace, env.pack[spec.scenario], self._spec.trace_figures)


def _refuse_factors(spec: EpisodeSpec) -> None:
    if spec.factors:
        raise ScenarioError(
            f"the ledger sets factors ({', '.join(spec.factors)}), but a world draws its hidden factors by the seed of "
            "the episode; leave them out of the ledger, or set their ranges with env.hidden"
        )
