"""The engine that runs episodes in a pool of processes on this machine."""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadworthy.evaluation.engines import Limits
from roadworthy.evaluation.engines.process import DONE, NEXT, RAISED, RESULT, Raised
from roadworthy.evaluation.engines.retry_queue import RetryQueue
from roadworthy.evaluation.engines.worker import GONE, Inbox, Running, Worker
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import OnResult, RunError, RunnerSpec
from roadworthy.evaluation.watch import Whereabouts
from roadworthy.scenario.processes import available_cores

_TICK_S = 0.2  # between checks of limits and of processes


class WorkersEngine:
    """A pool of processes that stays alive from one run to the next. Use it as a context, or call `close`."""

    def __init__(self, workers: int | None = None, limits: Limits | None = None) -> None:
        """Start nothing yet: processes start with the first run."""
        self.count = workers or available_cores()
        self.limits = limits or Limits()
        self._workers: list[Worker] = []
        self._next_look = 0.0
        self._lost_probes = 0  # since the last run
        self._inbox: Inbox = queue.SimpleQueue()
        self._logs: tempfile.TemporaryDirectory[str] | None = None

    def probe(self, spec: RunnerSpec) -> tuple[str, ...]:
        """Return what is wrong with the policy of a run; a policy that can't act at all shows that in the run."""
        self._spawn_workers()
        self._lost_probes = 0
        worker = self._workers[0]
        worker.begin(spec, is_probe=True)
        faults: tuple[str, ...] = ()
        while worker.is_busy:
            sender, word, content = self._receive() or (worker, "", ())
            if sender is not worker:
                continue
            if word == NEXT:
                worker.running["probe"] = Running(None, time.monotonic())
                worker.send(None)
            elif word == RESULT:
                faults = tuple(content)
            elif word in (DONE, RAISED):
                worker.is_busy, worker.running = False, {}
            elif word == GONE or (worker.check() and self._fault(worker)[0]):
                self._workers.remove(worker)
                worker.stop()
                self._lost_probes = 1
                break
        return faults

    def run(
        self, spec: RunnerSpec, episodes: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0
    ) -> None:
        """Call `on_result` once for each of these episodes."""
        run = _Run(self, spec, episodes, on_result, completed, self._lost_probes)
        self._lost_probes = 0
        try:
            run.finish()
        except BaseException:
            self.close()  # a worker that is busy with this run can't serve the next
            raise

    def close(self) -> None:
        """End all processes; another run starts new ones."""
        for worker in self._workers:
            worker.stop()
        self._workers = []
        self._inbox = queue.SimpleQueue()
        if self._logs is not None:
            self._logs.cleanup()
            self._logs = None

    def __enter__(self) -> WorkersEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spawn_workers(self) -> list[Worker]:
        """Start the processes that are missing; return all that belong to the pool."""
        self._logs = self._logs or tempfile.TemporaryDirectory(prefix="roadworthy-workers-")
        for number in sorted(set(range(self.count)) - {worker.number for worker in self._workers}):
            self._workers.append(Worker(number, self._inbox, Path(self._logs.name) / f"{number}.log"))
        return self._workers

    def _receive(self) -> tuple[Worker, str, Any] | None:
        """Return the next message of a worker of the pool, if one comes soon."""
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

    def _overdue(self) -> list[tuple[Worker, str, dict[str, Whereabouts]]]:
        """Remove workers that exceed a limit from the pool; return them with the reasons and the slow episodes."""
        if time.monotonic() < self._next_look:
            return []
        self._next_look = time.monotonic() + _TICK_S
        found = []
        for worker in list(self._workers):
            is_alive = worker.check()
            reason, culprits = self._fault(worker)
            if reason and is_alive:
                self._workers.remove(worker)
                found.append((worker, reason, culprits))
        return found

    def _fault(self, worker: Worker) -> tuple[str | None, dict[str, Whereabouts]]:
        """Return the limit that a worker exceeds, and the episodes that are known to be the cause."""
        now, limits = time.monotonic(), self.limits
        if limits.memory_bytes is not None and worker.memory_bytes > limits.memory_bytes:
            reason = (
                f"the process was ended because it held {worker.memory_bytes / 1e9:.2f} GB of memory, "
                f"more than its limit of {limits.memory_bytes / 1e9:.2f} GB"
            )
            return reason, {}
        is_ready = bool(worker.watch.running() if worker.watch.envs else worker.running)
        if worker.is_busy and not is_ready and now - worker.last_heard > limits.start_s:
            return f"the process was not ready after {limits.start_s:g} s", {}
        if not is_ready or limits.time_s is None:
            return None, {}
        if worker.watch.envs:
            culprits = {
                spec.episode_id: at
                for at in worker.watch.running(limits.time_s)
                for spec in worker.episodes
                if spec.scenario == at.scenario
            }
            reason = f"an environment took longer than its limit of {limits.time_s:g} s for an episode"
            return reason if culprits else None, culprits
        if max(now - running.since for running in worker.running.values()) > limits.time_s:
            return f"the episode took longer than its limit of {limits.time_s:g} s", {}
        return None, {}


class _Run:
    """One run while the pool works on it."""

    def __init__(
        self,
        pool: WorkersEngine,
        spec: RunnerSpec,
        episodes: Sequence[EpisodeSpec],
        on_result: OnResult,
        completed: int,
        lost: int,
    ) -> None:
        self._pool, self._spec, self._on_result = pool, spec, on_result
        self._places: dict[str, Whereabouts] = {}  # of episodes whose process was lost
        self._served: dict[int, int] = {}  # by worker: `returned` of the queue when the queue had nothing more for it
        self._queue = RetryQueue(episodes, pool.limits.retries, self._fail, completed, lost)

    def finish(self) -> None:
        """Run all episodes."""
        pool = self._pool
        while True:
            if self._queue.is_waiting:
                for worker in pool._spawn_workers():
                    if not worker.is_busy and self._may_get_more(worker):
                        worker.begin(self._spec)
            if not any(worker.is_busy for worker in pool._workers):
                break
            self._answer()
            for worker, reason, culprits in pool._overdue():
                self._lose(worker, worker.kill(reason), culprits)
        self._queue.settle()

    def _may_get_more(self, worker: Worker) -> bool:
        """Return whether the queue may have an episode for a worker; its share may be used up."""
        return self._queue.has_suspects or self._served.get(worker.number) != self._queue.returned

    def _answer(self) -> None:
        """Answer one message, if one comes soon."""
        received = self._pool._receive()
        if received is None:
            return
        worker, word, content = received
        worker.last_heard = time.monotonic()
        if word == NEXT:
            share = content and (worker.number * content[1] + content[0], self._pool.count * content[1])
            episode = self._queue.next(worker.episodes, share)
            if episode is not None:
                worker.running[episode.episode_id] = Running(episode, time.monotonic())
            worker.send(episode)
        elif word == RESULT:
            del worker.running[content.episode.episode_id]
            self._on_result(content)
            self._queue.complete()
        elif word == DONE:
            worker.is_busy = False
            self._served[worker.number] = self._queue.returned
        elif word == RAISED:
            self._raised(worker, content)
        elif word == GONE:
            self._pool._workers.remove(worker)
            self._lose(worker, worker.why_gone(), {})

    def _raised(self, worker: Worker, raised: Raised) -> None:
        if not worker.running or raised.ends_run:
            message = raised.summary if raised.is_ours else f"no episode could be started: {raised.summary}"
            raise RunError(message, raised.traceback)
        self._lose(worker, raised.reason, {})

    def _lose(self, worker: Worker, reason: str, culprits: dict[str, Whereabouts]) -> None:
        if not worker.is_busy:
            return
        lost = worker.episodes
        without = self._spec.without_renderer(reason) if worker.watch.is_rendering else None
        places = {episode.episode_id: at for episode in lost if (at := worker.whereabouts(episode)) is not None}
        worker.is_busy, worker.running = False, {}
        if without is not None:
            self._spec = without
            self._queue.put_back(lost)
            return
        self._places |= places | culprits
        self._queue.lose(lost, reason, culprits)

    def _fail(self, episode: EpisodeSpec, reason: str) -> None:
        self._on_result(self._spec.failed(episode, reason, self._places.get(episode.episode_id)))
