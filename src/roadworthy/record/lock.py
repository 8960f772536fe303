"""The lock of a run folder: one writer at a time, and a dead writer never blocks another.

A writer first creates its own file `.lock-<token>` in the folder, then looks for locks of other living owners. If there
is one, it removes its own lock. Two writers that start at the same moment see each other, both withdraw and try again.
Locks are never taken over, so two processes can't take over the same one.

An owner is identified by its process id, the start time of the process, the boot of the machine and the namespace of
process ids. If the last two are ours, we can check whether the process lives. Otherwise (a shared folder, another
container) an owner counts as alive as long as it renews its lock, by the clock of the file system: it does so every
15 s and counts as dead after 120 s. A process that was only suspended finds its lock gone before it writes again.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from roadworthy.errors import RoadworthyError
from roadworthy.record.files import naming

RENEWAL_S = 15.0
LEASE_S = 120.0
_PREFIX = ".lock-"
_ATTEMPTS = 5


@dataclass(frozen=True)
class Owner:
    """A process that holds a lock."""

    pid: int
    started: str | None  # start time of the process in the kernel's ticks; None where unknown
    boot: str | None  # the boot of the machine and the namespace of process ids; None where unknown
    host: str

    def is_alive(self, age_s: float) -> bool:
        """Return whether the process lives, or may live; age_s: seconds since it renewed its lock."""
        if self.boot is not None and self.boot == _boot():
            return self.started is not None and _started(self.pid) == self.started
        return age_s < LEASE_S

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Lock:
    """Holds a folder from construction until `release()`; raises if another living process holds it."""

    def __init__(self, folder: Path) -> None:
        self._token = secrets.token_hex(8)
        self.move_to(folder)
        self._stop = threading.Event()
        for attempt in range(_ATTEMPTS):
            self._write()
            other = self._living_other()
            if other is None:
                break
            self._path.unlink(missing_ok=True)
            if attempt + 1 == _ATTEMPTS or other[1] > RENEWAL_S:
                raise self._refusal(*other)
            time.sleep(random.uniform(0.01, 0.05) * (attempt + 1))
        self._thread = threading.Thread(target=self._renew, name="run folder lock", daemon=True)
        self._thread.start()

    def require_held(self) -> None:
        """Raise if another process considered this one dead and removed its lock."""
        if not self._path.exists():
            raise RoadworthyError(
                f"{self.folder}: another process considered this one dead and has taken over the run; this process "
                "may no longer write there"
            )

    def move_to(self, folder: Path) -> None:
        """Continue with a folder that was renamed."""
        self.folder = folder
        self._path = folder / f"{_PREFIX}{self._token}"

    def release(self) -> None:
        """Allow others to write."""
        self._stop.set()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    @contextmanager
    def released_on_error(self) -> Iterator[None]:
        """Release the lock if the body of the with statement fails."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def _write(self) -> None:
        """Write the file atomically, because others must be able to read its owner."""
        temporary = self.folder / f".{self._token}.tmp"
        with naming(self._path):
            temporary.write_text(json.dumps(vars(_self())), encoding="utf-8")
            os.replace(temporary, self._path)

    def _renew(self) -> None:
        while not self._stop.wait(RENEWAL_S):
            with suppress(OSError):
                os.utime(self._path)

    def _living_other(self) -> tuple[Owner, float] | None:
        """Return another living owner and the age of its lock; remove the locks of dead owners."""
        now = self._path.stat().st_mtime
        for path, owner, age in _locks(self.folder, now):
            if path == self._path:
                continue
            if owner.is_alive(age):
                return owner, age
            path.unlink(missing_ok=True)
        return None

    def _refusal(self, owner: Owner, age_s: float) -> RoadworthyError:
        away = owner.boot != _boot()
        remedy = f"; if it is dead, try again in {LEASE_S - age_s:.0f} s" if away else ""
        return RoadworthyError(
            f"{self.folder}: {owner} is writing to this run; wait for it, stop it, or start another run (--new){remedy}"
        )


def living_owner(folder: Path) -> Owner | None:
    """Return the process that writes to a folder, as far as a reader can determine."""
    now = time.time()
    return next((owner for _, owner, age in _locks(folder, now) if owner.is_alive(age)), None)


def is_abandoned(folder: Path) -> bool:
    """Return whether a folder was locked by processes that are all dead."""
    found = _locks(folder, time.time())
    return bool(found) and not any(owner.is_alive(age) for _, owner, age in found)


def _locks(folder: Path, now: float) -> list[tuple[Path, Owner, float]]:
    """Return the locks in a folder with owners and ages; none if the folder was renamed or removed meanwhile."""
    try:
        paths = list(folder.glob(f"{_PREFIX}*"))
    except FileNotFoundError:
        return []
    found = []
    for path in paths:
        try:
            age = now - path.stat().st_mtime
            values: dict[str, Any] = json.loads(path.read_bytes())
            owner = Owner(values["pid"], values["started"], values["boot"], values["host"])
        except OSError:
            continue  # it has just been released
        except (ValueError, KeyError, TypeError):
            owner = Owner(0, None, None, "an unknown machine")  # damaged: judged by its age alone
        found.append((path, owner, age))
    return found


def _self() -> Owner:
    pid = os.getpid()
    return Owner(pid, _started(pid), _boot(), socket.gethostname())


@cache
def _boot() -> str | None:
    """Return the boot of this machine and the namespace of process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """Return the start time of a living process in ticks since the boot; None for one that is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the process name before it may hold any character
    return None if fields[0] in "ZX" else fields[19]
