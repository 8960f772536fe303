"""The lock: one writer at a time, and a dead one never blocks another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roadworthy.errors import RoadworthyError
from roadworthy.record import lock as lock_module
from roadworthy.record.lock import LEASE_S, Lock, living_owner

HOLD = """
import sys, time
from pathlib import Path
from roadworthy.record.lock import Lock
held = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""

RACE = """
import sys
from pathlib import Path
from roadworthy.errors import RoadworthyError
from roadworthy.record.lock import Lock
print("ready", flush=True)
sys.stdin.readline()
try:
    held = Lock(Path(sys.argv[1]))
    print("held", flush=True)
except RoadworthyError:
    print("refused", flush=True)
sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Start another process that holds the lock of a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def leave_lock(folder: Path, age_s: float = 0.0, **changes: object) -> None:
    """Write a lock of another process."""
    path = folder / ".lock-0123456789abcdef"
    path.write_text(json.dumps({**vars(lock_module._self()), **changes}))
    os.utime(path, (time.time() - age_s,) * 2)


@pytest.mark.row("REC-5")
def test_a_second_writer_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(RoadworthyError, match=rf"process {process.pid} on .* is writing to this run.*--new"):
            Lock(tmp_path)
        owner = living_owner(tmp_path)
        assert owner is not None
        assert owner.pid == process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.row("REC-5")
def test_the_lock_of_a_zombie_does_not_block(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table of processes
    Lock(tmp_path).release()
    process.wait()
    assert living_owner(tmp_path) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.row("REC-5")
def test_a_process_with_the_pid_of_a_dead_owner_is_not_the_owner(tmp_path: Path) -> None:
    leave_lock(tmp_path, started="12345")
    Lock(tmp_path).release()


@pytest.mark.row("REC-5")
def test_an_owner_on_another_machine_is_alive_while_it_renews_its_lock(tmp_path: Path) -> None:
    leave_lock(tmp_path, age_s=LEASE_S / 2, boot="another machine", host="far")
    with pytest.raises(RoadworthyError, match=r"process \d+ on far is writing.*; if it is dead, try again in \d+ s"):
        Lock(tmp_path)
    leave_lock(tmp_path, age_s=LEASE_S + 1, boot="another machine", host="far")
    Lock(tmp_path).release()


def test_a_damaged_lock_blocks_no_longer_than_a_silent_one(tmp_path: Path) -> None:
    path = tmp_path / ".lock-0123456789abcdef"
    path.write_text("{")
    with pytest.raises(RoadworthyError, match="unknown machine is writing"):
        Lock(tmp_path)
    os.utime(path, (time.time() - LEASE_S - 1,) * 2)
    Lock(tmp_path).release()


def test_a_lock_is_renewed_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "RENEWAL_S", 0.01)
    held = Lock(tmp_path)
    (path,) = tmp_path.iterdir()
    os.utime(path, (1.0, 1.0))
    for _ in range(500):
        if path.stat().st_mtime > 1.0:
            break
        time.sleep(0.01)
    assert path.stat().st_mtime > 1.0
    held.release()


def test_a_writer_considered_dead_notices_before_it_writes(tmp_path: Path) -> None:
    held = Lock(tmp_path)
    held.require_held()
    (path,) = tmp_path.iterdir()
    path.unlink()
    with pytest.raises(RoadworthyError, match="considered this one dead and has taken over"):
        held.require_held()
    held.release()


def test_only_one_of_several_simultaneous_writers_gets_the_lock(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.stdout.readline() for process in processes if process.stdout is not None]
    for process in processes:
        process.communicate("")
    assert sorted(answers) == ["held\n", "refused\n", "refused\n"]
