"""The worlds of an env on a GPU. The device holds all state and chooses each world's next episode itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.errors import ConfigError, DeviceError, ScenarioError, UsageError
from roadworthy.kernels.cuda import IS_SIMULATED, cuda
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Ints
from roadworthy.sim.backends import cuda as kernels
from roadworthy.sim.backends import cuda_memory, cuda_observe
from roadworthy.sim.backends.allocation import bytes_of, make_logs, make_rows, make_worlds, rounded_up
from roadworthy.sim.backends.cuda import BAD_ACTIONS, BAD_ROW, ENDED, EndedRows
from roadworthy.sim.backends.episode_queue import QUEUE_LENGTH, QUEUE_ROOM, QUEUE_START, RUN_SEED, EpisodeQueue
from roadworthy.sim.config import AtGoal, Mode, Others, SimConfig
from roadworthy.sim.episodes import EndedEpisodes, Episode, Sampler
from roadworthy.sim.layout import layout
from roadworthy.sim.maps.scenario_store import ScenarioStore
from roadworthy.sim.params import params
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES, figure_names
from roadworthy.sim.snapshot import Snapshot
from roadworthy.sim.state import MAP, SCENARIO

_EPISODE_LOG_SIZE = 65_536
# Warps per multiprocessor that start agents, and worlds per warp. More of them would wait for each other.
_START_WARPS, _WORLDS_PER_WARP = 4, 8
_MAX_GRID_Y = 65_535  # thread blocks that a grid may have in its second dimension
_LINE = 32  # floats in 128 bytes, which a warp writes at once: rows of observations are padded to whole lines


class Kernel(NamedTuple):
    """A kernel of the step, with its arguments."""

    name: str
    function: Any
    arguments: tuple[Any, ...]
    blocks: int | tuple[int, ...]
    threads: int

    def launch(self) -> None:
        """Launch it on torch's current stream."""
        stream = 0 if IS_SIMULATED else cuda.external_stream(torch.cuda.current_stream().cuda_stream)
        self.function[self.blocks, self.threads, stream](*self.arguments)


class CudaBatch:
    """W worlds on a GPU. `step` does not wait for the GPU, and a caller can capture it in a CUDA graph."""

    def __init__(
        self, pack: Pack, config: SimConfig, worlds: int, numbers: Sequence[int], sampler: Sampler | None, device: str
    ) -> None:
        if config.reward.terms or config.observe.blocks:
            names = ", ".join([*config.reward.terms, *config.observe.blocks])
            raise ConfigError(
                f"device {device!r} runs the built-in reward terms and observation blocks only, but the config names "
                f'{names}; use device = "cpu", or leave them out'
            )
        self._device = cuda_memory.ready_device(device)
        self.sampler, self._world_count = sampler, worlds
        library, choices, slot_maps, self._numbers = _load(pack, config, numbers)
        self.rows_per_world = library.rows_per_world
        self._params, trials = params(config), config.episode.trials
        room, self._size = max(library.agent_room, self.rows_per_world), layout(config).size
        width, row_count = -(-self._size // _LINE) * _LINE, worlds * self.rows_per_world
        remedy = f"fewer than {worlds} worlds, {len(numbers)} scenarios or entries in an observation need less"
        try:
            moving, starts = make_worlds(worlds, int(self._params.goal_count), room)
            parts: list[Any] = [
                moving,
                starts,
                make_logs(worlds, self.rows_per_world, trials),
                make_rows(row_count, config, width),
                library.maps,
                library.scenarios,
                _make_episode_queue(worlds, sampler, choices, slot_maps),
                _make_ended(max(_EPISODE_LOG_SIZE, 2 * row_count), trials),
            ]
        except MemoryError as error:
            raise DeviceError(
                f"the host does not have enough memory to prepare the arrays of {device} ({error}); {remedy}"
            ) from error
        cuda_memory.require_memory(self._device, sum(map(bytes_of, parts)), remedy)
        # The same memory twice: as torch tensors, and as arrays for kernels.
        tensors = [cuda_memory.upload(part, self._device) for part in parts]
        self.worlds, self.starts, self.logs, self.rows = tensors[:4]
        self._maps, self._scenarios, self._episode_queue, self._ended = tensors[4:]
        self._kernel_views = {
            type(part).__name__: cuda_memory.kernel_views(tensor, part)
            for tensor, part in zip(tensors, parts, strict=True)
        }
        packed = self._params.packed()
        self._settings: Any = packed.view(np.recarray) if IS_SIMULATED else cuda.to_device(packed)
        self._is_cut = torch.zeros(worlds, dtype=torch.int32, device=self._device)
        self.observations = self.rows.observations[:, : self._size]
        self.final_observations = self.rows.final_observations[:, : self._size]
        is_clean = bool(self._params.blind_rate == 0 and self._params.dropout == 0)
        self._observers = cuda_observe.observers(layout(config), is_clean)
        self._first, self._step = self._kernels_of_start(config), self._kernels_of_step(config)
        self.pre_reset_callback: Callable[[], None] | None = None  # see DriveEnv.set_pre_reset_callback
        self._graphs: dict[str, Any] = {}

    def reset(self) -> None:
        """Start another episode in every world; cut short and log those in progress."""
        if self.sampler is not None:
            self._episode_queue.run[RUN_SEED] = _signed(self.sampler.seed)
            if not self.sampler.rounds.any():
                self._episode_queue.rounds.zero_()
                self.sampler.rounds += 1  # from here on the device counts
        for tensor in (self.rows.rewards, self.rows.trial_ended, self.rows.episode_ended, self.rows.timed_out):
            tensor.zero_()
        self.begin(range(self._world_count))

    def step(self, actions: Any) -> None:
        """Make a step of every world without waiting for the GPU; worlds whose episode ended start another one."""
        self.set_actions(actions)
        if self.pre_reset_callback is None:
            self._run("step", self._step)
        else:
            settled = 1 + self.stage_names.index("finish step")
            self._run("before reset", self._step[:settled])
            self.pre_reset_callback()
            self._run("reset", self._step[settled:])

    def set_actions(self, actions: Any) -> None:
        """Copy actions to the rows. The next call that reads results reports invalid ones."""
        given, expected = torch.as_tensor(actions), self.rows.actions
        if given.shape != expected.shape:
            raise UsageError(f"actions have shape {tuple(given.shape)}, expected {tuple(expected.shape)}: two per row")
        if given.dtype is torch.bool or given.is_complex():
            raise UsageError(f"actions are of type {given.dtype}, expected numbers")
        expected.copy_(given, non_blocking=True)

    def run_stages(self, stages: Sequence[str]) -> None:
        """Launch some of the kernels of a step (`stage_names`)."""
        self._launch([kernel for kernel in self._step if kernel.name in stages])

    @property
    def stage_names(self) -> tuple[str, ...]:
        return tuple(kernel.name for kernel in self._step)

    def assign(self, worlds: Sequence[int], scenarios: Sequence[int], seeds: Sequence[int], now: Sequence[int]) -> None:
        """Queue an episode for each of these worlds. Worlds in `now` and idle worlds start it at once."""
        queues = self._episode_queue.queues.cpu().numpy()
        slots = self._episode_queue.waiting_slots.cpu().numpy()
        waiting_seeds = self._episode_queue.waiting_seeds.cpu().numpy()
        known = {number: slot for slot, number in enumerate(self._numbers)}
        for world, scenario, seed in zip(worlds, scenarios, seeds, strict=True):
            if scenario not in known:
                raise UsageError(
                    f"scenario {scenario} is not on the GPU: it is not among the `scenarios` of the env, or no agent "
                    "in it can be driven with this config"
                )
            if queues[world, QUEUE_LENGTH] == QUEUE_ROOM:
                raise UsageError(
                    f"{QUEUE_ROOM} episodes wait in world {world}, which is the limit; assign more when some have ended"
                )
            place = (queues[world, QUEUE_START] + queues[world, QUEUE_LENGTH]) % QUEUE_ROOM
            slots[world, place], waiting_seeds[world, place] = known[scenario], _signed(seed)
            queues[world, QUEUE_LENGTH] += 1
        for tensor, array in (
            (self._episode_queue.queues, queues),
            (self._episode_queue.waiting_slots, slots),
            (self._episode_queue.waiting_seeds, waiting_seeds),
        ):
            tensor.copy_(torch.from_numpy(array))
        if len(now):
            self.begin(now)

    @property
    def episodes(self) -> tuple[Episode | None, ...]:
        """The episode in progress in each world, None for an idle world."""
        clocks, numbers = self.worlds.clocks.cpu().numpy(), self._episode_queue.numbers.cpu().numpy()
        seeds = self.worlds.seeds.cpu().numpy().view(np.uint64)
        return tuple(
            Episode(int(number), self._numbers[slot], int(seed)) if slot >= 0 else None
            for slot, number, seed in zip(clocks[:, SCENARIO], numbers, seeds, strict=True)
        )

    def ended(self) -> EndedEpisodes:
        """Return the episodes that have ended since the last call, sorted by step and row."""
        ended = self._ended._make(tensor.cpu().numpy() for tensor in self._ended)
        self._check(ended.counts)
        count, room = int(ended.counts[ENDED]), len(ended.rows)
        self._ended.counts[ENDED] = 0
        kept = np.lexsort((ended.rows[: min(count, room)], ended.steps[: min(count, room)]))
        return EndedEpisodes(
            rows=ended.rows[kept].astype(np.int64),
            numbers=ended.numbers[kept],
            scenarios=np.asarray(self._numbers, np.int64)[ended.slots[kept]],
            seeds=ended.seeds[kept].view(np.uint64),
            is_ego=ended.is_ego[kept] != 0,
            is_cut=ended.is_cut[kept] != 0,
            figures=ended.figures[kept],
            trials=ended.trials[kept],
        )

    @property
    def rounds(self) -> NDArray[np.int64]:
        """(W,) episodes drawn for each world."""
        drawn: NDArray[np.int64] = self._episode_queue.rounds.cpu().numpy()
        return drawn.copy()

    def skip(self, rounds: NDArray[np.int64]) -> None:
        """Continue as if this many episodes had been drawn for each world."""
        assert self.sampler is not None
        self.sampler.rounds[:] = rounds
        self._episode_queue.rounds.copy_(torch.from_numpy(rounds))

    def parts(self) -> tuple[Any, ...]:
        """Return all tensors that change."""
        return self.worlds, self.starts, self.logs, self.rows

    def memory(self) -> dict[str, int]:
        """Return the bytes of each part on the device."""

        def size(tensors: Any) -> int:
            return sum(tensor.untyped_storage().nbytes() for tensor in tensors)

        observations = size((self.rows.observations, self.rows.final_observations))
        return {
            "observations": observations,
            "worlds": sum(map(size, (*self.parts(), self._episode_queue, self._ended))) - observations,
            "scenarios": size(self._scenarios),
            "maps": size(self._maps),
        }

    def snapshot(self, steps: int) -> Snapshot:
        """Return copies of everything that determines the next steps, on the host, with scenarios named by number."""
        arrays = {}
        for part in self.parts():
            kind = type(part).__name__
            for name, tensor in part._asdict().items():
                arrays[f"{kind}.{name}"] = tensor.cpu().numpy().view(getattr(self._kernel_views[kind], name).dtype)
        for name in ("Rows.observations", "Rows.final_observations"):
            arrays[name] = arrays[name][:, : self._size]
        queues = self._episode_queue.queues.tolist()
        slots = self._episode_queue.waiting_slots.cpu().numpy()
        seeds = self._episode_queue.waiting_seeds.cpu().numpy().view(np.uint64)
        waiting = tuple(
            tuple(
                Episode(-1, self._numbers[slots[w, k % QUEUE_ROOM]], int(seeds[w, k % QUEUE_ROOM]))
                for k in range(start, start + length)
            )
            for w, (start, length) in enumerate(queues)
        )
        seed = 0 if self.sampler is None else self.sampler.seed
        return Snapshot(arrays, self.episodes, waiting, self.rounds, seed, steps)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of an env with the same config, pack and number of worlds."""
        for part in self.parts():
            for name, tensor in part._asdict().items():
                saved = snapshot.arrays[f"{type(part).__name__}.{name}"]
                saved = saved.view(np.int64) if saved.dtype == np.uint64 else saved
                tensor[tuple(slice(size) for size in saved.shape)] = torch.from_numpy(saved).to(self._device)
        known = {number: slot for slot, number in enumerate(self._numbers)}
        clocks, slot_maps = snapshot.arrays["Worlds.clocks"].copy(), self._episode_queue.slot_maps.tolist()
        for world, episode in enumerate(snapshot.running):
            clocks[world, SCENARIO] = -1 if episode is None else known[episode.scenario]
            clocks[world, MAP] = 0 if episode is None else slot_maps[known[episode.scenario]]
            self._episode_queue.numbers[world] = -1 if episode is None else episode.number
        self.worlds.clocks.copy_(torch.from_numpy(clocks))
        self._episode_queue.queues.zero_()
        queued = [(w, episode) for w, episodes in enumerate(snapshot.waiting) for episode in episodes]
        self.assign([w for w, _ in queued], [e.scenario for _, e in queued], [e.seed for _, e in queued], ())
        if self.sampler is not None:
            self.sampler.restart(snapshot.seed)
            self.skip(snapshot.rounds)
            self._episode_queue.run[RUN_SEED] = _signed(snapshot.seed)

    @property
    def _threads(self) -> int:
        return rounded_up(self.worlds.agents.shape[-1])

    def _kernel(self, name: str, function: Any, parts: str, *more: Any, threads: int = 0) -> Kernel:
        """Return a kernel with a thread block per world and, by default, a thread per agent."""
        arguments = (*(self._kernel_views[part] for part in parts.split()), self._settings, *more)
        return Kernel(name, function, arguments, self._world_count, threads or self._threads)

    def _observe_kernel(self, name: str, function: Any) -> Kernel:
        """Return a kernel with a warp per row."""
        arguments = (*(self._kernel_views[part] for part in ("Worlds", "Rows", "Maps", "Scenarios")), self._settings)
        # Thread blocks of one world are neighbors because they read the same data.
        beside = min(self._world_count, _MAX_GRID_Y)
        blocks = -(-self.rows_per_world // cuda_observe.WARPS), beside, -(-self._world_count // beside)
        return Kernel(name, function, arguments, blocks, cuda_observe.WARPS * cuda_observe.WARP)

    def _kernels_of_step(self, config: SimConfig) -> list[Kernel]:
        """Return the kernels of a step in order, without those that the config does not need."""
        is_open = config.mode is Mode.OPEN
        has_traffic = config.open.traffic > 0 if is_open else config.control.others is Others.IDM
        needs_places = is_open or config.goal.at_goal is AtGoal.RESPAWN
        traffic, rows = "Worlds Maps Scenarios", rounded_up(self.rows_per_world)
        return [
            *([self._kernel("place driven", kernels.place_driven, "Worlds Maps")] if has_traffic else []),
            *([self._kernel("plan traffic", kernels.plan_traffic, traffic)] if has_traffic else []),
            self._kernel("move", kernels.move, "Worlds Rows Scenarios EndedRows"),
            *([self._kernel("move traffic", kernels.move_traffic, traffic)] if has_traffic else []),
            self._judge_kernel(),
            self._kernel("finish step", kernels.finish_step, "Worlds Logs Rows EpisodeQueue EndedRows", threads=rows),
            *([self._kernel("appearances", kernels.update_appearances, "Worlds")] if config.observe.final else []),
            *([self._observe_kernel("observe last", self._observers.observe_last)] if config.observe.final else []),
            self._kernel("advance trial", kernels.advance_trial, "Worlds Starts Maps"),
            self._kernel("begin", kernels.begin, "Worlds Maps Scenarios EpisodeQueue"),
            *([self._start_kernel(is_step=True)] if needs_places else []),
            self._kernel("finish start", kernels.finish_start, "Worlds Starts Maps Scenarios"),
            self._observe_kernel("observe", self._observers.observe_all),
        ]

    def _kernels_of_start(self, config: SimConfig) -> list[Kernel]:
        """Return the kernels that start the episodes of worlds whose episodes are cut short."""
        return [
            self._kernel(
                "cut",
                kernels.cut,
                "Worlds Logs EpisodeQueue EndedRows",
                cuda_memory.kernel_view(self._is_cut, np.dtype(np.int32)),
            ),
            self._kernel("begin", kernels.begin, "Worlds Maps Scenarios EpisodeQueue"),
            *([self._start_kernel(is_step=False)] if config.mode is Mode.OPEN else []),
            self._kernel("finish start", kernels.finish_start, "Worlds Starts Maps Scenarios"),
            self._observe_kernel("observe", self._observers.observe_all),
        ]

    def _start_kernel(self, is_step: bool) -> Kernel:
        """Return a kernel with a thread per world; of more worlds than run at once some share a thread block."""
        kernel = self._kernel("start", kernels.place_agents, "Worlds Starts Maps Scenarios", is_step)
        warps = _START_WARPS * cuda_memory.processor_count(self._device)
        threads = min(-(-self._world_count // warps), _WORLDS_PER_WARP)
        return kernel._replace(blocks=-(-self._world_count // threads), threads=threads)

    def _judge_kernel(self) -> Kernel:
        kernel = self._kernel("judge", kernels.judge, "Worlds Maps Scenarios")
        blocks = self._world_count, -(-self.rows_per_world // kernels.AGENTS_PER_BLOCK), kernels.QUESTIONS
        return kernel._replace(blocks=blocks, threads=kernels.AGENTS_PER_BLOCK)

    def _launch(self, some: Sequence[Kernel]) -> None:
        for kernel in some:
            kernel.launch()

    def _run(self, name: str, some: Sequence[Kernel]) -> None:
        """Launch kernels, as a CUDA graph from the second time on: compiling them the first time cannot be captured."""
        if IS_SIMULATED or torch.cuda.is_current_stream_capturing():
            self._launch(some)
        elif name not in self._graphs:
            self._launch(some)
            self._graphs[name] = None
        else:
            if self._graphs[name] is None:
                self._graphs[name] = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graphs[name]):
                    self._launch(some)
            self._graphs[name].replay()

    def begin(self, worlds: Sequence[int]) -> None:
        """Start the next episode of these worlds at once; cut short those in progress."""
        self._is_cut.zero_()
        self._is_cut[torch.tensor(list(worlds), device=self._device)] = 1
        self._launch(self._first)

    def _check(self, counts: NDArray[np.int64]) -> None:
        """Raise an error if there was an invalid action since the last check."""
        if counts[BAD_ACTIONS]:
            self._ended.counts[BAD_ACTIONS : BAD_ROW + 1] = 0
            p = self._params
            allowed = (
                "two finite numbers, -1 to 1 (larger values are clipped)"
                if p.is_continuous
                else f"a whole number from 0 to {p.choices_along - 1} and one from 0 to {p.choices_across - 1}"
            )
            raise UsageError(
                f"{counts[BAD_ACTIONS]} actions were invalid, one of them of row {counts[BAD_ROW]}; allowed: {allowed}"
            )


def _load(pack: Pack, config: SimConfig, numbers: Sequence[int]) -> tuple[ScenarioStore, Ints, Ints, list[int]]:
    """Load scenarios on the host; return the slot of each (-1: not drivable), and each slot's map and scenario."""
    library = ScenarioStore(pack, config, len(numbers), keeps=False)
    choices = np.full(len(numbers), -1, np.int32)
    slot_maps: dict[int, int] = {}
    last_error: ScenarioError | None = None
    for k, number in enumerate(numbers):
        try:
            place = library.load(k, number)
            choices[k], slot_maps[place.scenario] = place
        except ScenarioError as error:
            last_error = error
    if not slot_maps:
        raise ScenarioError(f"none of {len(numbers)} scenarios can be driven; the last: {last_error}") from last_error
    by_slot = {int(slot): number for slot, number in zip(choices, numbers, strict=True) if slot >= 0}
    slots = range(len(slot_maps))
    return library, choices, np.array([slot_maps[slot] for slot in slots], np.int32), [by_slot[slot] for slot in slots]


def _make_episode_queue(worlds: int, sampler: Sampler | None, choices: Ints, slot_maps: Ints) -> EpisodeQueue:
    run = np.zeros(4, np.uint64)
    if sampler is not None:
        run[:] = sampler.seed, sampler.first_world, sampler.world_total, 1
    return EpisodeQueue(
        run=run,
        choices=choices,
        slot_maps=slot_maps,
        rounds=np.zeros(worlds, np.int64),
        numbers=np.full(worlds, -1, np.int64),
        queues=np.zeros((worlds, 2), np.int32),
        waiting_slots=np.zeros((worlds, QUEUE_ROOM), np.int32),
        waiting_seeds=np.zeros((worlds, QUEUE_ROOM), np.uint64),
    )


def _make_ended(room: int, trials: int) -> EndedRows:
    longs, wholes = (np.zeros(room, np.int64) for _ in range(2)), (np.zeros(room, np.int32) for _ in range(4))
    return EndedRows(
        counts=np.zeros(4, np.int64),
        steps=next(longs),
        rows=next(wholes),
        numbers=next(longs),
        slots=next(wholes),
        seeds=np.zeros(room, np.uint64),
        is_ego=next(wholes),
        is_cut=next(wholes),
        figures=np.zeros((room, len(figure_names(trials))), np.float32),
        trials=np.zeros((room, trials, len(TRIAL_FIGURES)), np.float32),
    )


def _signed(number: int) -> int:
    """Return an unsigned 64-bit number as the signed one with the same bits, which torch can hold."""
    return int(np.uint64(number).astype(np.int64))
