"""Progress: quiet when quick, plain lines in logs, a bar on terminals."""

from __future__ import annotations

import io
import sys

import pytest

from roadworthy.progress import plain_lines, progress


class Clock:
    """Seconds that pass only when told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stderr that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_takes_less_than_a_second_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    report = plain_lines("reading", clock)
    for done in range(1, 11):
        clock.now += 0.09
        report(done, 10)
    assert capsys.readouterr().err == ""


@pytest.mark.row("UI-1")
def test_what_takes_longer_says_so_now_and_then_and_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    report = plain_lines("reading", clock)
    for done in range(1, 101):
        clock.now += 0.125
        report(done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "reading: 8 of 100 (1 s)"
    assert lines[-1] == "reading: 100 of 100 (12 s)"
    assert len(lines) == 4


@pytest.mark.row("UI-1")
def test_a_terminal_gets_a_bar_and_a_log_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream, has_bar in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress("reading") as report:
            report(3, 7)
        assert ("3/7" in stream.getvalue()) is has_bar


def test_a_phase_within_another_one_is_a_line_of_the_same_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    from roadworthy import progress as module

    with progress("running episodes"):
        (bar,) = module._bars
        with progress("compiling kernels") as report:
            report(3, 10)
            assert [task.description for task in bar.tasks] == ["running episodes", "compiling kernels"]
            assert bar.tasks[1].completed == 3
        assert [task.description for task in bar.tasks] == ["running episodes"]
    assert module._bars == []
