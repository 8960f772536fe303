"""The summary over several evaluators: the weighted mean of one figure of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """An evaluator's contribution to the summary."""

    evaluator: str
    figure: str  # the name of the figure that counts
    weight: float
    value: float | None  # None: the run has no such figure, or is not complete


def roll_up(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the weighted mean with its parts; parts of weight 0 are left out.

    It is None unless every part has its figure: a mean over the parts that happened to finish is not an estimate.
    """
    weighed = [part for part in parts if part.weight > 0.0]
    parts_used: dict[str, Any] = {"parts": [asdict(part) for part in weighed]}
    known = [(part.weight, part.value) for part in weighed if part.value is not None]
    if not weighed or len(known) < len(weighed):
        missing = [part.evaluator for part in weighed if part.value is None]
        return {"value": None, "missing": missing, **parts_used}
    value = sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)
    return {"value": value, "missing": [], **parts_used}
