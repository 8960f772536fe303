"""Trace: where memory was cleared, where trials and episodes ended and where value chains stop, one JSON line each."""

from __future__ import annotations

import json
from pathlib import Path

from roadworthy.errors import UsageError
from roadworthy.training.resume import forget_from
from roadworthy.training.segment import Cut

_WHAT = ("event", "memory", "value_chain", "final_value")


class Trace:
    """A file of what happened at boundaries, appended segment by segment."""

    def __init__(self, path: Path, rank: int = 0, row_count: int = 0) -> None:
        """Get ready to write.

        rank, row_count: the number of this process, and its rows. All but the first write to files of their own.
        """
        self._path = path.with_name(f"{path.name}.{rank}") if rank else path
        self._first_row = rank * row_count
        self._has_begun = False
        if not _is_trace(self._path):
            raise UsageError(f"{self._path} is there and is no trace; give another file to --trace")
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, cut: Cut, epoch: int) -> None:
        """Add a segment's boundaries, in the order of its steps."""
        if not self._has_begun:
            self._has_begun = True
            forget_from(self._path, epoch)  # of a run that is resumed, what was traced before stays
        segment = cut.segment
        stops = segment.active & ~segment.goes_on
        steps, rows = (stops | segment.ended | segment.trial_ended).T.nonzero(as_tuple=True)
        columns = (stops, segment.ended, segment.trial_ended, segment.final_values)
        told = zip(steps.tolist(), rows.tolist(), *(c[rows, steps].tolist() for c in columns), strict=True)
        begun = cut.begun_anew.nonzero().flatten().tolist()
        events = [(0, row, "begun_anew", "cleared", "went on at the cut", None) for row in begun]
        events += [
            (
                t,
                row,
                "episode_ended" if has_ended else "trial_ended" if trial_has_ended else "away",
                "cleared" if has_ended else "kept",
                "stops" if has_stopped else "stopped before",
                value,
            )
            for t, row, has_stopped, has_ended, trial_has_ended, value in told
        ]
        with self._path.open("a", encoding="utf-8") as file:
            for t, row, *what in events:
                line = {"epoch": epoch, "step": t, "row": self._first_row + row, **dict(zip(_WHAT, what, strict=True))}
                file.write(json.dumps(line) + "\n")


def _is_trace(path: Path) -> bool:
    """Whether a file may be written to: it is not there, is empty, or begins as a trace does."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        first = file.readline()
    try:
        return not first or {"epoch", *_WHAT} <= set(json.loads(first))
    except (ValueError, TypeError):
        return False
