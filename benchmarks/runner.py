"""Run benchmarks: collect times per stage, print them as a tree, and end with a line of JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Sizes = Mapping[str, int]
PACKAGES = ("roadworthy", "numpy", "numba", "torch")


@dataclass
class Measurements:
    """The results of one benchmark: seconds of every repetition of each stage, and other figures."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    figures: dict[str, float | int | None] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the body of the with statement as one repetition of a stage."""
        start = time.perf_counter()
        yield
        self.seconds.setdefault(name, []).append(time.perf_counter() - start)


@dataclass(frozen=True)
class Benchmark:
    """The declaration of one benchmark."""

    name: str
    what: str
    code: Callable[[Measurements, Sizes], None]
    sizes: Sizes
    goals: Mapping[str, float] = field(default_factory=dict)  # upper limits of the median seconds of stages


def run(benchmarks: Sequence[Benchmark], share: float = 1.0) -> None:
    """Run each benchmark with a share of its sizes and print the results."""
    results: dict[str, Any] = {}
    for benchmark in benchmarks:
        sizes = {name: max(round(size * share), 1) for name, size in benchmark.sizes.items()}
        print(f"{benchmark.name}: {benchmark.what} ({', '.join(f'{n} {name}' for name, n in sizes.items())})")
        found = Measurements()
        benchmark.code(found, sizes)
        stages = {name: _summary(seconds) for name, seconds in found.seconds.items()}
        for name, summary in stages.items():
            goal = benchmark.goals.get(name)
            aim = f"   goal {_readable(goal)}" if goal is not None else ""
            print(
                f"  {name:<24}{_readable(summary['median_s']):>10}   {_readable(summary['min_s'])} to "
                f"{_readable(summary['max_s'])}, n = {summary['n']}{aim}"
            )
        for name, value in found.figures.items():
            print(f"  {name:<24}{'unknown' if value is None else f'{value:,}':>10}")
        results[benchmark.name] = {"sizes": sizes, "stages": stages, "figures": found.figures}
    print(json.dumps({"benchmarks": results, "machine": _machine(), "versions": _versions()}))


def resident_bytes() -> int | None:
    """Return the resident memory of this process, if the system reports it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _summary(seconds: list[float]) -> dict[str, float | int]:
    return {
        "n": len(seconds),
        "median_s": statistics.median(seconds),
        "min_s": min(seconds),
        "max_s": max(seconds),
        "total_s": sum(seconds),
    }


def _readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def _processor() -> str:
    """Return the processor's name, which Python does not report on Linux."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions
