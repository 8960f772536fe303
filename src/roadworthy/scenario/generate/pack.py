"""A pack of generated scenarios: the same bytes whatever the number of processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roadworthy.errors import RoadworthyError
from roadworthy.scenario.generate.config import GenerateConfig
from roadworthy.scenario.generate.producer import SCENARIOS_PER_PLACE, Producer
from roadworthy.scenario.generate.warmup import start_process
from roadworthy.scenario.pack import PackWriter, encode_map, encode_scenario


@dataclass(frozen=True)
class Task:
    """Scenarios of one class that share a place."""

    seed: int
    behavior: str
    steps: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """What a task gave: encoded maps, and encoded scenarios with the number of their map among these."""

    maps: tuple[bytes, ...]
    scenarios: tuple[tuple[bytes, int], ...]


def generate_pack(
    config: GenerateConfig,
    path: Path,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write a pack. `progress` is called with the numbers of finished and of all scenarios."""
    tasks = plan(config)
    done = 0
    with PackWriter(path) as writer:
        for batch in _carry_out(tasks, processes or available_cores()):
            numbers = [writer.add_encoded_map(block) for block in batch.maps]
            for block, place in batch.scenarios:
                writer.add_encoded(block, numbers[place])
            done += len(batch.scenarios)
            if progress is not None:
                progress(done, config.count)


def plan(config: GenerateConfig) -> list[Task]:
    """All tasks in the order of the pack: classes in turn, place by place."""
    tasks: dict[tuple[int, int], list[int]] = {}
    for number in range(config.count):
        index, behavior = divmod(number, len(config.classes))
        tasks.setdefault((index // SCENARIOS_PER_PLACE, behavior), []).append(index)
    return [
        Task(config.seed, config.classes[behavior], config.steps, tuple(indices))
        for (_, behavior), indices in sorted(tasks.items())
    ]


def carry_out(task: Task) -> Batch:
    """Make and encode the scenarios of a task."""
    producer = Producer(task.seed, task.behavior, task.steps)
    scenarios = [producer.scenario(index) for index in task.indices]
    places: dict[int, int] = {}
    maps: list[bytes] = []
    for scenario in scenarios:
        if id(scenario.map) not in places:
            places[id(scenario.map)] = len(maps)
            maps.append(encode_map(scenario.map))
    return Batch(tuple(maps), tuple((encode_scenario(s), places[id(s.map)]) for s in scenarios))


def _carry_out(tasks: list[Task], processes: int) -> Iterator[Batch]:
    processes = min(processes, len(tasks))
    if processes == 1:
        yield from map(carry_out, tasks)
        return
    # Fresh processes: a fork would copy the locks of whatever threads run here.
    context = multiprocessing.get_context("spawn")
    shared = context.Value("i", 0), context.Barrier(processes)
    pool = ProcessPoolExecutor(processes, context, start_process, shared)
    try:
        with _interrupts_ignored():
            batches = pool.map(carry_out, tasks)
        yield from batches
    except BrokenProcessPool:
        raise RoadworthyError(
            "a worker process was killed, perhaps because memory ran out; nothing was written; try --processes 1"
        ) from None
    finally:
        # Whatever the reason to leave early, the workers must not keep anybody waiting.
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started in here never see a Ctrl-C: this one alone decides what it means."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
