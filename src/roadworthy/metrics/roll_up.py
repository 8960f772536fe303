"""The summary over several evaluators: the weighted mean of one figure of each, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadworthy.statistics.combined import Estimate, combined_interval

METHOD = "MOVER over shared clusters"


@dataclass(frozen=True)
class Part:
    """An evaluator's contribution to the summary."""

    evaluator: str
    figure: str  # the name of the figure that counts
    weight: float
    value: float | None  # None: the run has no such figure, or is not complete
    low: float | None = None
    high: float | None = None
    level: float | None = None
    missing: float = 0.0  # the share of its rows without data
    worst_low: float | None = None
    worst_high: float | None = None
    # What each cluster contributes to the deviation of the figure; None: the run does not say.
    contributions: Mapping[str, float] | None = None


def part_of(evaluator: str, figure: str, weight: float, metrics: Mapping[str, Any] | None) -> Part:
    """Return the part of an evaluator in the summary, from the content of its metrics.json; None if it has none."""
    found = next((each for each in (metrics or {}).get("figures", ()) if each["name"] == figure), None)
    if found is None or metrics is None:
        return Part(evaluator, figure, weight, None)
    columns: Mapping[str, Any] | None = metrics.get("by_cluster")
    parts: Mapping[str, float] | None = None
    if columns is not None:
        values = columns["figures"].get(figure.removesuffix("_per_scenario"), ())
        parts = dict(zip(columns["cluster"], values, strict=False))
    known = {name: found.get(name) for name in ("value", "low", "high", "level", "worst_low", "worst_high")}
    return Part(evaluator, figure, weight, **known, missing=float(found.get("missing") or 0.0), contributions=parts)


def roll_up(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the weighted mean with its interval and its parts; parts of weight 0 are left out.

    It is None unless every part has its figure: a mean over the parts that happened to finish is not an estimate.
    Episodes without data widen the interval to `worst_low` and `worst_high`, as in each part; `missing_share` is the
    weighted mean of the shares of rows without data.
    """
    weighed = [part for part in parts if part.weight > 0.0]
    parts_used: dict[str, Any] = {"parts": [_plain(part) for part in weighed]}
    known = [(part.weight, part.value) for part in weighed if part.value is not None]
    nothing = dict.fromkeys(("low", "high", "level", "method", "note", "worst_low", "worst_high"))
    if not weighed or len(known) < len(weighed):
        missing = [part.evaluator for part in weighed if part.value is None]
        return {"value": None, **nothing, "missing": missing, "missing_share": None, **parts_used}
    total = sum(weight for weight, _ in known)
    value = sum(weight * value for weight, value in known) / total
    share = sum(part.weight * part.missing for part in weighed) / total
    return {"value": value, **nothing, **_interval(weighed), "missing": [], "missing_share": share, **parts_used}


def _interval(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the interval of the weighted mean of parts with values, or the reason why there is none."""
    without = [part.evaluator for part in parts if part.low is None or part.high is None]
    if without:
        return {"note": f"not enough data: no interval of {', '.join(without)}"}
    if len(parts) > 1 and any(part.contributions is None for part in parts):
        silent = [part.evaluator for part in parts if part.contributions is None]
        return {"note": f"not enough data: runs of an older version do not name their clusters: {', '.join(silent)}"}
    if len({part.level for part in parts}) > 1:
        return {"note": "not enough data: the intervals of the parts have several levels"}
    estimates = [
        Estimate(part.weight, part.value, part.low, part.high, part.contributions or {})
        for part in parts
        if part.value is not None and part.low is not None and part.high is not None
    ]
    _, low, high = combined_interval(estimates)
    return {"low": low, "high": high, "level": parts[0].level, "method": METHOD, **_worst(parts, low, high)}


def _worst(parts: Sequence[Part], low: float, high: float) -> dict[str, float | None]:
    """Return the interval widened by what is missing in each part, by weight."""
    if any(part.missing > 0.0 and (part.worst_low is None or part.worst_high is None) for part in parts):
        return {"worst_low": None, "worst_high": None}
    total = sum(part.weight for part in parts)
    below, above = 0.0, 0.0
    for part in parts:
        if part.missing > 0.0 and part.worst_low is not None and part.worst_high is not None:
            below += part.weight / total * ((part.low or 0.0) - part.worst_low)
            above += part.weight / total * (part.worst_high - (part.high or 0.0))
    return {"worst_low": low - below, "worst_high": high + above}


def _plain(part: Part) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if name != "contributions"}
