"""Run A against run B for the browser: the result of roadworthy.compare, A as the reference."""

from __future__ import annotations

from typing import Any

from roadworthy.comparison.compare import compare
from roadworthy.errors import RoadworthyError
from roadworthy.record import Run


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
