"""A worker process: carries out whatever it is given, and writes what it says to a log."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from roadworthy.evaluation.carry_out import carry_out
from roadworthy.evaluation.engines.inline import reason_of
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.probe import probe
from roadworthy.evaluation.task import Task
from roadworthy.scenario.processes import end_with_parent

# What a worker says to its pool, as (word, content).
NEXT, RESULT, RAISED, DONE = "next", "result", "raised", "done"


def serve(connection: Connection, number: int, log: str) -> None:
    """Carry out tasks until there is nobody to work for; the main function of a worker process."""
    _settle_in(Path(log))
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        if task is None:
            return
        try:
            if isinstance(task, Probe):
                _probe(connection, task.task)
            else:
                _work(connection, number, task)
        except Exception as error:
            connection.send((RAISED, reason_of(error)))
        else:
            connection.send((DONE, None))


@dataclass(frozen=True)
class Probe:
    """Asks for what is wrong with the policy of a task."""

    task: Task


def _probe(connection: Connection, task: Task) -> None:
    task.make_env(1, threads=1)  # compiles
    connection.send((NEXT, None))
    connection.recv()
    connection.send((RESULT, probe(task)))


def _work(connection: Connection, number: int, task: Task) -> None:
    def ask(_: int) -> EpisodeSpec | None:
        connection.send((NEXT, None))
        return connection.recv()

    carry_out(task, task.make_env(threads=1), ask, lambda result: connection.send((RESULT, result)), slot=number)


def _settle_in(log: Path) -> None:
    """Be a session that can be ended as a whole, say everything to the log, and be the first to go without memory."""
    with contextlib.suppress(OSError):
        os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable(sys.stderr)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=False)  # where it is, when it takes too long
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    end_with_parent()
