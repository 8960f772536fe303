"""The worlds of an env on the CPU: which episode each one runs, and the results of those that ended."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.kernels import entry, kernel
from roadworthy.kernels.threads import set_threads
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Floats
from roadworthy.sim import state
from roadworthy.sim.backends import cpu
from roadworthy.sim.backends.allocation import bytes_of, make_logs, make_rows, make_worlds, rounded_up
from roadworthy.sim.backends.cpu_extensions import CpuExtensions
from roadworthy.sim.config import SimConfig
from roadworthy.sim.episodes import ATTEMPTS, EndedEpisodes, Episode, EpisodeLog, Sampler
from roadworthy.sim.maps.scenario_store import Place, ScenarioStore
from roadworthy.sim.params import params
from roadworthy.sim.rules.dynamics import is_allowed
from roadworthy.sim.rules.traffic_lights import light_state
from roadworthy.sim.snapshot import Snapshot
from roadworthy.sim.state import Logs, Rows, Scenarios, Starts, Worlds

_EPISODE_LOG_SIZE = 100_000
# Two Python threads must not enter Numba's fallback threading layer at once.
_NUMBA_LOCK = threading.Lock()


class CpuBatch:
    """W worlds, shared by the cores. The host chooses a world's next episode in the step that ends the last one."""

    def __init__(self, pack: Pack, config: SimConfig, worlds: int, sampler: Sampler | None, threads: int) -> None:
        settings = params(config)
        self.settings = settings.packed()
        self.threads, self.sampler = threads, sampler
        self.store = ScenarioStore(pack, config, worlds)
        self.rows_per_world = self.store.rows_per_world
        self.rows: Rows = make_rows(worlds * self.rows_per_world, config)
        self.worlds, self.starts = make_worlds(
            worlds, int(settings.goal_count), max(self.store.agent_room, self.rows_per_world)
        )
        self.logs: Logs = make_logs(worlds, self.rows_per_world, config.episode.trials)
        self.observations: Floats = self.rows.observations
        self.final_observations: Floats = self.rows.final_observations
        self.pre_reset_callback: Callable[[], None] | None = None  # see DriveEnv.set_pre_reset_callback
        self._extensions = CpuExtensions(config, self.rows)
        self._running: list[Episode | None] = [None] * worlds
        self._waiting: list[deque[Episode]] = [deque() for _ in range(worlds)]
        self._log = EpisodeLog(_EPISODE_LOG_SIZE)

    def reset(self) -> None:
        """Start another episode in every world; cut short and log those in progress."""
        worlds = np.arange(len(self._running))
        self._cut(worlds)
        for array in (self.rows.rewards, self.rows.trial_ended, self.rows.episode_ended, self.rows.timed_out):
            array[:] = 0
        self._begin(worlds)

    def begin(self, worlds: Sequence[int]) -> None:
        """Start the next episode of these worlds; cut short and log those in progress."""
        numbers = np.asarray(worlds, np.int64)
        self._cut(numbers)
        self._begin(numbers)

    def step(self, actions: ArrayLike, set_motion: Callable[[], None] | None = None, observe: bool = True) -> None:
        """Make a step of every world; worlds whose episode ended start another one."""
        self.set_actions(actions)
        stages = cpu.ALL_STAGES if observe else cpu.ALL_STAGES & ~cpu.OBSERVE
        has_terms, has_blocks = self._extensions.has_terms, self._extensions.has_blocks
        for callback, before in (
            (set_motion, cpu.MOTION),
            (self._evaluate_terms if has_terms else None, cpu.BEFORE_REWARD),
            (self._extensions.add_rewards if has_terms else None, cpu.BEFORE_RESET),
            (self._observe_final if has_blocks else None, cpu.BEFORE_RESET),
            (self.pre_reset_callback, cpu.BEFORE_RESET),
        ):
            if callback is not None:
                if stages & before:
                    self.run_stages(stages & before)
                callback()
                stages &= ~before
        self.run_stages(stages)
        if has_blocks and observe:
            self._observe_blocks(np.arange(len(self._running)))
        if self.rows.episode_ended.any():
            self._log.add(self._ended(np.flatnonzero(self.rows.episode_ended), is_cut=False))
        ended = np.flatnonzero(self.worlds.clocks[:, state.EPISODE_ENDED])
        if len(ended):
            self._begin(ended)

    def run_stages(self, stages: int) -> None:
        """Run some stages of a step (cpu.STAGES)."""
        self._call(cpu.step, *self.parts(), self.store.maps, self.store.scenarios, self.settings, stages)

    def set_actions(self, actions: ArrayLike) -> None:
        """Check actions and copy them to the rows."""
        given = np.asarray(actions)
        if given.shape != self.rows.actions.shape:
            raise UsageError(f"actions have shape {given.shape}, expected {self.rows.actions.shape}: two per row")
        if given.dtype.kind not in "iuf":
            raise UsageError(f"actions are of type {given.dtype}, expected numbers")
        np.copyto(self.rows.actions, given, casting="unsafe")
        row = _first_bad_action(self.rows.actions, self.rows.active, self.settings)
        if row >= 0:
            raise UsageError(f"the action of row {row} is {given[row].tolist()}; allowed: {self._allowed()}")

    def assign(self, worlds: Sequence[int], scenarios: Sequence[int], seeds: Sequence[int], now: Sequence[int]) -> None:
        """Queue an episode for each of these worlds. Worlds in `now` and idle worlds start it at once."""
        for world, scenario, seed in zip(worlds, scenarios, seeds, strict=True):
            self._waiting[world].append(Episode(-1, scenario, seed))
        if len(now):
            self.begin(now)

    def light_states(self, world: int, steps: int) -> NDArray[np.uint8]:
        """Return what the lights of a world show in the first steps of its trial, (lights, steps)."""
        s = int(self.worlds.clocks[world, state.SCENARIO])
        states = np.zeros((self.store.scenarios.counts[s, state.LIGHT_COUNT], steps), np.uint8)
        _write_light_states(self.store.scenarios, s, self.worlds.seeds[world], self.settings, states)
        return states

    def call_with_state(self, function: Any, *arguments: Any) -> None:
        """Call a compiled function with the worlds, maps, scenarios and settings, and then the arguments."""
        function(self.worlds, self.store.maps, self.store.scenarios, self.settings, *arguments)

    @property
    def episodes(self) -> tuple[Episode | None, ...]:
        return tuple(self._running)

    def ended(self) -> EndedEpisodes:
        """Return the episodes that have ended since the last call."""
        return self._log.take(self._ended(np.zeros(0, np.int64), is_cut=False))

    def parts(self) -> tuple[Worlds, Starts, Logs, Rows]:
        """Return all arrays that change."""
        return self.worlds, self.starts, self.logs, self.rows

    def memory(self) -> dict[str, int]:
        """Return the bytes of each part."""
        observations = self.rows.observations.nbytes + self.rows.final_observations.nbytes
        return {
            "observations": observations,
            "worlds": sum(map(bytes_of, self.parts())) - observations,
            **self.store.memory(),
        }

    @property
    def rounds(self) -> NDArray[np.int64]:
        """(W,) episodes drawn for each world; empty if they are assigned."""
        return np.zeros(0, np.int64) if self.sampler is None else self.sampler.rounds.copy()

    def skip(self, rounds: NDArray[np.int64]) -> None:
        """Continue as if this many episodes had been drawn for each world."""
        assert self.sampler is not None
        self.sampler.rounds[:] = rounds

    def snapshot(self, steps: int) -> Snapshot:
        """Return copies of everything that determines the next steps, without slots, which belong to the store."""
        arrays = {
            f"{type(part).__name__}.{name}": array.copy()
            for part in self.parts()
            for name, array in part._asdict().items()
        }
        arrays["Worlds.clocks"][:, [state.SCENARIO, state.MAP]] = -1
        return Snapshot(
            arrays,
            self.episodes,
            tuple(map(tuple, self._waiting)),
            self.rounds,
            0 if self.sampler is None else self.sampler.seed,
            steps,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of an env with the same config, pack and number of worlds."""
        places = {}
        for world, episode in enumerate(snapshot.running):
            if episode is not None:
                places[world] = self.store.load(world, episode.scenario)
            else:
                self.store.unload(world)
            self._running[world] = episode
            self._waiting[world] = deque(snapshot.waiting[world])
        self._grow(snapshot.arrays["Worlds.agents"].shape[-1])
        for part in self.parts():
            for name, array in part._asdict().items():
                saved = snapshot.arrays[f"{type(part).__name__}.{name}"]
                array[tuple(slice(size) for size in saved.shape)] = saved
        for world, place in places.items():
            self._put(world, place)
        if self.sampler is not None:
            self.sampler.restart(snapshot.seed)
            self.sampler.rounds[:] = snapshot.rounds

    def _begin(self, numbers: NDArray[np.int64]) -> None:
        """Start the next episode of these worlds; worlds without one become idle."""
        clocks = self.worlds.clocks
        for world in numbers.tolist():
            clocks[world, state.SCENARIO], clocks[world, state.EPISODE_ENDED] = -1, 0
            self._running[world] = None
            self._running[world] = episode = self._next(world)
            if episode is not None:
                self.worlds.seeds[world] = episode.seed
        self._grow(self.store.agent_room)
        maps, scenarios = self.store.maps, self.store.scenarios
        self._call(cpu.begin, numbers, self.worlds, self.starts, self.rows, maps, scenarios, self.settings)
        if self._extensions.has_blocks:
            self._observe_blocks(numbers)

    def _evaluate_terms(self) -> None:
        """Evaluate the reward terms of users."""
        self._call(self._extensions.evaluate_terms, self.worlds, self.store.scenarios)

    def _observe_blocks(self, numbers: NDArray[np.int64], is_final: bool = False) -> None:
        """Write the observation blocks of users in these worlds."""
        self._call(self._extensions.observe, numbers, self.worlds, self.rows, self.store.scenarios, is_final)

    def _observe_final(self) -> None:
        if self.settings[0]["keeps_final"]:
            self._observe_blocks(np.arange(len(self._running)), is_final=True)

    def _next(self, world: int) -> Episode | None:
        """Return the next episode of a world, with its scenario loaded."""
        if self._waiting[world]:
            episode = self._waiting[world].popleft()
            self._put(world, self.store.load(world, episode.scenario))
            return episode
        if self.sampler is None:
            self.store.unload(world)
            return None
        episode = self.sampler.next(world)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._put(world, self.store.load(world, episode.scenario))
                return episode
            except ScenarioError as error:
                if attempt == ATTEMPTS:
                    raise ScenarioError(f"{ATTEMPTS} scenarios in a row cannot be driven; the last: {error}") from error
                episode = self.sampler.draw(episode.number, attempt)
        raise AssertionError

    def _put(self, world: int, place: Place) -> None:
        self.worlds.clocks[world, state.SCENARIO], self.worlds.clocks[world, state.MAP] = place

    def _cut(self, numbers: NDArray[np.int64]) -> None:
        """Log the episodes in progress in these worlds as cut, if they have made a step."""
        numbers = np.array([w for w in numbers.tolist() if self._running[w] is not None], np.int64)
        is_cut = np.zeros((len(self._running), self.rows_per_world), np.bool_)
        self._call(cpu.cut, numbers, self.worlds, self.logs, self.settings, is_cut)
        if is_cut.any():
            self._log.add(self._ended(np.flatnonzero(is_cut), is_cut=True))
        for world in numbers.tolist():
            self._running[world] = None

    def _ended(self, rows: NDArray[np.int64], is_cut: bool) -> EndedEpisodes:
        w, a = rows // self.rows_per_world, rows % self.rows_per_world
        running = [self._running[world] or Episode(-1, -1, 0) for world in w.tolist()]
        return EndedEpisodes(
            rows=rows,
            numbers=np.array([episode.number for episode in running], np.int64),
            scenarios=np.array([episode.scenario for episode in running], np.int64),
            seeds=np.array([episode.seed for episode in running], np.uint64),
            is_ego=self.worlds.agent_flags[w, state.ROLE, a] == state.EGO,
            is_cut=np.full(len(rows), is_cut),
            figures=self.logs.episodes[w, a],
            trials=self.logs.trials[w, a],
        )

    def _allowed(self) -> str:
        p = self.settings[0]
        if p["is_continuous"]:
            return "two finite numbers, -1 to 1 (larger values are clipped)"
        return f"a whole number from 0 to {p['choices_along'] - 1} and one from 0 to {p['choices_across'] - 1}"

    def _call(self, function: Any, *arguments: Any) -> None:
        with _NUMBA_LOCK:
            set_threads(self.threads)
            function(*arguments)

    def _grow(self, agents: int) -> None:
        """Give the worlds room for this many agents."""
        worlds = self.worlds
        more = agents - worlds.agents.shape[-1]
        if more > 0:
            count = len(self._running)
            self.worlds = worlds._replace(
                agents=_widened(worlds.agents, more),
                agent_flags=_widened(worlds.agent_flags, more),
                order=np.zeros((count, rounded_up(agents)), np.int32),
                appearance=np.zeros((count, rounded_up(agents), state.SEEN_COLUMNS), np.float32),
            )
            self.starts = Starts(*(_widened(array, more) for array in self.starts))


@entry
def _write_light_states(
    scenarios: Scenarios, s: int, seed: int, settings: NDArray[np.void], states_out: NDArray[np.uint8]
) -> None:
    for light in range(states_out.shape[0]):
        for step in range(states_out.shape[1]):
            states_out[light, step] = light_state(scenarios, s, light, step, seed, settings[0])


@kernel
def _first_bad_action(actions: Floats, active: NDArray[np.bool_], settings: NDArray[np.void]) -> int:
    """Return the first active row with an invalid action, -1 for none."""
    for row in range(len(actions)):
        if active[row] and not is_allowed(actions[row], settings[0]):
            return row
    return -1


def _widened(array: NDArray[Any], more: int) -> NDArray[Any]:
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)])
