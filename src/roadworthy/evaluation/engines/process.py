"""A worker process: runs the episodes that it is given, and writes its output to a log."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from roadworthy.errors import RoadworthyError, summary_of
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import RunError, RunnerSpec, reason_of, traceback_of
from roadworthy.evaluation.watch import Watch
from roadworthy.scenario.processes import end_with_parent

# Messages of a worker to its pool, as (word, content).
NEXT, RESULT, RAISED, DONE = "next", "result", "raised", "done"


@dataclass(frozen=True)
class Work:
    """What a worker is asked to do."""

    spec: RunnerSpec
    watch: Path
    # The file of the watch.
    is_probe: bool = False
    # Whether to look for faults of the policy instead of running episodes.


@dataclass(frozen=True)
class Raised:
    """An error that ended the work."""

    summary: str
    traceback: str
    reason: str
    is_ours: bool
    # Whether the message is complete without the traceback.
    ends_run: bool
    # Whether the run can't continue.


def serve(connection: Connection, number: int, log: str) -> None:
    """Do work until the connection closes; the main function of a worker process."""
    _set_up(Path(log))
    while True:
        try:
            work = connection.recv()
        except EOFError:
            return
        if work is None:
            return
        try:
            (_probe if work.is_probe else _run)(connection, number, work)
        except Exception as error:
            is_ours, ends_run = isinstance(error, RoadworthyError), isinstance(error, RunError)
            raised = Raised(summary_of(error), traceback_of(error), reason_of(error), is_ours, ends_run)
            connection.send((RAISED, raised))
        else:
            connection.send((DONE, None))


def _probe(connection: Connection, number: int, work: Work) -> None:
    watch = Watch(work.spec.watched, work.watch, is_new=False)
    work.spec.open(watch, process=number, most=1, threads=1).close()  # compiles
    connection.send((NEXT, None))
    connection.recv()
    connection.send((RESULT, work.spec.probe()))


def _run(connection: Connection, number: int, work: Work) -> None:
    def ask(share: tuple[int, int] | None = None) -> EpisodeSpec | None:
        connection.send((NEXT, share))
        return connection.recv()

    watch = Watch(work.spec.watched, work.watch, is_new=False)
    runner = work.spec.open(watch, process=number, threads=1)
    try:
        runner.run(ask, lambda result: connection.send((RESULT, result)))
    finally:
        runner.close()


def _set_up(log: Path) -> None:
    """Make this process a session that can be ended as a whole, with its output in the log."""
    with contextlib.suppress(OSError):
        os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable(sys.stderr)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=False)  # shows where it is when it takes too long
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first to be killed when memory runs out
    end_with_parent()
