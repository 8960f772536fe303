"""The trace of `--trace FILE`: where memory is cleared, and where trials, episodes and value chains end."""

from __future__ import annotations

import json
from pathlib import Path

from roadworthy.errors import UsageError
from roadworthy.training.progress import drop_from
from roadworthy.training.segment import RolloutBatch

_KEYS = ("event", "memory", "value_chain", "final_value")


class Trace:
    """A file of boundaries, appended segment by segment."""

    def __init__(self, path: Path, rank: int = 0, row_count: int = 0) -> None:
        """Check that the file may be written; processes other than the first write to `<path>.<rank>`.

        rank, row_count: the number of this process, and its number of rows.
        """
        self._path = path.with_name(f"{path.name}.{rank}") if rank else path
        self._first_row = rank * row_count
        self._has_started = False
        if not _is_trace(self._path):
            raise UsageError(f"{self._path} exists and is not a trace; give another file to --trace")
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, batch: RolloutBatch, update: int) -> None:
        """Append the boundaries of a segment, in the order of its steps."""
        if not self._has_started:
            self._has_started = True
            drop_from(self._path, update)  # a resumed run keeps the lines from before
        segment = batch.segment
        stops = segment.active & ~segment.not_done
        steps, rows = (stops | segment.ended | segment.trial_ended).T.nonzero(as_tuple=True)
        columns = (stops, segment.ended, segment.trial_ended, segment.final_values)
        boundaries = zip(steps.tolist(), rows.tolist(), *(c[rows, steps].tolist() for c in columns), strict=True)
        reset_rows = batch.was_reset.nonzero().flatten().tolist()
        events = [(0, row, "reset", "cleared", "bootstrapped", None) for row in reset_rows]
        events += [
            (
                t,
                row,
                "episode_ended" if has_ended else "trial_ended" if trial_has_ended else "inactive",
                "cleared" if has_ended else "kept",
                "stops" if has_stopped else "stopped before",
                value,
            )
            for t, row, has_stopped, has_ended, trial_has_ended, value in boundaries
        ]
        with self._path.open("a", encoding="utf-8") as file:
            for t, row, *event in events:
                values = dict(zip(_KEYS, event, strict=True))
                file.write(json.dumps({"update": update, "step": t, "row": self._first_row + row, **values}) + "\n")


def _is_trace(path: Path) -> bool:
    """Return whether a file does not exist, is empty, or starts as a trace does."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        first = file.readline()
    try:
        return not first or {"step", "row", *_KEYS} <= set(json.loads(first))
    except (ValueError, TypeError):
        return False
