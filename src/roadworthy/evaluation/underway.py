"""What is under way in each world of an env, and what an episode came to when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.evaluation.capture import Capture, on_host
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.results import ego_rows, failed, hidden_factors, mean_figures, track_id_of
from roadworthy.metrics.trace_figures import TraceFigures, with_trace_figures
from roadworthy.record.episodes import AgentRow, EpisodeResult, EpisodeRow, TrialRow
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.episodes import EndedEpisodes
from roadworthy.sim.state import FAILED_SPAWNS, SOURCE

# Gives the next owed episode to a process in which so many are under way; None: it has none for now.
NextSpec = Callable[[int], EpisodeSpec | None]
OnResult = Callable[[EpisodeResult], None]


@dataclass
class _Episode:
    """An episode under way."""

    owed: EpisodeSpec
    started_s: float
    first_step: int
    agents: list[AgentRow] = field(default_factory=list)
    trials: list[TrialRow] = field(default_factory=list)


class UnderWay:
    """The episodes that run in an env now. `seeds` and `steps` tell policies, row by row, of which episode and when."""

    def __init__(
        self,
        env: DriveEnv,
        evaluator: str,
        slot: int,
        keeps_traces: bool,
        trace_figures: Sequence[TraceFigures] = (),
    ) -> None:
        self._env, self._evaluator, self._slot = env, evaluator, slot
        self._trace_figures = trace_figures
        self._capture = Capture(env) if keeps_traces else None
        env.set_pre_reset_callback(self._capture.watch if self._capture else None)
        env.ended_episodes()  # those of whatever ran here before
        self._episodes: dict[int, _Episode] = {}
        self._has_room = True  # whether it is worth asking for another episode
        self._step = 0  # steps made in the batch
        self.seeds = np.zeros(env.row_count, np.uint64)
        self.steps = np.zeros(env.row_count, np.int64)

    def __len__(self) -> int:
        return len(self._episodes)

    def fill(self, next_owed: NextSpec, on_result: OnResult) -> NDArray[np.bool_]:
        """Let every world that rests take the next owed episode; returns which rows belong to those that begin."""
        begun = np.zeros(self._env.row_count, np.bool_)
        if self._has_room:
            for world in self._env.resting_worlds.tolist():
                if not self._begin_next(world, next_owed, on_result):
                    break
                begun[self._rows(world)] = True
            self._has_room = False
        return begun

    def after_step(self, on_result: OnResult) -> None:
        """Take note of the step that was just made; the results of episodes that ended with it are handed over."""
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

    def _begin_next(self, world: int, next_owed: NextSpec, on_result: OnResult) -> bool:
        """Start the next owed episode that can be started in a world; False if there is none."""
        while (owed := next_owed(len(self))) is not None:
            try:
                _refuse_factors(owed)
                self._env.assign(world, owed.scenario, owed.seed)
            except ScenarioError as error:
                on_result(failed(owed, self._evaluator, str(error), self._env.pack.tags(owed.scenario)))
                continue
            rows = self._rows(world)
            self.seeds[rows], self.steps[rows] = owed.seed, 0
            self._episodes[world] = _Episode(owed, time.monotonic(), self._step)
            if self._capture:
                self._capture.begin(world)
            return True
        return False

    def _rows(self, world: int) -> slice:
        width = self._env.rows_per_world
        return slice(world * width, (world + 1) * width)

    def _note_rows(self, ended: EndedEpisodes) -> None:
        """Write down what became of agents whose own episode has ended; egos alone are under test."""
        for k in np.flatnonzero(ended.is_ego & ~ended.is_cut).tolist():
            world, agent = divmod(int(ended.rows[k]), self._env.rows_per_world)
            episode = self._episodes[world]
            attempt = sum(row.agent == agent for row in episode.agents)
            source = int(on_host(self._env.agent_flags[world])[SOURCE, agent])
            track_id = track_id_of(self._env.pack[episode.owed.scenario], source)
            own, trials = ego_rows(
                episode.owed.episode_id,
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
        owed, env = episode.owed, self._env
        agents = sorted(episode.agents, key=lambda row: (row.agent, row.attempt))
        trials = sorted(episode.trials, key=lambda row: (row.agent, row.attempt, row.trial))
        steps = int(self.steps[self._rows(world).start])
        clock = on_host(env.clocks[world])
        hidden = hidden_factors(env.hidden, world, env.config.hidden)
        outcomes = mean_figures(agents, env.figure_names) | {"failed_spawns": float(clock[FAILED_SPAWNS])}
        row = EpisodeRow(
            episode_id=owed.episode_id,
            evaluator=self._evaluator,
            scenario_id=owed.scenario_id,
            seed=owed.seed,
            replicate=owed.replicate,
            world=world,
            slot=self._slot,
            first_step=episode.first_step,
            last_step=self._step - 1,
            steps=steps,
            trials=env.config.episode.trials,
            status="completed",
            wall_s=time.monotonic() - episode.started_s,
            tags=env.pack.tags(owed.scenario),
            factors=hidden,
            outcomes=outcomes,
        )
        trace = self._capture.end(world, owed) if self._capture else None
        result = EpisodeResult(row, tuple(agents), tuple(trials), trace)
        if trace is None or not self._trace_figures:
            return result
        return with_trace_figures(result, trace, env.pack[owed.scenario], self._trace_figures)


def _refuse_factors(owed: EpisodeSpec) -> None:
    if owed.factors:
        raise ScenarioError(
            f"factors are asked for ({', '.join(owed.factors)}), but a world draws its hidden factors by the episode's "
            "seed; leave them out of the ledger, or set ranges by env.hidden"
        )
