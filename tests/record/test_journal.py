"""The journal: no line is lost or incomplete after a kill at any moment."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roadworthy.errors import RecordError, RoadworthyError, UsageError
from roadworthy.record.episodes import line_values
from roadworthy.record.journal import Journal
from tests.record.made_up import result

NAMES = ("town-0-r0", "town-1-r0", "town-2-r0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of three episodes."""
    journal = Journal(tmp_path / "episodes.jsonl")
    journal.open()
    for name in NAMES:
        journal.append(line_values(result(name)))
    journal.close()
    return journal.path


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """Limit the size of files: a write is truncated there, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.row("REC-3")
def test_an_incomplete_last_line_is_truncated(path: Path) -> None:
    whole = path.read_bytes()
    second_end = whole.index(b"\n", whole.index(b"\n") + 1) + 1
    # Killed after so many bytes of the third line, the newline missing at last.
    for size in (*range(second_end, len(whole) - 1, 29), len(whole) - 1):
        path.write_bytes(whole[:size])
        journal = Journal(path)
        assert journal.ids == set(NAMES[:2])
        journal.open()
        assert path.stat().st_size == second_end
        journal.append(line_values(result(NAMES[2])))
        journal.close()
        assert path.read_bytes() == whole


@pytest.mark.row("REC-3")
def test_a_tail_of_zeros_after_a_power_failure_is_truncated(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(5000))
    journal = Journal(path)
    journal.open()
    journal.close()
    assert (journal.ids, path.read_bytes()) == (set(NAMES), whole)


def test_damage_before_sound_lines_is_an_error_that_names_the_line(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{torn\n", lines[2]]))
    with pytest.raises(RecordError, match=r"episodes\.jsonl, line 2: is not an episode"):
        Journal(path)


@pytest.mark.row("REC-3")
def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_the_lines_before(path: Path) -> None:
    before = path.read_bytes()
    journal = Journal(path)
    journal.open()
    words = r"episodes\.jsonl: can't be written: File too large; .* rerun the command"
    with no_room_beyond(len(before) + 100), pytest.raises(RoadworthyError, match=words):
        journal.append(line_values(result("town-3-r0")))
    assert path.read_bytes() == before
    again = Journal(path)
    again.open()
    again.append(line_values(result("town-3-r0")))
    again.close()
    assert Journal(path).ids == {*NAMES, "town-3-r0"}


def test_an_episode_is_written_once(path: Path) -> None:
    journal = Journal(path)
    journal.open()
    with pytest.raises(UsageError, match="episode 'town-1-r0' exists already"):
        journal.append(line_values(result("town-1-r0")))
    journal.close()


def test_lines_come_in_the_order_that_is_asked_for(path: Path) -> None:
    lines = Journal(path).lines(["town-2-r0", "town-9-r0", "town-0-r0"])
    assert [line["episode_id"] for line in lines] == ["town-2-r0", "town-0-r0", "town-1-r0"]
