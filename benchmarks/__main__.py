"""Run benchmarks by name: `python -m benchmarks [NAMES] [--share 0.1]`; without names, run all."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.catalog import BENCHMARKS
from benchmarks.runner import run


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run."""
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times per stage; the last line is JSON with machine and versions.",
        epilog="benchmarks: " + "; ".join(f"{b.name}: {b.what}" for b in BENCHMARKS),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run; all if none is named")
    parser.add_argument("--share", type=float, default=1.0, help="share of the declared sizes (default: 1)")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"benchmark {unknown[0]!r} is unknown; known: {', '.join(known)}")
    if not 0 < given.share <= 1:
        parser.error(f"--share is {given.share}; allowed: above 0, at most 1")
    run([known[name] for name in given.names or known], given.share)


if __name__ == "__main__":
    main()
