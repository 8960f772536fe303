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
    return {"comparison": found.to_dict(), "reason": None}
