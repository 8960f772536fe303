"""Show progress on stderr: a bar on terminals, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]  # called with the number done and the total

FIRST_LINE_S = 1.0
LINE_INTERVAL_S = 5.0


@contextmanager
def progress(phase: str) -> Iterator[Report]:
    """Yield a function to call with (done, total). The display names the phase and ends with the block."""
    if sys.stderr.isatty():
        with _bar(phase) as report:
            yield report
    else:
        yield plain_lines(phase, time.monotonic)


def plain_lines(phase: str, clock: Callable[[], float]) -> Report:
    """Return a function that prints lines: after a second, every few seconds, and at the end if it took longer."""
    started = clock()
    due = started + FIRST_LINE_S
    has_spoken = False

    def report(done: int, total: int) -> None:
        nonlocal due, has_spoken
        now = clock()
        is_finished = done >= total
        if now >= due or (is_finished and has_spoken):
            sys.stderr.write(f"{phase}: {done} of {total} ({now - started:.0f} s)\n")
            sys.stderr.flush()
            due = now + LINE_INTERVAL_S
            has_spoken = not is_finished

    return report


@contextmanager
def _bar(phase: str) -> Iterator[Report]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from roadworthy.cli.output import console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(is_stderr=True), transient=True) as bar:
        number = bar.add_task(phase, total=None)
        yield lambda done, total: bar.update(number, completed=done, total=total)
