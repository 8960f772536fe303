"""DriveEnv: many worlds stepped as one batch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from roadworthy.compile import kernel
from roadworthy.errors import ScenarioError, UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Floats
from roadworthy.sim import cpu
from roadworthy.sim.config import Actions, SimConfig
from roadworthy.sim.dynamics import ACTION_CHOICES
from roadworthy.sim.episodes import EndedEpisodes, Episode, EpisodeLog, Sampler
from roadworthy.sim.layout import layout
from roadworthy.sim.logs import TRIAL_FIGURES, figure_names
from roadworthy.sim.params import params
from roadworthy.sim.state import (
    CLOCK_COLUMNS,
    DRIVEN_COUNT,
    EGO,
    GOALS,
    HAS_ENDED,
    HIDDEN_FACTORS,
    MAP,
    MARK_LINES,
    PARTNER,
    ROLE,
    SCENARIO,
    TRIAL,
    Logs,
    Params,
    Rows,
    Starts,
    Worlds,
)
from roadworthy.sim.store import ScenarioStore

_ROOM_FOR_EPISODES = 100_000
_ATTEMPTS = 100  # scenarios that can't be driven, one after another, before the sampler gives up
# Numba's fallback for its threads can't be entered by two threads of Python at once.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Signals:
    """What a step meant to each row. `active` speaks of the observation just returned, the others of the step."""

    active: NDArray[np.bool_]
    trial_ended: NDArray[np.bool_]
    episode_ended: NDArray[np.bool_]
    timed_out: NDArray[np.bool_]


@dataclass(frozen=True)
class Snapshot:
    """Everything that decides what an env does next."""

    arrays: dict[str, NDArray[Any]]
    running: tuple[Episode | None, ...]
    waiting: tuple[tuple[Episode, ...], ...]
    rounds: NDArray[np.int64]
    seed: int
    steps: int


class DriveEnv:
    """Worlds of a pack, stepped together.

    Row r belongs to world r // rows_per_world and to the agent in slot r % rows_per_world of it; rows that a scenario
    has no agent for are never active. What `reset` and `step` return are views of the env's own arrays, which the next
    call overwrites.
    """

    def __init__(
        self,
        pack: Pack | str | Path,
        worlds: int = 64,
        config: SimConfig | None = None,
        *,
        seed: int = 0,
        threads: int | None = None,
        scenarios: Sequence[int] | None = None,
        sampling: bool = True,
        first_world: int = 0,
        world_total: int | None = None,
    ) -> None:
        """Make the worlds; nothing runs before `reset`.

        threads: how many cores share the work; all by default.
        scenarios: numbers of the pack's scenarios to draw from; all by default.
        sampling: whether a world whose episode ended draws another; without it, it rests until `assign` gives it one.
        first_world, world_total: which worlds of a run these are, where a run is spread over several envs.
        """
        self.config = config or SimConfig()
        self.pack = pack if isinstance(pack, Pack) else Pack(pack)
        self.world_count = _at_least_one("worlds", worlds)
        self.threads = _threads(threads)
        self._params: Params = params(self.config)
        self._settings = self._params.packed()
        self._store = ScenarioStore(self.pack, self.config, self.world_count)
        self.rows_per_world = self._store.rows_per_world
        self.row_count = self.world_count * self.rows_per_world
        self.world_of_row = np.repeat(np.arange(self.world_count), self.rows_per_world)
        self.observation_layout = layout(self.config)
        self.figure_names = figure_names(self.config.episode.trials)
        self._rows = self._make_rows()
        self._worlds, self._logs = self._make_worlds(), self._make_logs()
        self._starts = Starts(np.zeros_like(self._worlds.agents), np.zeros_like(self._worlds.marks))
        self.observations = self._rows.observations
        self.rewards = self._rows.rewards
        self.signals = Signals(
            self._rows.active, self._rows.trial_ended, self._rows.episode_ended, self._rows.timed_out
        )
        self._sampler: Sampler | None = None
        if sampling:
            numbers = range(len(self.pack)) if scenarios is None else self._known(scenarios)
            total = first_world + self.world_count if world_total is None else world_total
            self._sampler = Sampler(_seed(seed), numbers, self.world_count, first_world, total)
        self._running: list[Episode | None] = [None] * self.world_count
        self._waiting: list[deque[Episode]] = [deque() for _ in range(self.world_count)]
        self._log = EpisodeLog(_ROOM_FOR_EPISODES)
        self.step_count = 0
        self._is_started = self._is_closed = False

    # Running

    def reset(self, seed: int | None = None) -> Floats:
        """Start a new episode in every world and return the observations; with a seed, the run starts over with it.

        Episodes under way are cut short and logged so.
        """
        self._require_open()
        if seed is not None and self._sampler is not None:
            self._sampler.restart(_seed(seed))
        self._cut(np.arange(self.world_count))
        for array in (self._rows.rewards, self._rows.trial_ended, self._rows.episode_ended, self._rows.timed_out):
            array[:] = 0
        self._is_started = True
        self._begin(np.arange(self.world_count))
        return self.observations

    def step(self, actions: ArrayLike) -> tuple[Floats, Floats, Signals]:
        """One step of every world: observations, rewards and signals, as views."""
        self._require_started()
        self._take(actions)
        self.run_stages(cpu.ALL_STAGES)
        self.step_count += 1
        if self._rows.episode_ended.any():
            self._log_ended(np.flatnonzero(self._rows.episode_ended), is_cut=False)
        ended = np.flatnonzero(self._worlds.clocks[:, HAS_ENDED])
        if len(ended):
            self._begin(ended)
        return self.observations, self.rewards, self.signals

    def run_stages(self, stages: int) -> None:
        """Run some stages of a step (cpu.STAGES), for benchmarks; `step` runs all of them."""
        self._call(cpu.step, *self._parts(), self._store.maps, self._store.scenarios, self._settings, stages)

    def assign(self, world: int, scenario: int, episode_seed: int, *, now: bool = False) -> None:
        """Give a world its next episode. One that rests starts it at once; a running one when it is done, or now."""
        self._require_open()
        if not 0 <= world < self.world_count:
            raise UsageError(f"world {world} was given an episode; there are worlds 0 to {self.world_count - 1}")
        (number,) = self._known([scenario])
        self._waiting[world].append(Episode(-1, number, _seed(episode_seed)))
        if self._is_started and (now or self._running[world] is None):
            self._cut(np.array([world]))
            self._begin(np.array([world]))

    def close(self) -> None:
        """Let go of the memory; nothing can be done with the env afterwards."""
        self._is_closed = True

    # Looking

    @property
    def roles(self) -> NDArray[np.int32]:
        """(rows,) who drives each row: state.EGO or state.COPLAYER, -1 for rows that the scenario does not use."""
        roles = np.where(self._is_used(), self._worlds.marks[:, ROLE, : self.rows_per_world], -1)
        return roles.ravel()

    @property
    def episodes(self) -> tuple[Episode | None, ...]:
        """What runs in each world, None where it rests."""
        return tuple(self._running)

    @property
    def resting_worlds(self) -> NDArray[np.int64]:
        """Worlds that have nothing to do."""
        return np.flatnonzero(self._worlds.clocks[:, SCENARIO] < 0)

    @property
    def trials(self) -> NDArray[np.int32]:
        """(worlds,) the number of the trial that each is in."""
        return self._worlds.clocks[:, TRIAL].copy()

    @property
    def hidden(self) -> dict[str, NDArray[Any]]:
        """The hidden factors of each world's episode: for records and oracles, never for policies under test."""
        factors: dict[str, NDArray[Any]] = {
            name: self._worlds.hidden[:, k].copy() for k, name in enumerate(HIDDEN_FACTORS)
        }
        return factors | {"partner": self._worlds.clocks[:, PARTNER].copy()}

    @property
    def final_observation(self) -> Floats:
        """(rows, size) what each row saw where its last trial ended, before the reset."""
        if not self.config.observe.final:
            raise UsageError("final observations are not kept; set observe.final = true")
        return self._rows.final_observations

    @property
    def action_choices(self) -> tuple[int, int] | None:
        """How many choices each part of an action has; None where actions are continuous."""
        return ACTION_CHOICES[self.config.model] if self.config.actions is Actions.DISCRETE else None

    def figures(self) -> dict[str, float | None]:
        """The mean over ego rows in use of each row's moving average, one weight per row, and `n`, how many there are.

        Empty before the first episode has ended. A figure that no row has is None.
        """
        has_data = self._is_used() & (self._worlds.marks[:, ROLE, : self.rows_per_world] == EGO)
        has_data &= self._logs.episode_counts > 0
        averages = self._logs.averages[has_data].astype(np.float64)
        if not len(averages):
            return {}
        sums, counts = np.nansum(averages, axis=0), np.count_nonzero(~np.isnan(averages), axis=0)
        figures: dict[str, float | None] = {
            name: float(total / n) if n else None
            for name, total, n in zip(self.figure_names, sums, counts, strict=True)
        }
        infractions = sums[self.figure_names.index("infractions")]
        distance = sums[self.figure_names.index("distance_m")]
        figures["distance_per_infraction_m"] = float(distance / infractions) if infractions > 0 else None
        return figures | {"n": len(averages)}

    def report(self) -> dict[str, float | None]:
        """The figures, every `log.report_interval` steps; empty in between."""
        return self.figures() if self.step_count % self.config.log.report_interval == 0 else {}

    def ended_episodes(self) -> EndedEpisodes:
        """The episodes that have ended since the last call, each with its row and its unsmoothed figures."""
        return self._log.take(self._ended(np.zeros(0, np.int64), is_cut=False))

    # Going back

    def snapshot(self) -> Snapshot:
        """Everything that decides what comes next, as copies."""
        self._require_started()
        arrays = {
            f"{type(part).__name__}.{name}": getattr(part, name).copy()
            for part in self._parts()
            for name in part._fields
        }
        rounds = np.zeros(0, np.int64) if self._sampler is None else self._sampler.rounds.copy()
        return Snapshot(
            arrays,
            tuple(self._running),
            tuple(map(tuple, self._waiting)),
            rounds,
            0 if self._sampler is None else self._sampler.seed,
            self.step_count,
        )

    def restore(self, snapshot: Snapshot) -> Floats:
        """Go on from a snapshot of this env, or of one with the same config, pack and number of worlds."""
        self._require_open()
        if snapshot.arrays["Worlds.clocks"].shape != self._worlds.clocks.shape or (
            snapshot.arrays["Rows.observations"].shape != self._rows.observations.shape
        ):
            raise UsageError("the snapshot is of an env with another number of worlds, or another config")
        slots = {}
        for world, episode in enumerate(snapshot.running):
            if episode is not None:
                slots[world] = self._store.load(world, episode.scenario)
            else:
                self._store.unload(world)
            self._running[world] = episode
            self._waiting[world] = deque(snapshot.waiting[world])
        self._make_room(snapshot.arrays["Worlds.agents"].shape[-1])
        for part in self._parts():
            for name in part._fields:
                saved, array = snapshot.arrays[f"{type(part).__name__}.{name}"], getattr(part, name)
                array[tuple(slice(size) for size in saved.shape)] = saved
        for world, slot in slots.items():
            self._worlds.clocks[world, MAP] = slot
        if self._sampler is not None:
            self._sampler.restart(snapshot.seed)
            self._sampler.rounds[:] = snapshot.rounds
        self.step_count = snapshot.steps
        self._is_started = True
        return self.observations

    def memory(self) -> dict[str, int]:
        """Bytes of each part: `observations`, `worlds`, `scenarios` and `maps`."""
        rows = self._rows
        return {
            "observations": rows.observations.nbytes + rows.final_observations.nbytes,
            "worlds": sum(map(_bytes, self._parts())) - rows.observations.nbytes - rows.final_observations.nbytes,
            "scenarios": _bytes(self._store.scenarios),
            "maps": _bytes(self._store.maps),
        }

    def look(self, function: Any, *arguments: Any) -> None:
        """Call a compiled function with all that there is, to read: worlds, maps, scenarios, settings; then arguments.

        For scripted experts and measurements, which may know what policies can't.
        """
        self._require_started()
        function(self._worlds, self._store.maps, self._store.scenarios, self._settings, *arguments)

    # Within

    def _begin(self, numbers: NDArray[np.int64]) -> None:
        """Start the next episode of these worlds; those that have none rest."""
        clocks = self._worlds.clocks
        for world in numbers.tolist():
            clocks[world, SCENARIO], clocks[world, HAS_ENDED] = -1, 0
            self._running[world] = None
            self._running[world] = episode = self._next(world)
            if episode is not None:
                clocks[world, SCENARIO] = world
                self._worlds.seeds[world] = episode.seed
        self._make_room(self._store.agent_room)
        self._call(
            cpu.begin,
            numbers,
            self._worlds,
            self._starts,
            self._rows,
            self._store.maps,
            self._store.scenarios,
            self._settings,
        )

    def _next(self, world: int) -> Episode | None:
        """The next episode of a world, with its scenario loaded."""
        if self._waiting[world]:
            episode = self._waiting[world].popleft()
            self._worlds.clocks[world, MAP] = self._store.load(world, episode.scenario)
            return episode
        if self._sampler is None:
            self._store.unload(world)
            return None
        episode = self._sampler.next(world)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._worlds.clocks[world, MAP] = self._store.load(world, episode.scenario)
                return episode
            except ScenarioError as error:
                if attempt == _ATTEMPTS:
                    raise ScenarioError(f"{_ATTEMPTS} scenarios in a row can't be driven; the last: {error}") from error
                episode = self._sampler.draw(episode.number, attempt)
        raise AssertionError

    def _cut(self, numbers: NDArray[np.int64]) -> None:
        """Log the episodes under way in these worlds as cut, if a step was made in them."""
        numbers = np.array([w for w in numbers.tolist() if self._running[w] is not None], np.int64)
        is_cut = np.zeros((self.world_count, self.rows_per_world), np.bool_)
        self._call(cpu.cut, numbers, self._worlds, self._logs, self._settings, is_cut)
        if is_cut.any():
            self._log_ended(np.flatnonzero(is_cut), is_cut=True)
        for world in numbers.tolist():
            self._running[world] = None

    def _log_ended(self, rows: NDArray[np.int64], is_cut: bool) -> None:
        self._log.add(self._ended(rows, is_cut))

    def _ended(self, rows: NDArray[np.int64], is_cut: bool) -> EndedEpisodes:
        w, a = rows // self.rows_per_world, rows % self.rows_per_world
        running = [self._running[world] or Episode(-1, -1, 0) for world in w.tolist()]
        return EndedEpisodes(
            rows=rows,
            numbers=np.array([episode.number for episode in running], np.int64),
            scenarios=np.array([episode.scenario for episode in running], np.int64),
            seeds=np.array([episode.seed for episode in running], np.uint64),
            is_ego=self._worlds.marks[w, ROLE, a] == EGO,
            is_cut=np.full(len(rows), is_cut),
            figures=self._logs.episodes[w, a],
            trials=self._logs.trials[w, a],
        )

    def _take(self, actions: ArrayLike) -> None:
        """Check actions and copy them to where the rules read them."""
        given = np.asarray(actions)
        if given.shape != self._rows.actions.shape:
            raise UsageError(f"actions have shape {given.shape}, expected {self._rows.actions.shape}: two per row")
        if given.dtype.kind not in "iuf":
            raise UsageError(f"actions are of type {given.dtype}, expected numbers")
        np.copyto(self._rows.actions, given, casting="unsafe")
        row = _first_bad_action(self._rows.actions, self._rows.active, self._settings)
        if row >= 0:
            choices = self.action_choices
            allowed = (
                "two finite numbers, -1 to 1 (what is beyond is clipped)"
                if choices is None
                else f"a whole number from 0 to {choices[0] - 1} and one from 0 to {choices[1] - 1}"
            )
            raise UsageError(f"the action of row {row} is {given[row].tolist()}; allowed: {allowed}")

    def _call(self, function: Any, *arguments: Any) -> None:
        with _ONE_AT_A_TIME:
            numba.set_num_threads(self.threads)
            function(*arguments)

    def _is_used(self) -> NDArray[np.bool_]:
        """(worlds, slots) whether the scenario that runs there has an agent for the row."""
        clocks = self._worlds.clocks
        driven = np.where(clocks[:, SCENARIO] >= 0, clocks[:, DRIVEN_COUNT], 0)
        return np.arange(self.rows_per_world) < driven[:, None]

    def _known(self, scenarios: Sequence[int]) -> list[int]:
        numbers = [int(number) for number in scenarios]
        wrong = [number for number in numbers if not 0 <= number < len(self.pack)]
        if wrong or not numbers:
            given = f"scenario {wrong[0]} was asked for" if wrong else "no scenario was given"
            raise UsageError(f"{given}; {self.pack.path} has scenarios 0 to {len(self.pack) - 1}")
        return numbers

    def _make_rows(self) -> Rows:
        n, size = self.row_count, self.observation_layout.size
        return Rows(
            observations=np.zeros((n, size), np.float32),
            final_observations=np.zeros((n if self.config.observe.final else 0, size), np.float32),
            actions=np.zeros((n, 2), np.float32),
            rewards=np.zeros(n, np.float32),
            active=np.zeros(n, np.bool_),
            trial_ended=np.zeros(n, np.bool_),
            episode_ended=np.zeros(n, np.bool_),
            timed_out=np.zeros(n, np.bool_),
        )

    def _make_worlds(self) -> Worlds:
        w, r = self.world_count, self.rows_per_world
        lines, room = GOALS + 2 * int(self._params.goal_count), max(self._store.agent_room, r)
        clocks = np.zeros((w, CLOCK_COLUMNS), np.int32)
        clocks[:, SCENARIO] = -1
        return Worlds(
            agents=np.zeros((w, lines, room), np.float32),
            marks=np.zeros((w, MARK_LINES, room), np.int32),
            clocks=clocks,
            seeds=np.zeros(w, np.uint64),
            hidden=np.ones((w, len(HIDDEN_FACTORS)), np.float32),
            order=np.zeros((w, _rounded_up(room)), np.int32),
            looks=np.zeros((w, _rounded_up(room), 8), np.float32),
        )

    def _make_logs(self) -> Logs:
        w, r, k, f = self.world_count, self.rows_per_world, self.config.episode.trials, len(self.figure_names)
        return Logs(
            trials=np.full((w, r, k, len(TRIAL_FIGURES)), np.nan, np.float32),
            episodes=np.full((w, r, f), np.nan, np.float32),
            averages=np.full((w, r, f), np.nan, np.float32),
            episode_counts=np.zeros((w, r), np.int32),
        )

    def _parts(self) -> tuple[Worlds, Starts, Logs, Rows]:
        """Everything that changes."""
        return self._worlds, self._starts, self._logs, self._rows

    def _make_room(self, agents: int) -> None:
        """Make the worlds wide enough for so many agents."""
        worlds = self._worlds
        more = agents - worlds.agents.shape[-1]
        if more > 0:
            self._worlds = worlds._replace(
                agents=_widened(worlds.agents, more),
                marks=_widened(worlds.marks, more),
                order=np.zeros((self.world_count, _rounded_up(agents)), np.int32),
                looks=np.zeros((self.world_count, _rounded_up(agents), 8), np.float32),
            )
            self._starts = Starts(*(_widened(array, more) for array in self._starts))

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsageError("this DriveEnv is closed; make another one")

    def _require_started(self) -> None:
        self._require_open()
        if not self._is_started:
            raise UsageError("call reset() before the first step")


@kernel
def _first_bad_action(actions: Floats, active: NDArray[np.bool_], settings: NDArray[np.void]) -> int:
    """The first active row whose action is no choice, or no number; -1 for none."""
    p = settings[0]
    for row in range(len(actions)):
        if active[row]:
            along, across = actions[row, 0], actions[row, 1]
            if not (np.isfinite(along) and np.isfinite(across)):
                return row
            if not p.is_continuous:
                if along != np.floor(along) or across != np.floor(across):
                    return row
                if not (0 <= along < p.choices_along and 0 <= across < p.choices_across):
                    return row
    return -1


def _widened(array: NDArray[Any], more: int) -> NDArray[Any]:
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)])


def _rounded_up(agents: int) -> int:
    """Working space is a multiple of 32 wide: rules fill it up to whole vectors."""
    return -(-agents // 32) * 32


def _at_least_one(name: str, value: int) -> int:
    if int(value) != value or value < 1:
        raise UsageError(f"{name} is {value!r}, expected a whole number from 1 on")
    return int(value)


def _threads(threads: int | None) -> int:
    most = numba.config.NUMBA_NUM_THREADS
    if threads is None:
        return most
    if _at_least_one("threads", threads) > most:
        raise UsageError(f"threads is {threads}, but there are {most}; NUMBA_NUM_THREADS can raise that")
    return threads


def _seed(seed: int) -> int:
    if int(seed) != seed or not 0 <= seed < 1 << 64:
        raise UsageError(f"the seed is {seed!r}, expected a whole number from 0 to 2**64 - 1")
    return int(seed)


def _bytes(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays)
