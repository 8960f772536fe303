"""Margins of comparisons and gates: numbers in the unit of a metric, below the range of what it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.metrics.metric import Kind, Metric
from roadworthy.plugins import nearest

Margins = float | Mapping[str, float] | None


def as_margin(given: Any, what: str = "the margin") -> float:
    """Return a margin as a number; what: how the error names it."""
    try:
        number = float(given)
    except (TypeError, ValueError):
        raise UsageError(f"{what} is {given!r}, expected a number in the unit of the metric{_share(given)}") from None
    if not number >= 0.0:
        raise UsageError(f"{what} is {number:g}; allowed: 0 or more")
    return number


def _share(given: Any) -> str:
    """Return which number a percentage stands for."""
    text = str(given).strip()
    try:
        share = float(text.removesuffix("%")) / 100.0
    except ValueError:
        return ", such as 0.02"
    return f"; {text} of a rate is {share:g}"


def margins_by_metric(margin: Margins) -> dict[str, float]:
    """Return margins by metric; "" stands for all others."""
    if isinstance(margin, Mapping):
        return {name: as_margin(value, f"the margin of {name}") for name, value in margin.items()}
    return {} if margin is None else {"": as_margin(margin)}


def require_known_margins(margins: Mapping[str, float], metrics: Sequence[Metric]) -> None:
    """Raise UsageError if a margin names no metric, or no difference of its metric could be as large."""
    known = [metric.name for metric in metrics]
    for name in margins:
        if name and name not in known:
            raise UsageError(f"a margin is given for {name!r}; {nearest(name, known)}")
    for metric in metrics:
        if metric.kind is not Kind.RATIO:
            require_margin(metric, margin_of(margins, metric.name), is_for_all=metric.name not in margins)


def require_margin(metric: Metric, margin: float, *, is_for_all: bool = False) -> None:
    """Raise UsageError if a margin is as wide as the range of a metric, since everything would pass.

    is_for_all: whether the margin was given for all metrics.
    """
    if metric.bounds is None:
        return
    span = metric.bounds[1] - metric.bounds[0]
    if not 0.0 <= margin < span:
        meant = f"; 0.02 is two percentage points, so {margin:g}% is {margin / 100.0:g}" if span == 1.0 else ""
        remedy = "; margins by name hold for single metrics, such as those of another unit" if is_for_all else ""
        raise UsageError(
            f"the margin is {margin:g}; allowed: from 0 to below {span:g}, the range of {metric.name!r}{meant}{remedy}"
        )


def margin_of(margins: Mapping[str, float], name: str) -> float:
    """Return the margin of a metric; one without a name holds for all metrics that have none."""
    return margins.get(name, margins.get("", 0.0))
