"""Run A against run B for the browser: the result of roadworthy.compare, A as the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadworthy.comparison.compare import compare
from roadworthy.errors import RoadworthyError
from roadworthy.record import Run

MOST_PAIRS = 60  # of runs in a bundle, in both directions


def pairs(summaries: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs of runs that a bundle compares: completed ones with the same episodes, the newest first."""
    runs = [row for row in summaries if row["status"] == "completed" and not row["role"]]
    runs.sort(key=lambda row: (str(row["created"]), row["key"]), reverse=True)
    found = [
        (other["key"], row["key"])
        for place, row in enumerate(runs)
        for other in runs[:place]
        if row["ledger_hash"] is not None and row["ledger_hash"] == other["ledger_hash"]
    ]
    return [pair for one, two in found[: MOST_PAIRS // 2] for pair in ((one, two), (two, one))]


def comparison(reference: Run, candidate: Run) -> dict[str, Any]:
    """Return the comparison, or the reason why there is none."""
    try:
        found = compare(reference, candidate)
    except RoadworthyError as error:
        return {"comparison": None, "reason": str(error)}
    values = found.to_dict()
    for section in values["sections"]:  # paths of this machine, which a page for others must not hold
        for run in (section["candidate"], section["reference"]):
            run.pop("folder", None)
        for flip in section["flips"]["listed"]:
            for name in ("commands", "videos"):
                flip.pop(name, None)
    return {"comparison": values, "reason": None}
