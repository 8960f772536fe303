"""Spread work over processes: results in order, bounded memory, prompt interrupts, no process left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from roadworthy.errors import RoadworthyError

Item = TypeVar("Item")
Result = TypeVar("Result")

# The calling process handles the first items. It compiles the kernels, which the other processes then find in the
# cache, and a short stream ends before a process would have started.
FIRST_ITEMS = 16
WAITING_PER_PROCESS = 2


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    processes: int,
    first_items: int | None = None,
    *,
    initializer: tuple[Callable[..., None], Any] | None = None,
) -> Generator[Result, None, None]:
    """Yield the function's result for each item, in the order of the items.

    Closing the generator, or an exception in the caller, ends the processes at once.

    Args:
        function: The function; processes must be able to import it.
        items: The items. At most WAITING_PER_PROCESS for each process are drawn ahead.
        processes: The number of processes; with 1, the calling process does all the work.
        first_items: The number of items that the calling process handles before it starts others (FIRST_ITEMS).
        initializer: A function, and its arguments, that each process calls first. It must call `end_with_parent`.
    """
    items = iter(items)
    yield from map(
        function, islice(items, FIRST_ITEMS if first_items is None else first_items) if processes > 1 else items
    )
    if processes == 1:
        return
    start, arguments = initializer or (end_with_parent, ())
    # Fresh processes: a fork would copy the locks of other threads.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), start, arguments)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            with interrupts_blocked():
                waiting.append(pool.submit(function, item))
            if len(waiting) > WAITING_PER_PROCESS * processes:
                yield waiting[0].result()
                waiting.popleft()
        while waiting:
            yield waiting[0].result()
            waiting.popleft()
    except BrokenProcessPool:
        raise RoadworthyError(
            "a worker process was killed, perhaps because memory ran out; nothing was written; try --processes 1"
        ) from None
    finally:
        if waiting:  # the caller left early: do not wait for unfinished work
            for process in list(pool._processes.values()):
                process.terminate()
        pool.shutdown(cancel_futures=True)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT while processes start: they inherit the mask, so that only the parent reacts to Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Make this process end when its parent ends."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
