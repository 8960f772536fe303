"""The text of comparisons: differences with units and intervals, verdicts, and sentences about pairs and flips."""

from __future__ import annotations

from roadworthy.comparison.compare import Comparison, Versus
from roadworthy.comparison.difference import Difference, Verdict
from roadworthy.comparison.ranking import Ranking
from roadworthy.metrics.metric import Kind
from roadworthy.report.words import NONE, many, number, plain_name

SHADES = {
    Verdict.BETTER: "good",
    Verdict.NOT_WORSE: "good",
    Verdict.EQUAL: "good",
    Verdict.WORSE: "bad",
    Verdict.UNDECIDED: "middling",
}


def value(found: Difference, side: float | None) -> str:
    """Return a figure of one of the runs."""
    return number(side, found.metric.unit)


def change(found: Difference) -> str:
    """Return the difference with its unit; shares in percentage points."""
    return number(found.interval.value, found.metric.unit, signed=True)


def interval(found: Difference) -> str:
    """Return the interval of the difference, or in brief why there is none."""
    return between(found, found.interval.low, found.interval.high)


def worst_case(found: Difference) -> str:
    """Return the interval with the worst and best values of what is missing."""
    return between(found, found.interval.worst_low, found.interval.worst_high)


def between(found: Difference, low: float | None, high: float | None) -> str:
    """Return two ends of an interval as text."""
    if low is None or high is None:
        return (found.interval.note or NONE).partition(":")[0]
    unit = found.metric.unit
    ends = [number(end, unit, signed=True).removesuffix(" pts").removesuffix(f" {unit}") for end in (low, high)]
    return " to ".join(ends)


def name(found: Difference) -> str:
    """Return the metric in words."""
    return plain_name(found.metric.name)


def margin(found: Difference) -> str:
    """Return the margin with its unit; of shares in percentage points."""
    return number(found.margin, found.metric.unit, signed=True).removeprefix("+")


def verdict(found: Difference) -> str:
    """Return the verdict in words."""
    if found.verdict is Verdict.NOT_WORSE:
        return f"not worse by {margin(found)}"
    return found.verdict.value


def p_value(p: float | None) -> str:
    """Return a p-value with two digits."""
    return NONE if p is None else "< 0.001" if p < 0.001 else f"{p:.2g}"


def sample(versus: Versus) -> str:
    """Return a sentence about what was compared."""
    main = versus.main.interval
    clusters = many(main.clusters, "cluster")
    if not versus.is_paired:
        return f"No pairs: {versus.why_unpaired}. Compared as independent samples of at least {clusters}."
    return f"{many(versus.pairs, 'episode')} in pairs, from {clusters}."


def alone(versus: Versus) -> list[str]:
    """Return sentences about episodes without a partner."""
    if not versus.is_paired:
        return []
    names = (versus.label, "the reference")
    return [f"without a partner in {side}: {why}" for side, why in zip(names, versus.unmatched, strict=True) if why]


def flipped(versus: Versus) -> str:
    """Return a sentence about the episodes that changed in the main metric."""
    if versus.main.metric.kind is not Kind.RATE or not versus.is_paired:
        return ""
    lost, gained = versus.flips.lost, versus.flips.gained
    words = ("worse", "better") if versus.main.metric.better else ("lower", "higher")
    if not lost and not gained:
        return f"No episode changed in {name(versus.main)}."
    return f"{many(lost, 'episode')} went {words[0]} in {name(versus.main)}, {gained:,} {words[1]}."


def conclusion(versus: Versus) -> str:
    """Return one sentence about the main metric."""
    main = versus.main
    text = f"{name(main)[:1].upper()}{name(main)[1:]} of {versus.label}"
    size = f"{change(main)} ({interval(main)})"
    if main.verdict is Verdict.EQUAL:
        return f"{text} is equal in every pair."
    if main.interval.low is None:
        return f"There are not enough data to compare {name(main)} ({change(main)})."
    if main.verdict is Verdict.UNDECIDED:
        question = f"is worse by {margin(main)} or more" if main.margin and main.metric.better else "differs"
        return f"These data do not decide whether {text[:1].lower()}{text[1:]} {question}: {size}."
    if main.verdict is Verdict.NOT_WORSE:
        return f"{text} is not worse by {margin(main)} or more: {size}."
    return f"{text} is {main.verdict.value}: {size}."


def missing(found: Difference) -> str:
    """Return a sentence about rows without a result; empty if there are none."""
    if not found.interval.missing:
        return ""
    counted = "count as failures" if found.metric.failed is not None else "are left out"
    text = f"{name(found)}: {found.interval.missing:.1%} of the rows have no result and {counted}"
    return f"{text}; at worst {worst_case(found)}" if found.interval.worst_low is not None else text


def rank_text(ranking: Ranking, place: int) -> str:
    """Return the rank that the data allow."""
    found = ranking.ranked[place]
    return f"{found.best}" if found.best == found.worst else f"{found.best} to {found.worst}"


def title(comparison: Comparison) -> str:
    """Return a title for the whole comparison."""
    candidates = list(dict.fromkeys(versus.label for versus in comparison.versus))
    return f"{', '.join(candidates)} against {comparison.reference}"
