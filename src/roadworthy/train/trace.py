"""Trace: where memory was cleared, where trials and episodes ended and where value chains stop, one JSON line each."""

from __future__ import annotations

import json
from pathlib import Path

from roadworthy.train.segment import Cut


class Trace:
    """A file of what happened at boundaries, appended segment by segment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def write(self, cut: Cut, epoch: int) -> None:
        """Add a segment's boundaries: those of rows that were active."""
        segment = cut.segment
        rows, steps = (segment.active & ~segment.goes_on).nonzero(as_tuple=True)
        ended = segment.ended[rows, steps].tolist()
        final_values = segment.final_values[rows, steps].tolist()
        with self._path.open("a", encoding="utf-8") as file:
            for t, row, has_ended, value in zip(steps.tolist(), rows.tolist(), ended, final_values, strict=True):
                line = {
                    "epoch": epoch,
                    "step": t,
                    "row": row,
                    "event": "episode_ended" if has_ended else "trial_ended or away",
                    "memory": "cleared" if has_ended else "kept",
                    "value_chain": "stops",
                    "bootstrapped_value": value,
                }
                file.write(json.dumps(line) + "\n")
