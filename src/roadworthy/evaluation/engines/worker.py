"""A worker process of a pool: its task, the time that it has taken, and why it ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roadworthy.evaluation.engines.process import Work, serve
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import RunnerSpec
from roadworthy.evaluation.watch import Watch, Whereabouts
from roadworthy.scenario.processes import interrupts_blocked

GONE = "gone"  # stands for a message when there will be no more
_DUMP_S = 0.5  # for a process to write down where it is
_TAIL_CHARACTERS = 1500
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

Inbox = queue.SimpleQueue[tuple["Worker", str, Any]]


@dataclass(frozen=True)
class Running:
    """An episode that a worker has started."""

    spec: EpisodeSpec | None  # None for a probe
    since: float


class Worker:
    """One process of the pool. Its messages arrive in the inbox that all workers share."""

    def __init__(self, number: int, inbox: Inbox, log: Path) -> None:
        self.number, self._log = number, log
        self.running: dict[str, Running] = {}
        self.is_busy = False
        self.last_heard = time.monotonic()
        self.memory_bytes = 0  # when last seen
        self.watch = Watch(0)
        self._log_start = log.stat().st_size if log.exists() else 0
        # Fresh processes: a fork would copy the locks of other threads.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, number, str(log)), daemon=True)
        with interrupts_blocked():
            self.process.start()
        theirs.close()
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def begin(self, spec: RunnerSpec, *, is_probe: bool = False) -> None:
        """Let it run episodes, which it asks for, or probe the policy."""
        self.is_busy, self.last_heard = True, time.monotonic()
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        file = self._log.with_suffix(".watch")
        self.watch = Watch(spec.watched, file)
        self.send(Work(spec, file, is_probe))

    @property
    def episodes(self) -> list[EpisodeSpec]:
        """The episodes that run in it."""
        return [running.spec for running in self.running.values() if running.spec is not None]

    def whereabouts(self, episode: EpisodeSpec) -> Whereabouts | None:
        """Return how far an episode has come, where its environment is watched."""
        return next((at for at in self.watch.running() if at.scenario == episode.scenario), None)

    def send(self, message: Any) -> None:
        """Send a message; if the process has just died, the inbox shows it."""
        with contextlib.suppress(OSError):
            self._connection.send(message)

    def check(self) -> bool:
        """Return whether it is alive, and note how much memory it holds."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            statm = Path(f"/proc/{self.process.pid}/statm").read_text()
            self.memory_bytes = int(statm.split()[1]) * _PAGE_BYTES or self.memory_bytes
        return self.process.is_alive()

    def kill(self, reason: str) -> str:
        """End it with everything that it started; return the reason with the end of its log."""
        if hasattr(signal, "SIGUSR1") and self.process.is_alive():
            with contextlib.suppress(OSError):
                os.kill(self.process.pid or 0, signal.SIGUSR1)
                time.sleep(_DUMP_S)
        self._end()
        return self._with_log(reason)

    def why_gone(self) -> str:
        """Return why it ended by itself."""
        self.process.join(_DUMP_S)
        code = self.process.exitcode
        self._end()
        if code is None:
            return self._with_log("the process closed its connection")
        if code >= 0:
            return self._with_log(f"the process ended with exit code {code}")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        reason = f"the process was killed by {name}"
        if name == "SIGKILL":
            reason += ", as happens when the machine runs out of memory"
            reason += f" (it held {self.memory_bytes / 1e9:.2f} GB when last seen)" if self.memory_bytes else ""
        return self._with_log(reason)

    def stop(self, patience_s: float = 5.0) -> None:
        """Let it end in order; kill it if it does not."""
        if not self.is_busy:
            self.send(None)
            self.process.join(patience_s)
        self._end()

    def _end(self) -> None:
        self._end_group()
        self.process.kill()
        self.process.join()
        self._connection.close()

    def _end_group(self) -> None:
        """End what it has started: its process group. After the join, the number may be another process's."""
        pid = self.process.pid
        with contextlib.suppress(OSError):
            if pid is not None and os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)

    def _listen(self, inbox: Inbox) -> None:
        """Pass messages on, in a thread: a process that stops in the middle of a message must not stop the pool."""
        connection = self._connection
        while True:
            try:
                word, content = connection.recv()
            except Exception:  # the end of the stream, or a torn message
                inbox.put((self, GONE, None))
                return
            inbox.put((self, word, content))

    def _with_log(self, reason: str) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(self._log_start)
                said = file.read().decode(errors="replace").strip()
        except OSError:
            said = ""
        return f"{reason}; the end of its log:\n{said[-_TAIL_CHARACTERS:]}" if said else reason
