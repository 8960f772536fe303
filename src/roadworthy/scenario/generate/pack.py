"""A pack of generated scenarios: the same bytes whatever the number of processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from roadworthy.errors import ConfigError
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.producer import DEFAULT_STEPS, SCENARIOS_PER_PLACE, Producer
from roadworthy.scenario.generate.warmup import start_process
from roadworthy.scenario.pack import PackWriter, encode_map, encode_scenario


@dataclass(frozen=True)
class GenerateConfig:
    """What to generate."""

    count: int = 1200
    # How many scenarios.
    seed: int = 0
    # The same seed gives the same bytes.
    steps: int = DEFAULT_STEPS
    # Steps of 0.1 s in each scenario: 11 of history, the rest is future.
    classes: tuple[str, ...] = BEHAVIORS
    # Behaviour classes, in turn.

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"count is {self.count}, expected at least 1")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, expected 0 or more")
        if self.steps < DEFAULT_STEPS:
            raise ConfigError(f"steps is {self.steps}, expected at least {DEFAULT_STEPS}: behaviours take time")
        unknown = [name for name in self.classes if name not in BEHAVIORS]
        if unknown or not self.classes:
            raise ConfigError(
                f"class {', '.join(map(repr, unknown)) or '(none)'} is unknown; known: {', '.join(BEHAVIORS)}"
            )
        if len(set(self.classes)) < len(self.classes):
            raise ConfigError(f"classes name one class twice: {', '.join(self.classes)}")


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
        for batch in _carry_out(tasks, processes or os.cpu_count() or 1):
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
    with ProcessPoolExecutor(processes, context, start_process, shared) as pool:
        yield from pool.map(carry_out, tasks)
