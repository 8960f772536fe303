"""Compile kernels before they are used: once per version, in a process of its own, with progress.

LLVM does not return to Python for up to a minute, so a signal would have to wait. Another process can be killed at
once. It leaves compiled kernels in the cache, where this process and all others find them.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roadworthy.kernels.cache import cache_folder
from roadworthy.kernels.installed import has_numba, load_numba
from roadworthy.progress import Report, progress

PHASE = "compiling kernels (once per version)"

_TICK_S = 0.5
_CHILD = "ROADWORTHY_COMPILES"  # set in a process that compiles


def is_compiled(part: str) -> bool:
    """Return whether `ensure_compiled` has nothing to do for a part of the package."""
    config = load_numba().config
    return bool(config.DISABLE_JIT or config.ENABLE_CUDASIM or _CHILD in os.environ or _marker(part).exists())


def ensure_compiled(part: str, total: int, run: Callable[..., None], *arguments: Any) -> None:
    """Compile the kernels of a part of the package into the cache, unless they are there.

    While one process compiles, all others wait.

    Args:
        part: The part, as for `cache_folder`.
        total: About how many functions are compiled, for the progress.
        run: A function of a module that calls the kernels.
        arguments: What `run` is called with in the other process.
    """
    if is_compiled(part):
        return
    marker = _marker(part)
    marker.parent.mkdir(parents=True, exist_ok=True)
    with open(marker.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            with progress(PHASE) as report:
                if _compile_elsewhere(report, total, pickle.dumps((run, arguments))):
                    marker.touch()  # otherwise kernels compile at their first call, which shows what is wrong
                report(total, total)


@contextmanager
def shown_while_compiling(part: str, total: int) -> Iterator[None]:
    """Show how many functions of a part are in the cache while this or other processes compile them.

    The phase ends with the context. After that, all kernels of the part count as compiled.

    Args:
        part: The part, as for `cache_folder`.
        total: About how many functions are compiled.
    """
    if not has_numba() or is_compiled(part):
        yield
        return
    folder, is_done = cache_folder(part), threading.Event()

    def tell(report: Report) -> None:
        while not is_done.wait(_TICK_S):
            report(min(sum(1 for _ in folder.rglob("*.nbi")), total - 1), total)

    with progress(PHASE) as report:
        thread = threading.Thread(target=tell, args=(report,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()
    folder.mkdir(parents=True, exist_ok=True)
    _marker(part).touch()


def _marker(part: str) -> Path:
    """Return the file that says that a part is compiled for this Python and this kind of processor."""
    from llvmlite import binding  # type: ignore[import-untyped]

    return cache_folder(part) / f"{sys.implementation.cache_tag}-{binding.get_host_cpu_name()}.done"


def _compile_elsewhere(report: Report, total: int, call: bytes) -> bool:
    """Make a call in another process that reports how many functions it has compiled; return whether it succeeded."""
    environment = {**os.environ, _CHILD: "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-m", "roadworthy.kernels.compiling"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches this process, which ends the other
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(call)
            child.stdin.close()
            for line in child.stdout:
                report(min(int(line), total - 1), total)
        except BaseException:
            child.kill()
            raise
    return child.returncode == 0


def main() -> None:
    """Make the call that stdin names, and write how many functions are compiled to stdout."""
    from numba.core import event

    count, out = 0, os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of the call itself must not be taken for counts
    is_done = threading.Event()

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            pass

        def on_end(self, event: Any) -> None:
            nonlocal count
            count += event.data["dispatcher"].py_func.__module__.startswith("roadworthy")

    def tell() -> None:
        while not is_done.wait(_TICK_S):
            try:
                out.write(f"{count}\n")
            except OSError:  # the other process has ended
                os._exit(1)

    run, arguments = pickle.load(sys.stdin.buffer)
    event.register("numba:compile", Listener())
    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    run(*arguments)
    is_done.set()
    thread.join()


if __name__ == "__main__":
    main()
