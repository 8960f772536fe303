"""The engine that carries out episodes in a pool of processes on this machine."""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.engines.duties import Duties
from roadworthy.evaluation.engines.process import DONE, NEXT, RAISED, RESULT, Probe
from roadworthy.evaluation.engines.worker import GONE, Inbox, Running, Worker
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.results import failed
from roadworthy.evaluation.task import Task
from roadworthy.evaluation.underway import OnResult
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.processes import available_cores

_TICK_S = 0.2  # between looks at the clock and at who lives


@dataclass(frozen=True)
class Limits:
    """What is put up with."""

    time_s: float = 300.0
    # For an episode, from being handed out to its end.
    start_s: float = 900.0
    # For a process to get ready, which may have to compile the simulator.
    memory_bytes: int | None = None
    # What a process may hold.
    retries: int = 1
    # How often an episode that was alone in a process that was lost is tried again.


class WorkersEngine:
    """A pool of processes that stays alive from one run to the next. Whatever they do, it ends.

    Use it as a context, or call `close`.
    """

    def __init__(self, workers: int | None = None, limits: Limits | None = None) -> None:
        """Nothing is started before the first run.

        workers: processes; one per core by default.
        limits: may be changed from run to run.
        """
        self.count = workers or available_cores()
        self.limits = limits or Limits()
        self._workers: list[Worker] = []
        self._next_look = 0.0
        self._lost_probes = 0  # since the last run
        self._inbox: Inbox = queue.SimpleQueue()
        self._logs = tempfile.TemporaryDirectory(prefix="roadworthy-workers-")

    def probe(self, task: Task) -> tuple[str, ...]:
        """What is wrong with the policy of a task; one that can't be made to drive shows that in the run."""
        self._hire()
        self._lost_probes = 0
        worker = self._workers[0]
        worker.begin(Probe(task))
        faults: tuple[str, ...] = ()
        while worker.is_busy:
            sender, word, content = self._hear() or (worker, "", ())
            if sender is not worker:
                continue
            if word == NEXT:
                worker.running["probe"] = Running(None, time.monotonic())
                worker.send(None)
            elif word == RESULT:
                faults = tuple(content)
            elif word in (DONE, RAISED):
                worker.is_busy, worker.running = False, {}
            elif word == GONE or (worker.look() and self._fault(worker)):
                self._workers.remove(worker)
                worker.stop()
                self._lost_probes = 1
                break
        return faults

    def run(self, task: Task, owed: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0) -> None:
        """Hand over a result for every one of these episodes."""
        with Pack(task.pack) as pack:
            tags = {episode.scenario: pack.tags(episode.scenario) for episode in owed}

        def fail(episode: EpisodeSpec, reason: str) -> None:
            on_result(failed(episode, task.evaluator, reason, tags[episode.scenario]))

        duties = Duties(owed, self.limits.retries, fail, completed, self._lost_probes)
        self._lost_probes = 0
        try:
            while True:
                if duties.is_waiting:
                    self._call_in(task)
                if not any(worker.is_busy for worker in self._workers):
                    break
                self._listen(duties, on_result)
                self._look_after(duties)
            duties.settle()
        except BaseException:
            self.close()  # whoever is busy with this run is of no use to the next
            raise

    def close(self) -> None:
        """End all processes; another run starts new ones."""
        for worker in self._workers:
            worker.stop()
        self._workers = []
        self._inbox = queue.SimpleQueue()

    def __enter__(self) -> WorkersEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._logs.cleanup()

    def _call_in(self, task: Task) -> None:
        """Let everybody who is idle work on a task."""
        self._hire()
        for worker in self._workers:
            if not worker.is_busy and worker.number < self.count:
                worker.begin(task)

    def _hire(self) -> None:
        """Start the processes that are missing."""
        for number in sorted(set(range(self.count)) - {worker.number for worker in self._workers}):
            self._workers.append(Worker(number, self._inbox, Path(self._logs.name) / f"{number}.log"))

    def _hear(self) -> tuple[Worker, str, Any] | None:
        """The next message, if one comes soon, of somebody who still belongs to the pool."""
        try:
            worker, word, content = self._inbox.get(timeout=_TICK_S)
        except queue.Empty:
            return None
        if worker not in self._workers:
            return None
        if word == GONE and not worker.is_busy:
            self._workers.remove(worker)
            return None
        return worker, word, content

    def _listen(self, duties: Duties, on_result: OnResult) -> None:
        """Answer one message, if one comes soon."""
        heard = self._hear()
        if heard is None:
            return
        worker, word, content = heard
        worker.last_heard = time.monotonic()
        if word == NEXT:
            episode = duties.next(_owed(worker))
            if episode is not None:
                worker.running[episode.episode_id] = Running(episode, time.monotonic())
            worker.send(episode)
        elif word == RESULT:
            del worker.running[content.episode.episode_id]
            on_result(content)
            duties.complete()
        elif word == DONE:
            worker.is_busy = False
        elif word == RAISED:
            if not worker.running:
                raise RoadworthyError(f"no episode could be begun: {content}")
            self._lose(worker, duties, content)
        elif word == GONE:
            self._workers.remove(worker)
            self._lose(worker, duties, worker.why_gone())

    def _look_after(self, duties: Duties) -> None:
        """End who takes too long or holds too much memory."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _TICK_S
        for worker in list(self._workers):
            is_alive = worker.look()
            reason = self._fault(worker)
            if reason and is_alive:
                self._workers.remove(worker)
                self._lose(worker, duties, worker.kill(reason))

    def _fault(self, worker: Worker) -> str | None:
        now, limits = time.monotonic(), self.limits
        if limits.memory_bytes is not None and worker.memory_bytes > limits.memory_bytes:
            return (
                f"the process was ended because it held {worker.memory_bytes / 1e9:.2f} GB of memory, "
                f"more than its limit of {limits.memory_bytes / 1e9:.2f} GB"
            )
        if worker.running:
            late = max(now - running.since for running in worker.running.values())
            if late > limits.time_s:
                return f"the episode took longer than its limit of {limits.time_s:g} s"
        elif worker.is_busy and now - worker.last_heard > limits.start_s:
            return f"the process was not ready after {limits.start_s:g} s"
        return None

    def _lose(self, worker: Worker, duties: Duties, reason: str) -> None:
        if worker.is_busy:
            lost = _owed(worker)
            worker.is_busy, worker.running = False, {}
            duties.lose(lost, reason)


def _owed(worker: Worker) -> list[EpisodeSpec]:
    return [running.owed for running in worker.running.values() if running.owed is not None]
