"""Show the progress of a phase on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

Report = Callable[[int, int], None]  # of (done, total)
# Shows the progress of a phase: called with its name; the context gives a function of (done, total).
Showing = Callable[[str], AbstractContextManager[Report]]

FIRST_LINE_S = 1.0
LINE_INTERVAL_S = 5.0

_bars: list[Any] = []  # the display in use, if any


def show_nothing(phase: str) -> AbstractContextManager[Report]:
    """Show no progress."""
    return nullcontext(lambda done, total: None)


@contextmanager
def progress(phase: str) -> Iterator[Report]:
    """Yield a function of (done, total) that shows the progress of a phase until the context ends."""
    if sys.stderr.isatty():
        with _bar(phase) as report:
            yield report
    else:
        yield plain_lines(phase, time.monotonic)


def plain_lines(phase: str, clock: Callable[[], float]) -> Report:
    """Return a function that writes lines: after a second, every few seconds, and at the end of a long phase."""
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
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with ExitStack() as stack:
        if not _bars:  # a phase within another one is a line of the same display
            _bars.append(stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True)))
            stack.callback(_bars.clear)
        bar = _bars[0]
        number = bar.add_task(phase, total=None)
        stack.callback(bar.remove_task, number)
        stack.callback(bar.refresh)  # a short phase is seen once
        yield lambda done, total: bar.update(number, completed=done, total=total)
