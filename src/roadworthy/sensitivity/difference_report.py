"""Say where one run is worse than another: sentences, figures as plain values, and pictures."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from roadworthy.sensitivity.averages import MAP_POINTS
from roadworthy.sensitivity.difference import LEVEL, Difference, Estimate, Region
from roadworthy.sensitivity.difference_panels import Panel, difference_pair_panel, difference_panel
from roadworthy.sensitivity.factors import Categorical
from roadworthy.sensitivity.score_test import LEVEL as TEST_LEVEL

MOST_PANELS = 9
CAPTIONS = {
    "difference": (
        "Where the runs differ",
        "The difference along each factor, averaged over all other factors. The dark band is pointwise, at 95%. The "
        "light one holds the curves of all factors together in 95% of cases; where it excludes 0, a red bar says worse "
        "and a green one better. Dots are the mean differences of pairs of episodes in bins.",
    ),
    "difference_pairs": (
        "Where the runs differ, by two factors",
        "Red: the second run is worse. Dots mark places where a band that holds the whole map in 95% of cases excludes "
        "0; bands of curves hold all of them together.",
    ),
}


def difference_words(difference: Difference) -> list[str]:
    """Return sentences: the mean difference, the regions where it is certain, and what it depends on."""
    words = [_overall(difference)]
    regions = [region for region in difference.regions if _is_worth_naming(difference, region)]
    words += [_region(difference, region) for region in regions]
    if not difference.regions:
        most = [difference.simultaneous(number) for number in range(len(difference.factors))]
        low, high = min(float(band.low.min()) for band in most), max(float(band.high.max()) for band in most)
        words.append(
            "No value of a single factor is certain to make a difference: bands that hold all curves together include "
            f"0 everywhere, and allow differences from {low:+.2f} to {high:+.2f}."
        )
    depends = [
        f"{factor.name} (p = {p:.3f})"
        for factor, p in zip(difference.factors, difference.p_values, strict=False)
        if p <= TEST_LEVEL
    ]
    if depends:
        listed = " and ".join(filter(None, [", ".join(depends[:-1]), depends[-1]]))
        words.append(f"The difference depends on {listed}, given the other factors.")
    return words


def difference_as_json(difference: Difference) -> dict[str, Any]:
    """Return the difference as plain values."""
    return {
        "first": difference.names[0],
        "second": difference.names[1],
        "n": list(difference.rows),
        "pairs": difference.pairs,
        "why_unpaired": difference.why_unpaired or None,
        "level": LEVEL,
        "mean": asdict(difference.overall),
        "factors": [_factor(difference, number) for number in range(len(difference.factors))],
        "regions": [_region_as_json(difference, region) for region in difference.regions],
        "maps": [_map(difference, *pair) for pair in ranked_pairs(difference)],
        "findings": difference_words(difference),
    }


def difference_panels(difference: Difference) -> dict[str, list[Panel]]:
    """Return the panels of every picture, by its name."""
    order = sorted(range(len(difference.factors)), key=lambda k: -float(np.ptp(difference.marginal(k).mean)))
    panels = {"difference": [difference_panel(difference, number) for number in order[:MOST_PANELS]]}
    pairs = ranked_pairs(difference)
    if pairs:
        panels["difference_pairs"] = [difference_pair_panel(difference, *pair) for pair in pairs]
    return panels


def ranked_pairs(difference: Difference) -> list[tuple[int, int]]:
    """Return pairs of factors, those along which the difference varies most first."""
    varies = [float(difference.marginal(number).mean.var()) for number in range(len(difference.factors))]
    pairs = combinations(range(len(difference.factors)), 2)
    return sorted(pairs, key=lambda pair: -(varies[pair[0]] + varies[pair[1]]))[:MOST_PANELS]


def _overall(difference: Difference) -> str:
    first, second = difference.names
    name, found = difference.outcome_name, difference.overall
    source = (
        f"{difference.pairs} pairs of episodes"
        if difference.pairs
        else f"{difference.rows[1]} and {difference.rows[0]} episodes, unpaired because {difference.why_unpaired}"
    )
    what = f"the probability of {name}" if difference.is_binary else f"mean {name}"
    if found.low <= 0.0 <= found.high:
        return (
            f"Averaged over all factors, {what} of {second} minus that of {first} is {_told(found)}: it may be 0 "
            f"({source})."
        )
    return f"{second} is {_word(difference, found.mean < 0.0)} on average over all factors: {_told(found)} ({source})."


def _region(difference: Difference, region: Region) -> str:
    word = _word(difference, region.is_lower)
    return f"{difference.names[1]} is {word} where {_where(difference, region)}: {_told(region.difference)}."


def _where(difference: Difference, region: Region) -> str:
    factor, grid = difference.factors[region.factor], difference.grid(region.factor)
    first, last = factor.value(grid[region.first]), factor.value(grid[region.last])
    if isinstance(factor, Categorical):
        return f"{factor.name} is {first}"
    if region.first == region.last:
        return f"{factor.name} is about {first:.4g}"
    if region.first == 0:
        return f"{factor.name} < {last:.4g}"
    if region.last == len(grid) - 1:
        return f"{factor.name} > {first:.4g}"
    return f"{factor.name} is between {first:.4g} and {last:.4g}"


def _is_worth_naming(difference: Difference, region: Region) -> bool:
    """Return whether a region says more than the mean difference does."""
    points = len(difference.grid(region.factor))
    is_range = not isinstance(difference.factors[region.factor], Categorical)
    if is_range and region.first == 0 and region.last == points - 1:
        return False
    found = difference.overall
    is_sure = found.low > 0.0 or found.high < 0.0
    is_alike = bool(difference.p_values) and difference.p_values[region.factor] > TEST_LEVEL
    return not (is_sure and is_alike and region.is_lower == (found.mean < 0.0))


def _word(difference: Difference, is_lower: bool) -> str:
    if difference.is_binary:
        return "worse" if is_lower else "better"
    return "lower" if is_lower else "higher"


def _told(found: Estimate) -> str:
    return f"{found.mean:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def _factor(difference: Difference, number: int) -> dict[str, Any]:
    factor, curve, whole = difference.factors[number], difference.marginal(number), difference.simultaneous(number)
    return {
        "name": factor.name,
        "at": [factor.value(unit) for unit in difference.grid(number)],
        "curve": {name: getattr(curve, name).tolist() for name in ("mean", "low", "high")},
        "simultaneous": {name: getattr(whole, name).tolist() for name in ("low", "high")},
        "p_value": difference.p_values[number] if difference.p_values else None,
    }


def _region_as_json(difference: Difference, region: Region) -> dict[str, Any]:
    factor, grid = difference.factors[region.factor], difference.grid(region.factor)
    return {
        "factor": factor.name,
        "from": factor.value(grid[region.first]),
        "to": factor.value(grid[region.last]),
        "is_lower": region.is_lower,
        "difference": asdict(region.difference),
    }


def _map(difference: Difference, first: int, second: int) -> dict[str, Any]:
    band = difference.simultaneous_map(first, second)
    factors = [difference.factors[number] for number in (first, second)]
    grids = [difference.grid(number, MAP_POINTS) for number in (first, second)]
    return {
        "factors": [factor.name for factor in factors],
        "at": [[factor.value(unit) for unit in grid] for factor, grid in zip(factors, grids, strict=True)],
        **{name: getattr(band, name).tolist() for name in ("mean", "low", "high")},
    }
