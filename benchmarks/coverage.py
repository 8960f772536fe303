"""Measure the coverage of intervals by simulation; a full run writes the results to docs/statistics.md.

Rates are drawn with a share of likeness between the replicates of a scenario (their intraclass correlation): 0 when a
scenario says nothing about its outcome, 1 when it decides it. Unequal: 1 to 20 rows per scenario.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.runner import Measurements, Sizes
from roadworthy.statistics import Clusters, Interval, mean, paired_rate, rate, ratio

Array = NDArray[np.float64]
DOCUMENT = Path(__file__).parent.parent / "docs" / "statistics.md"
FULL = 4000  # the number of repetitions for which the document is written
UNEQUAL = 0  # rows per scenario: 1 to 20
LIKENESS = (0.0, 0.1, 0.3, 0.6, 1.0)


@dataclass(frozen=True)
class Case:
    """One row of a table: the distribution, the number of scenarios, and the rows per scenario."""

    table: str
    what: str
    scenarios: int
    rows: int
    likeness: float
    truth: float
    draw: Callable[[np.random.Generator, Case, Clusters], Interval]

    @property
    def name(self) -> str:
        """The name in the figures of the benchmark."""
        rows = "1 to 20" if self.rows == UNEQUAL else self.rows
        return f"{self.table}: {self.what}, {self.scenarios} scenarios x {rows}, likeness {self.likeness:g}"


@dataclass(frozen=True)
class Coverage:
    """The results of the repetitions of a case."""

    case: Case
    repeats: int
    given: int  # repetitions with an interval; the others had "not enough data"
    held: int  # intervals that contain the truth
    above: int  # intervals above the truth

    @property
    def covered(self) -> float | None:
        """The share of the intervals that contain the truth."""
        return self.held / self.given if self.given else None


def coverage(found: Measurements, sizes: Sizes) -> None:
    """Run every case; write the document if there are enough repetitions."""
    results = []
    for case in cases():
        with found.stage(case.table):
            results.append(measure(case, sizes["repeats"]))
        covered = results[-1].covered
        found.figures[case.name] = None if covered is None else round(100.0 * covered, 1)
    if sizes["repeats"] >= FULL:
        write_tables(results, sizes["repeats"])


def cases() -> Iterator[Case]:
    """Return all cases."""
    for p in (0.02, 0.5, 0.98):
        for scenarios in (20, 100, 1000):
            yield Case("rates", f"{p:g}", scenarios, 1, 0.0, p, _rate)
            for likeness in LIKENESS:
                yield Case("rates", f"{p:g}", scenarios, 5, likeness, p, _rate)
    yield Case("rates", "0.5", 4, 5, 0.3, 0.5, _rate)
    for p in (0.02, 0.1, 0.5):
        for scenarios in (20, 100, 1000):
            for likeness in (0.0, 0.3, 0.6):
                yield Case("rates, unequal", f"{p:g}", scenarios, UNEQUAL, likeness, p, _rate)
    for middle in (0.05, 0.2, 0.8):
        for scenarios in (15, 35, 200):
            for rows in (3, 12):
                for spread in (1.0, 3.0):
                    truth = _logistic_truth(middle, spread)
                    yield Case(
                        "rates, held out", f"{middle:g} at the median", scenarios, rows, spread, truth, _logistic
                    )
    for what, truth in _MEANS.items():
        for scenarios in (20, 80, 100, 1000):
            for rows in (1, 5, UNEQUAL) if scenarios < 1000 else (5,):
                yield Case("means", what, scenarios, rows, 0.5, truth, _mean)
    for per_km in (0.2, 2.0):
        for scenarios in (50, 80, 100, 1000):
            yield Case("ratios", f"{per_km:g} per km", scenarios, 5, 0.5, per_km, _ratio)
    for delta in (0.0, 0.05, 0.3):
        for scenarios in (20, 100, 1000):
            for rows, likeness in ((1, 0.0), (5, 0.3)):
                yield Case("paired rates", f"0.5 and {0.5 + delta:g}", scenarios, rows, likeness, delta, _paired)


def measure(case: Case, repeats: int) -> Coverage:
    """Draw a case repeatedly, with the same seeds in every run."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    given = held = above = 0
    for _ in range(repeats):
        counts = rng.integers(1, 21, case.scenarios) if case.rows == UNEQUAL else np.full(case.scenarios, case.rows)
        clusters = Clusters(np.repeat(np.arange(case.scenarios), counts), case.scenarios)
        interval = case.draw(rng, case, clusters)
        if interval.low is not None and interval.high is not None:
            given += 1
            held += interval.low <= case.truth <= interval.high
            above += case.truth < interval.low
    return Coverage(case, repeats, given, held, above)


def _yes(rng: np.random.Generator, clusters: Clusters, p: float, likeness: float) -> Array:
    """Draw rows of 0 and 1 with mean p that are correlated within clusters."""
    if likeness == 0.0:
        chances = np.full(clusters.count, p)
    elif likeness == 1.0:
        chances = (rng.random(clusters.count) < p).astype(np.float64)
    else:
        strength = (1.0 - likeness) / likeness
        chances = rng.beta(p * strength, (1.0 - p) * strength, clusters.count)
    return (rng.random(len(clusters.codes)) < chances[clusters.codes]).astype(np.float64)


def _rate(rng: np.random.Generator, case: Case, clusters: Clusters) -> Interval:
    return rate(_yes(rng, clusters, case.truth, case.likeness), clusters)


def _logistic(rng: np.random.Generator, case: Case, clusters: Clusters) -> Interval:
    """Draw scenarios whose log odds are normally distributed around those of a rate."""
    middle = float(case.what.split()[0])
    chances = expit(logit(middle) + case.likeness * rng.normal(size=clusters.count))
    return rate((rng.random(len(clusters.codes)) < chances[clusters.codes]).astype(np.float64), clusters)


def _logistic_truth(middle: float, spread: float) -> float:
    """Return the mean rate of such scenarios."""
    points, weights = np.polynomial.hermite_e.hermegauss(101)
    return float((weights * expit(logit(middle) + spread * points)).sum() / weights.sum())


# Means by what is drawn: symmetric, skewed, mostly nothing, and lengths of which most are the longest possible.
_MEANS = {"normal": 0.0, "exponential": 1.0, "30% exponential, else 0": 0.3, "80% near 90, else 5 to 60": 78.5}


def _draw(rng: np.random.Generator, what: str, size: int) -> Array:
    if what == "normal":
        return rng.normal(size=size)
    if what == "exponential":
        return rng.exponential(size=size)
    if what.startswith("30%"):
        return rng.exponential(size=size) * (rng.random(size) < 0.3)
    return np.where(rng.random(size) < 0.8, rng.normal(90.0, 1.0, size), rng.uniform(5.0, 60.0, size))


def _mean(rng: np.random.Generator, case: Case, clusters: Clusters) -> Interval:
    """Draw rows of which half the variance is between scenarios; one row per scenario is drawn directly."""
    own = _draw(rng, case.what, len(clusters.codes))
    if case.rows != 1:
        own = 0.5 * own + 0.5 * _draw(rng, case.what, clusters.count)[clusters.codes]
    return mean(own, clusters)


def _ratio(rng: np.random.Generator, case: Case, clusters: Clusters) -> Interval:
    """Events per kilometer in scenarios that are more or less dangerous, over 20 to 200 m each."""
    distance = rng.uniform(0.02, 0.2, len(clusters.codes))
    danger = rng.gamma(2.0, 0.5, clusters.count)[clusters.codes]
    return ratio(rng.poisson(case.truth * danger * distance).astype(np.float64), distance, clusters)


def _paired(rng: np.random.Generator, case: Case, clusters: Clusters) -> Interval:
    """Draw pairs: half of the egos have equal trials; the gain is among the others."""
    before = _yes(rng, clusters, 0.5, case.likeness)
    again = _yes(rng, clusters, 0.5 + 2.0 * case.truth if case.truth < 0.25 else 0.5, case.likeness)
    differs = rng.random(len(before)) < 0.5
    after = np.where(differs, again, before)
    if case.truth >= 0.25:
        after = np.maximum(after, (rng.random(len(before)) < 2.0 * case.truth).astype(np.float64))
    return paired_rate(after, before, clusters)


def write_tables(results: list[Coverage], repeats: int) -> None:
    """Write the tables into the document between its markers."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in dict.fromkeys(result.case.table for result in results):
        lines = _table([result for result in results if result.case.table == table], repeats)
        mark = re.escape(table)
        pattern = re.compile(rf"(<!-- coverage of {mark} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{DOCUMENT} has no markers for the coverage of {table}")
        text = pattern.sub(lambda match, lines=lines: f"{match[1]}{lines}{match[2]}", text)  # type: ignore[misc]
    DOCUMENT.write_text(text, encoding="utf-8")


def _table(results: list[Coverage], repeats: int) -> str:
    """Return a table with a row for each truth and size, and a column for each correlation if there are several."""
    likenesses = list(dict.fromkeys(result.case.likeness for result in results if result.case.rows != 1))
    word = "spread" if results[0].case.draw is _logistic else "likeness"
    heads = [f"{word} {value:g}" for value in likenesses] if len(likenesses) > 1 else ["coverage"]
    lines = [f"| truth | scenarios | rows each | {' | '.join(heads)} |", f"|{'---|' * (3 + len(heads))}"]
    groups: dict[tuple[str, int, int], list[Coverage]] = {}
    for result in results:
        case = result.case
        groups.setdefault((case.what, case.scenarios, case.rows), []).append(result)
    for (what, scenarios, rows), group in groups.items():
        cells = {result.case.likeness: _cell(result) for result in group}
        columns = [cells.get(value, "") for value in likenesses] if len(group) > 1 else [*cells.values()]
        columns += [""] * (len(heads) - len(columns))
        size = "1 to 20" if rows == UNEQUAL else str(rows)
        lines.append(f"| {what} | {scenarios:,} | {size} | {' | '.join(columns)} |")
    return "\n".join([*lines, "", f"{repeats:,} repetitions each.", ""])


def _cell(result: Coverage) -> str:
    if result.given == 0:
        return "not enough data"
    refused = 1.0 - result.given / result.repeats
    if refused > 0.9:
        return f"not enough data, but for {result.given} of {result.repeats:,}, of which {result.held} held"
    cell = f"{100.0 * result.held / result.given:.1f}"
    if result.case.draw in (_rate, _logistic) and result.above in (0, result.given - result.held):
        cell += "¹"
    return cell + (f" ({refused:.1%} not enough data)" if refused > 0 else "")
