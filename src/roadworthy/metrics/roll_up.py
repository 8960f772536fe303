"""One figure over several evaluators: the weighted mean of a figure of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """An evaluator's part in the roll-up."""

    evaluator: str
    figure: str  # which of its figures counts
    weight: float
    value: float | None  # None: it has no such figure, or is not complete


def roll_up(parts: Sequence[Part]) -> dict[str, Any]:
    """The weighted mean, and what it is made of; parts of weight 0 are left out.

    It is null unless every part has its figure: a mean over whatever finished is no estimate.
    """
    weighed = [part for part in parts if part.weight > 0.0]
    told: dict[str, Any] = {"parts": [asdict(part) for part in weighed]}
    known = [(part.weight, part.value) for part in weighed if part.value is not None]
    if not weighed or len(known) < len(weighed):
        missing = [part.evaluator for part in weighed if part.value is None]
        return {"value": None, "missing": missing, **told}
    value = sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)
    return {"value": value, "missing": [], **told}
