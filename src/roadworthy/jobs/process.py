"""A fresh process that runs jobs, each when it is told to go, and that can be ended when an env in it hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from roadworthy.errors import RoadworthyError
from roadworthy.jobs.job import Job
from roadworthy.jobs.run import run_job
from roadworthy.jobs.watch import Watch
from roadworthy.scenario.processes import end_with_parent

PATIENCE_S = 10.0  # that a process has to end in order when it was told to
_DUMP_S = 0.5  # for a process to write down where it is


class JobProcess:
    """The process as its runner sees it."""

    def __init__(self, jobs: Sequence[Job], news: Sequence[bool], out: Path, render_faults: Mapping[str, str]) -> None:
        """Start it; render_faults: the names of jobs whose envs can't draw, and why."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.watch = Watch(max(job.envs for job in jobs), context)
        descriptor, name = tempfile.mkstemp(prefix="roadworthy-jobs-")
        os.close(descriptor)
        self._whereabouts = Path(name)
        arguments = (list(jobs), list(news), out, theirs, self.watch, self._whereabouts, dict(render_faults))
        self._process = context.Process(target=_work, args=arguments, name="jobs")
        self._process.start()
        theirs.close()

    def go(self) -> None:
        """Let it run its next job."""
        with contextlib.suppress(OSError):  # that it died shows in what it says
            self._connection.send("go")

    def hear(self, patience_s: float) -> tuple[str, Any] | None:
        """What it says next; None if it says nothing for so long, ("gone", why) if it never will."""
        try:
            return self._connection.recv() if self._connection.poll(patience_s) else None
        except (EOFError, OSError):
            return "gone", self._why_gone()

    def _why_gone(self) -> str:
        self._process.join(PATIENCE_S)
        code = self._process.exitcode
        if code is None:
            return "its process closed the connection and did not end"
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (out of memory?)" if -code == signal.SIGKILL else ""
            return f"its process was killed by {name}{hint}"
        return f"its process ended with exit code {code}"

    def place(self) -> str:
        """Which line it is at, as `FILE line 12 in step`; empty where that can't be found out."""
        if not hasattr(signal, "SIGUSR1") or self._process.pid is None:
            return ""
        with contextlib.suppress(OSError):
            os.kill(self._process.pid, signal.SIGUSR1)
            time.sleep(_DUMP_S)
            found = re.search(r'File "(.+)", line (\d+) in (\S+)', self._whereabouts.read_text(encoding="utf-8"))
            return f"{found[1]} line {found[2]} in {found[3]}" if found else ""
        return ""

    def stop(self) -> None:
        """Let it write down how far it came, if it can, and end it with everything that it started."""
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(PATIENCE_S)
        if self._process.is_alive():
            with contextlib.suppress(OSError):
                if self._process.pid is not None and os.getpgid(self._process.pid) == self._process.pid:
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.join()

    def __enter__(self) -> JobProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let it end by itself: it does when nobody tells it to go. One that does not is stopped."""
        if kind is not None:  # first, for its job is interrupted: with nobody to talk to it would call it failed
            self.stop()
        self._connection.close()
        self._process.join(PATIENCE_S)
        self.stop()
        self._process.close()
        self._whereabouts.unlink(missing_ok=True)


def _work(
    jobs: list[Job],
    news: list[bool],
    out: Path,
    connection: Connection,
    watch: Watch,
    whereabouts: Path,
    render_faults: dict[str, str],
) -> None:
    """What the process does: one job after another; everything that is said goes through the connection."""
    with whereabouts.open("w", encoding="utf-8") as file:
        _settle_in(file)
        for job, new in zip(jobs, news, strict=True):
            try:
                connection.recv()
            except EOFError:
                return
            try:
                message = _run(job, new, out, connection.send, watch, render_faults.get(job.name))
            except KeyboardInterrupt:
                return  # the job is written down as interrupted
            watch.clear()  # before anybody waits for the next one
            connection.send(message)


def _run(
    job: Job, new: bool, out: Path, send: Callable[[Any], None], watch: Watch, render_fault: str | None
) -> tuple[str, str]:
    try:
        record = run_job(
            job,
            out,
            new=new,
            progress=lambda done, owed: send(("progress", (done, owed))),
            begun=lambda folder: send(("folder", str(folder))),
            watch=watch,
            render_fault=render_fault,
        )
    except RoadworthyError as error:
        return "failed", str(error)
    return "over", str(record.folder)


def _settle_in(whereabouts: Any) -> None:
    """End in order when told to, be a session that can be ended as a whole, and don't outlive who started it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, whereabouts, all_threads=False)
    end_with_parent()
