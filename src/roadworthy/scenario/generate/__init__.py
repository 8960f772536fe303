"""The generator: road networks, traffic on them, and scenarios of twelve behavior classes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadworthy.scenario.generate.config import GenerateConfig

__all__ = ["GenerateConfig", "GenerationReport", "generate"]


@dataclass(frozen=True)
class GenerationReport:
    """A pack that was generated."""

    path: Path
    scenario_count: int
    map_count: int
    tag_counts: dict[str, int]


def generate(
    out: str | os.PathLike[str],
    *,
    count: int = GenerateConfig.count,
    seed: int = GenerateConfig.seed,
    steps: int = GenerateConfig.steps,
    classes: Sequence[str] = GenerateConfig.classes,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GenerationReport:
    """Generate a pack of scenarios from a seed: road networks with recorded traffic.

    Equal settings give equal bytes, for any number of processes. The file appears complete or not at all.

    Args:
        out: The pack file. Missing folders are created, and an existing file is replaced.
        count: The number of scenarios.
        seed: The seed.
        steps: The number of steps of 0.1 s in each scenario, at least 91. From 161 on, every scenario qualifies for
            the exam of its class.
        classes: The behavior classes, which take turns.
        processes: The number of processes; one per available core by default.
        progress: A function that is called with the number of finished scenarios and their total number.

    Returns:
        The path and the contents of the pack.

    Raises:
        ConfigError: If a setting is wrong; nothing is written.
        GenerationError: If no scenario of a class is found.

    Example:
        >>> import roadworthy as rw
        >>> rw.generate("town.pack", count=24, seed=7).tag_counts["merge"]
        2
    """
    from roadworthy.scenario.generate.pack import generate_pack
    from roadworthy.scenario.pack import Pack

    path = Path(out)
    generate_pack(GenerateConfig(count, seed, steps, tuple(classes)), path, processes=processes, progress=progress)
    with Pack(path) as pack:
        return GenerationReport(path, len(pack), pack.map_count, pack.tag_counts)
