"""Work on a stream of items, spread over processes: results in order, memory bounded, nobody left behind."""

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
from typing import TypeVar

from roadworthy.errors import RoadworthyError

Item = TypeVar("Item")
Result = TypeVar("Result")

# The first items are worked on here, which compiles what others then find in the cache; a stream of no more than these
# is done before a process would have started.
FIRST_ITEMS = 16
WAITING_PER_PROCESS = 2


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], processes: int, first_items: int | None = None
) -> Generator[Result, None, None]:
    """What the function gives for each item. A few items for each process are drawn ahead, never more."""
    items = iter(items)
    yield from map(
        function, islice(items, FIRST_ITEMS if first_items is None else first_items) if processes > 1 else items
    )
    if processes == 1:
        return
    # Fresh processes: a fork would copy the locks of whatever threads run here.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), end_with_parent)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            with _interrupts_held_back():
                waiting.append(pool.submit(function, item))
            if len(waiting) > WAITING_PER_PROCESS * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise RoadworthyError(
            "a worker process was killed, perhaps because memory ran out; nothing was written; try --processes 1"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes that are started in here never see a Ctrl-C, as they inherit the mask; this one gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """From now on this process ends when its parent is gone: it has nobody left to work for."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
