"""DriveEnv: many worlds stepped as one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import DeviceError, UsageError
from roadworthy.kernels.threads import MAX_THREADS
from roadworthy.scenario.pack import Pack
from roadworthy.sim.backends.cpu_batch import CpuBatch
from roadworthy.sim.compiling import ensure_simulator_compiled
from roadworthy.sim.config import Actions, SimConfig
from roadworthy.sim.episodes import EndedEpisodes, Episode, Sampler
from roadworthy.sim.layout import layout
from roadworthy.sim.rules.dynamics import ACTION_CHOICES, IDLE_CHOICES
from roadworthy.sim.rules.episode_figures import figure_names
from roadworthy.sim.snapshot import Snapshot
from roadworthy.sim.state import COPLAYER_POLICY, DRIVEN_COUNT, EGO, HIDDEN_FACTORS, ROLE, SCENARIO, TRIAL

Array = Any  # of NumPy on the CPU, of torch on a GPU
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Signals:
    """The signals of each row: `active` describes the observation just returned, the others the last step."""

    active: Array
    trial_ended: Array
    episode_ended: Array
    timed_out: Array


class DriveEnv:
    """Worlds of a pack, stepped together.

    Row r belongs to world r // rows_per_world and to the agent in slot r % rows_per_world. Rows without an agent are
    never active. `reset` and `step` return views of the env's own arrays, which the next call overwrites: NumPy arrays
    on the CPU, torch tensors on a GPU.

    Example:
        >>> env = DriveEnv("town.pack", worlds=64)  # doctest: +SKIP
        >>> observations = env.reset(seed=0)  # doctest: +SKIP
        >>> observations, rewards, signals = env.step(actions)  # doctest: +SKIP
    """

    def __init__(
        self,
        pack: Pack | str | Path,
        worlds: int = 64,
        config: SimConfig | None = None,
        *,
        seed: int = 0,
        device: str = "cpu",
        threads: int | None = None,
        scenarios: Sequence[int] | None = None,
        sampling: bool = True,
        first_world: int = 0,
        world_total: int | None = None,
    ) -> None:
        """Make the worlds. Call `reset` before the first step.

        Args:
            pack: the scenarios, or the path of their pack
            worlds: how many worlds to step together
            config: settings; the defaults if not given
            seed: of the run, until `reset` gets another one
            device: "cpu" or "cuda" (also "cuda:1"); a GPU holds all these scenarios at once
            threads: how many cores share the work; all by default
            scenarios: numbers of the pack's scenarios to draw from; all by default
            sampling: whether a world draws another scenario when its episode ends; if not, it waits for `assign`
            first_world, world_total: which worlds of a run these are, if several envs share the run
        """
        self.config = config or SimConfig()
        self.pack = pack if isinstance(pack, Pack) else Pack(pack)
        self.device = _device(device)
        self.world_count = _at_least_one("worlds", worlds)
        numbers = range(len(self.pack)) if scenarios is None else self._known(scenarios)
        total = first_world + self.world_count if world_total is None else world_total
        if self.device == "cpu":
            ensure_simulator_compiled(self.pack.path, self.config)
        sampler = Sampler(_seed(seed), numbers, self.world_count, first_world, total) if sampling else None
        self.batch = self._make_batch(numbers, sampler, threads)
        self.rows_per_world = self.batch.rows_per_world
        self.row_count = self.world_count * self.rows_per_world
        self.world_of_row = np.repeat(np.arange(self.world_count), self.rows_per_world)
        self.observation_layout = layout(self.config)
        self.figure_names = figure_names(self.config.episode.trials)
        rows = self.batch.rows
        self.observations, self.rewards = self.batch.observations, rows.rewards
        self.signals = Signals(rows.active, rows.trial_ended, rows.episode_ended, rows.timed_out)
        self.step_count = 0
        self._is_started = self._is_closed = False

    def reset(self, seed: int | None = None) -> Array:
        """Start a new episode in every world and return the observations. A seed restarts the run.

        Episodes in progress are cut short and logged as such.
        """
        self._require_open()
        if seed is not None and self.batch.sampler is not None:
            self.batch.sampler.restart(_seed(seed))
        self._is_started = True
        self.batch.reset()
        return self.observations

    @property
    def drawn_episodes(self) -> NDArray[np.int64]:
        """(worlds,) how many episodes of the run each world has drawn."""
        return self.batch.rounds

    def skip_episodes(self, drawn: NDArray[np.int64]) -> None:
        """Continue as if each world had already drawn this many of the run's episodes. Call it before `reset`."""
        self._require_open()
        self.batch.skip(drawn)

    def begin(self, worlds: Sequence[int]) -> Array:
        """Start the next episode of some worlds now. Episodes in progress there are cut short and logged as such."""
        self._require_started()
        self.batch.begin(self._known_worlds(worlds))
        return self.observations

    def step(self, actions: Array) -> tuple[Array, Array, Signals]:
        """Make a step of every world and return observations, rewards and signals as views."""
        self._require_started()
        self.batch.step(actions)
        self.step_count += 1
        return self.observations, self.rewards, self.signals

    def step_with_motion(self, actions: Array, set_motion: Callable[[], None], *, observe: bool = True) -> None:
        """Make a step in which `set_motion` may replace the agents' motion before it is judged. CPU only.

        Args:
            actions: as for `step`
            set_motion: writes other motion to `agents` and `agent_flags`
            observe: whether to write observations, which takes half of a step's time
        """
        self._require_cpu("step_with_motion")
        self.batch.step(actions, set_motion, observe)
        self.step_count += 1

    def set_actions(self, actions: Array) -> None:
        """Check actions and keep them for `run_stages`."""
        self._require_started()
        self.batch.set_actions(actions)

    def run_stages(self, stages: Any) -> None:
        """Run some stages of a step, for benchmarks: bits of cpu.STAGES, or names of kernels on a GPU."""
        self._require_started()
        self.batch.run_stages(stages)

    def assign(
        self,
        world: int | Sequence[int],
        scenario: int | Sequence[int],
        episode_seed: int | Sequence[int],
        *,
        now: bool = False,
    ) -> None:
        """Queue an episode for one world, or one for each of several worlds.

        An idle world starts it at once. A running world starts it after its current episode, or at once with `now`.
        """
        self._require_open()
        worlds, seeds = self._known_worlds(world), [_seed(s) for s in np.atleast_1d(episode_seed).tolist()]
        numbers = self._known(np.atleast_1d(scenario).tolist())
        if not len(worlds) == len(numbers) == len(seeds):
            raise UsageError(f"{len(worlds)} worlds, {len(numbers)} scenarios and {len(seeds)} seeds were given")
        begin: list[int] = []
        if self._is_started:
            resting = set(self.resting_worlds.tolist())
            begin = sorted({w for w in worlds if now or w in resting})
        self.batch.assign(worlds, numbers, seeds, begin)

    def close(self) -> None:
        """Release the memory. The env cannot be used afterwards."""
        self._is_closed = True

    @property
    def agents(self) -> Array:
        """(worlds, lines, agents) float32: poses and motion of all agents, live. `state.X` and others name lines."""
        return self.batch.worlds.agents

    @property
    def agent_flags(self) -> Array:
        """(worlds, lines, agents) int32: roles, counts and flags, live. `state.ROLE` and others name the lines."""
        return self.batch.worlds.agent_flags

    @property
    def clocks(self) -> Array:
        """(worlds, columns) int32: steps, trials, agent counts, live. `state.STEP` and others name the columns."""
        return self.batch.worlds.clocks

    @property
    def actions(self) -> Array:
        """(rows, 2) float32: the actions of the last step, live."""
        return self.batch.rows.actions

    @property
    def roles(self) -> NDArray[np.int32]:
        """(rows,) the role of each row: state.EGO or state.COPLAYER, -1 for rows without an agent."""
        roles = np.where(self._is_used(), self._host("agent_flags")[:, ROLE, : self.rows_per_world], -1)
        return roles.ravel()

    @property
    def episodes(self) -> tuple[Episode | None, ...]:
        """The episode in progress in each world, None for an idle world."""
        return self.batch.episodes

    @property
    def resting_worlds(self) -> NDArray[np.int64]:
        """The numbers of the idle worlds."""
        return np.flatnonzero(self._host("clocks")[:, SCENARIO] < 0)

    @property
    def trials(self) -> NDArray[np.int32]:
        """(worlds,) the number of the trial in progress."""
        return self._host("clocks")[:, TRIAL].copy()

    @property
    def hidden(self) -> dict[str, NDArray[Any]]:
        """The hidden factors of each world's episode, for records and oracles, never for policies under test."""
        values = self._host("hidden")
        factors: dict[str, NDArray[Any]] = {name: values[:, k].copy() for k, name in enumerate(HIDDEN_FACTORS)}
        return factors | {"partner": self._host("clocks")[:, COPLAYER_POLICY].copy()}

    @property
    def final_observation(self) -> Array:
        """(rows, size) the last observation of each row's last trial, before the reset."""
        if not self.config.observe.final:
            raise UsageError("final observations are not kept; set observe.final = true")
        return self.batch.final_observations

    @property
    def action_choices(self) -> tuple[int, int] | None:
        """How many choices each part of an action has; None for continuous actions."""
        return ACTION_CHOICES[self.config.model] if self.config.actions is Actions.DISCRETE else None

    @property
    def idle_action(self) -> tuple[float, float]:
        """The action that requests nothing: a car continues straight ahead at its speed."""
        return IDLE_CHOICES[self.config.model] if self.config.actions is Actions.DISCRETE else (0.0, 0.0)

    def figures(self) -> dict[str, float | None]:
        """Return the mean over ego rows of each row's moving average, with equal weights, and their number `n`.

        Return nothing before the first episode has ended. A figure without data is None.
        """
        has_data = self._is_used() & (self._host("agent_flags")[:, ROLE, : self.rows_per_world] == EGO)
        has_data &= on_host(self.batch.logs.episode_counts) > 0
        averages = on_host(self.batch.logs.averages)[has_data].astype(np.float64)
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
        """Return the figures every `log.report_interval` steps and nothing in between."""
        return self.figures() if self.step_count % self.config.log.report_interval == 0 else {}

    def ended_episodes(self) -> EndedEpisodes:
        """Return the episodes that have ended since the last call, each with its row and its figures."""
        return self.batch.ended()

    def memory(self) -> dict[str, int]:
        """Return the bytes of `observations`, `worlds`, `scenarios` and `maps`."""
        return self.batch.memory()

    def light_states(self, world: int, steps: int) -> NDArray[np.uint8]:
        """Return the LightState of every light in the first steps of the world's trial, (lights, steps). CPU only."""
        self._require_cpu("light_states")
        states: NDArray[np.uint8] = self.batch.light_states(world, steps)
        return states

    def call_with_state(self, function: Any, *arguments: Any) -> None:
        """Call `function(worlds, maps, scenarios, settings, *arguments)`, which may read the whole state. CPU only.

        Scripted experts and measurements use it: they may know what policies cannot observe.
        """
        self._require_cpu("call_with_state")
        self.batch.call_with_state(function, *arguments)

    def set_pre_reset_callback(self, callback: Callable[[], None] | None) -> None:
        """Call a function in every step after rewards and signals are written and before anything is reset.

        Recorders use it to read the last state of a trial. None removes it.
        """
        self._require_open()
        self.batch.pre_reset_callback = callback

    def snapshot(self) -> Snapshot:
        """Return copies of everything that determines the next steps."""
        self._require_started()
        return self.batch.snapshot(self.step_count)

    def restore(self, snapshot: Snapshot) -> Array:
        """Continue from a snapshot of this env, or of one with the same config, pack and number of worlds."""
        self._require_open()
        if len(snapshot.arrays["Worlds.clocks"]) != self.world_count or (
            snapshot.arrays["Rows.observations"].shape != (self.row_count, self.observation_layout.size)
        ):
            raise UsageError("the snapshot is of an env with another number of worlds, or another config")
        self.batch.restore(snapshot)
        self.step_count = snapshot.steps
        self._is_started = True
        return self.observations

    def _make_batch(self, numbers: Sequence[int], sampler: Sampler | None, threads: int | None) -> Any:
        if self.device == "cpu":
            return CpuBatch(self.pack, self.config, self.world_count, sampler, _threads(threads))
        if threads is not None:
            raise UsageError(f"threads is {threads}, but the device is {self.device!r}; leave it out")
        if find_spec("numba_cuda") is None:
            raise DeviceError(
                f"device {self.device!r} was requested, but numba-cuda is not installed; install the extra 'cuda' "
                "(pip install 'roadworthy[cuda]'), or use the device 'cpu'"
            )
        from roadworthy.sim.backends.cuda_batch import CudaBatch  # needs torch and numba-cuda

        return CudaBatch(self.pack, self.config, self.world_count, numbers, sampler, self.device)

    def _host(self, name: str) -> NDArray[Any]:
        """Return an array of state.Worlds on the host, for reading."""
        return on_host(getattr(self.batch.worlds, name))

    def _is_used(self) -> NDArray[np.bool_]:
        """Return which slots have an agent, (worlds, slots)."""
        clocks = self._host("clocks")
        driven = np.where(clocks[:, SCENARIO] >= 0, clocks[:, DRIVEN_COUNT], 0)
        return np.arange(self.rows_per_world) < driven[:, None]

    def _known_worlds(self, worlds: int | Sequence[int]) -> list[int]:
        numbers = np.atleast_1d(np.asarray(worlds, np.int64)).tolist()
        wrong = [w for w in numbers if not 0 <= w < self.world_count]
        if wrong:
            raise UsageError(f"world {wrong[0]} was given an episode; there are worlds 0 to {self.world_count - 1}")
        return numbers

    def _known(self, scenarios: Sequence[int]) -> list[int]:
        numbers = [int(number) for number in scenarios]
        wrong = [number for number in numbers if not 0 <= number < len(self.pack)]
        if wrong or not numbers:
            given = f"scenario {wrong[0]} was asked for" if wrong else "no scenario was given"
            raise UsageError(f"{given}; {self.pack.path} has scenarios 0 to {len(self.pack) - 1}")
        return numbers

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsageError("this DriveEnv is closed; make another one")

    def _require_cpu(self, name: str) -> None:
        self._require_started()
        if self.device != "cpu":
            raise UsageError(f"{name} reads the state on the CPU, but the device is {self.device!r}; use device='cpu'")

    def _require_started(self) -> None:
        self._require_open()
        if not self._is_started:
            raise UsageError("call reset() before the first step")


def on_host(array: Array) -> NDArray[Any]:
    """Return an array of an env where NumPy can read it."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def _device(device: str) -> str:
    if device.partition(":")[0] not in DEVICES:
        raise UsageError(f"device is {device!r}, expected one of: {', '.join(DEVICES)}")
    return device


def _at_least_one(name: str, value: int) -> int:
    if int(value) != value or value < 1:
        raise UsageError(f"{name} is {value!r}, expected a whole number of at least 1")
    return int(value)


def _threads(threads: int | None) -> int:
    if threads is None:
        return MAX_THREADS
    if _at_least_one("threads", threads) > MAX_THREADS:
        raise UsageError(f"threads is {threads}, but there are {MAX_THREADS}; raise the limit with NUMBA_NUM_THREADS")
    return threads


def _seed(seed: int) -> int:
    if int(seed) != seed or not 0 <= seed < 1 << 64:
        raise UsageError(f"the seed is {seed!r}, expected a whole number from 0 to 2**64 - 1")
    return int(seed)
