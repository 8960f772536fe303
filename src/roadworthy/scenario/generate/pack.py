"""Generate packs: the bytes do not depend on the number of processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from roadworthy.kernels.compiling import shown_while_compiling
from roadworthy.scenario.generate.config import GenerateConfig
from roadworthy.scenario.generate.scenarios import SCENARIOS_PER_PLACE, ScenarioGenerator
from roadworthy.scenario.generate.warmup import start_process
from roadworthy.scenario.pack import EncodedScenarios, PackWriter, encode_scenarios
from roadworthy.scenario.processes import available_cores, map_in_order

FUNCTIONS = 85  # about how many functions are compiled


@dataclass(frozen=True)
class Task:
    """Scenarios of one class that share a place."""

    seed: int
    behavior: str
    steps: int
    indices: tuple[int, ...]


def generate_pack(
    config: GenerateConfig,
    path: Path,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write a pack, and call `progress` with the number of finished scenarios and their total number."""
    tasks = plan(config)
    processes = min(processes or available_cores(), len(tasks))
    context = multiprocessing.get_context("spawn")
    warmup = (start_process, (context.Value("i", 0), context.Barrier(processes))) if processes > 1 else None
    done = 0
    with ExitStack() as stack, PackWriter(path) as writer:
        work = stack.enter_context(closing(map_in_order(run_task, tasks, processes, 0, initializer=warmup)))
        compiling = stack.enter_context(ExitStack())
        compiling.enter_context(shown_while_compiling("scenario", FUNCTIONS))
        for encoded in work:
            compiling.close()  # the first scenarios need all kernels
            writer.add_all_encoded(encoded)
            done += len(encoded.scenarios)
            if progress is not None:
                progress(done, config.count)


def plan(config: GenerateConfig) -> list[Task]:
    """Return all tasks in the order of the pack: the classes take turns, place by place."""
    tasks: dict[tuple[int, int], list[int]] = {}
    for number in range(config.count):
        index, behavior = divmod(number, len(config.classes))
        tasks.setdefault((index // SCENARIOS_PER_PLACE, behavior), []).append(index)
    return [
        Task(config.seed, config.classes[behavior], config.steps, tuple(indices))
        for (_, behavior), indices in sorted(tasks.items())
    ]


def run_task(task: Task) -> EncodedScenarios:
    """Generate and encode the scenarios of a task."""
    generator = ScenarioGenerator(task.seed, task.behavior, task.steps)
    return encode_scenarios(generator.scenario(index) for index in task.indices)
