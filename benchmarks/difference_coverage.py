"""Measure intervals and p-values of differences by simulation; a full run writes the results to docs/comparison.md.

Two runs are drawn with a share of common chance: with that probability a pair shares its random draw, and a cluster its
difficulty. Rows of a cluster are alike (intraclass correlation 0.3) where there are several. Unequal: 1 to 20 rows per
cluster. Cases without a difference also measure how often the p-value is below 5%.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.runner import Measurements, Sizes
from roadworthy.statistics import Clusters, paired_rate
from roadworthy.statistics.clusters import sums
from roadworthy.statistics.differences import Tested, paired_difference, unpaired_difference
from roadworthy.statistics.flips import sign_flips
from roadworthy.statistics.paired import one_pair_per_cluster
from roadworthy.statistics.unpaired import unpaired_rate

Array = NDArray[np.float64]
DOCUMENT = Path(__file__).parent.parent / "docs" / "comparison.md"
FULL = 1000  # the number of repetitions for which the document is written
UNEQUAL = 0
LIKENESS = 0.3
SHARED = (0.0, 0.5, 0.9)
ALPHA = 0.05
_GRID = 8192


@dataclass(frozen=True)
class Case:
    """One cell of a table."""

    table: str
    what: str
    clusters: int
    rows: int
    shared: float  # the share of common chance, or the correlation within maps; -1 for runs without pairs
    truth: float

    @property
    def name(self) -> str:
        """The name in the figures of the benchmark."""
        rows = "1 to 20" if self.rows == UNEQUAL else self.rows
        shared = "" if self.shared < 0 else f", shared {self.shared:g}"
        return f"{self.table}: {self.what}, {self.clusters} clusters x {rows}{shared}"


@dataclass(frozen=True)
class Result:
    """What the repetitions of a case gave."""

    case: Case
    repeats: int
    given: int  # with an interval
    held: int
    rejected: int  # with a p-value below 5%


def difference_coverage(found: Measurements, sizes: Sizes) -> None:
    """Run every case; write the document if there are enough repetitions."""
    results = []
    for case in cases():
        repeats = sizes["repeats"] if "rates" in case.table or "few" in case.table else sizes["repeats of means"]
        with found.stage(case.table):
            results.append(measure(case, repeats))
        last = results[-1]
        found.figures[case.name] = round(100.0 * last.held / last.given, 1) if last.given else None
        if case.truth == 0.0 and last.given:
            found.figures[f"{case.name}, rejected"] = round(100.0 * last.rejected / repeats, 1)
    if sizes["repeats"] >= FULL:
        write_tables(results)


def cases() -> Iterator[Case]:
    """Return all cases."""
    for before, after in ((0.02, 0.02), (0.5, 0.5), (0.98, 0.98), (0.02, 0.12), (0.5, 0.55), (0.98, 0.93)):
        for clusters in (20, 100, 1000):
            for rows in (1, 5, UNEQUAL):
                truth = after - before if rows == 1 else float(_chances(after).mean() - _chances(before).mean())
                for shared in SHARED:
                    yield Case("paired rates", f"{before:g} and {after:g}", clusters, rows, shared, truth)
                yield Case("unpaired rates", f"{before:g} and {after:g}", clusters, rows, -1.0, truth)
        for few in (3, 6):
            for shared in SHARED:
                truth = float(_chances(after).mean() - _chances(before).mean())
                yield Case("few clusters", f"{before:g} and {after:g}", few, 8, shared, truth)
    for p in (0.02, 0.05, 0.2):
        for ways, truth in (("one way", -p), ("both ways", 0.0)):
            for clusters in (10, 21, 48):
                for correlation in (0.0, 0.25, 0.5):
                    yield Case("paired rates on maps", f"{p:g} {ways}", clusters, 40, correlation, truth)
    for what in _SHAPES:
        for clusters in (20, 40, 100):
            for rows in (1, 5, UNEQUAL):
                for shared in (0.0, 0.9):
                    yield Case("paired means", what, clusters, rows, shared, 0.0)
                yield Case("unpaired means", what, clusters, rows, -1.0, 0.0)
    for what in ("0.2 per km", "2 per km"):
        for clusters in (20, 40, 100):
            yield Case("paired ratios", what, clusters, 5, 0.5, 0.0)


def measure(case: Case, repeats: int) -> Result:
    """Draw a case repeatedly, with the same seeds in every run."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    given = held = rejected = 0
    for _ in range(repeats):
        tested = _DRAW[case.table](rng, case)
        interval = tested.interval
        if interval.low is not None and interval.high is not None:
            given += 1
            held += interval.low <= case.truth <= interval.high
            rejected += tested.p is not None and tested.p < ALPHA
    return Result(case, repeats, given, held, rejected)


def _clusters(rng: np.random.Generator, case: Case) -> Clusters:
    counts = rng.integers(1, 21, case.clusters) if case.rows == UNEQUAL else np.full(case.clusters, case.rows)
    return Clusters(np.repeat(np.arange(case.clusters), counts), case.clusters)


def _again(rng: np.random.Generator, draws: Array, shared: float) -> Array:
    """Return the draws of the other run: the same with probability `shared`, else new ones."""
    return np.where(rng.random(draws.shape) < shared, draws, rng.random(draws.shape))


@lru_cache
def _chances(p: float) -> Array:
    """Return chances with mean p (to four digits) by their quantile, such that rows of a cluster are alike."""
    strength = (1.0 - LIKENESS) / LIKENESS
    grid = (np.arange(_GRID) + 0.5) / _GRID
    found: Array = special.betaincinv(p * strength, (1.0 - p) * strength, grid)
    return found


def _yes(p: float, clusters: Clusters, difficulty: Array, draws: Array, is_alone: bool) -> Array:
    """Return rows of 0 and 1 with mean p from uniform draws of clusters and of rows."""
    chances = np.full(clusters.count, p) if is_alone else _chances(p)[(difficulty * _GRID).astype(np.int64)]
    return (draws < chances[clusters.codes]).astype(np.float64)


def _rates(case: Case) -> tuple[float, float]:
    before, _, after = case.what.partition(" and ")
    return float(before), float(after)


def _paired_rows(rng: np.random.Generator, case: Case) -> tuple[Clusters, Array, Array]:
    """Return clusters, the rows of the candidate and those of the baseline."""
    clusters = _clusters(rng, case)
    before, after = _rates(case)
    difficulty, draws = rng.random(clusters.count), rng.random(len(clusters.codes))
    is_alone = case.rows == 1
    first = _yes(before, clusters, difficulty, draws, is_alone)
    others = _again(rng, difficulty, case.shared), _again(rng, draws, case.shared)
    second = _yes(after, clusters, *others, is_alone)
    return clusters, second, first


def _paired_rate(rng: np.random.Generator, case: Case) -> Tested:
    clusters, second, first = _paired_rows(rng, case)
    p = sign_flips(sums(second - first, clusters).total).mid
    return Tested(paired_rate(second, first, clusters), p)


def _paired_rate_on_maps(rng: np.random.Generator, case: Case) -> Tested:
    """Draw maps of five scenarios with 8 egos that change together; changes of scenarios correlate within a map."""
    scenarios = Clusters(np.repeat(np.arange(5 * case.clusters), 8), 5 * case.clusters)
    maps = np.repeat(np.arange(case.clusters), 5)
    p, ways = case.what.split(maxsplit=1)
    changed = []
    for chance in (float(p), float(p) if ways == "both ways" else 0.0):
        strength = (1.0 - case.shared) / case.shared if case.shared else 0.0
        is_alike = strength > 0.0 and chance > 0.0
        chances = (
            rng.beta(chance * strength, (1.0 - chance) * strength, case.clusters)
            if is_alike
            else np.full(case.clusters, chance)
        )
        changed.append((rng.random(scenarios.count) < chances[maps])[scenarios.codes])
    first, second = (1.0 - flags.astype(np.float64) for flags in (changed[1], changed[0]))
    clusters = Clusters(maps[scenarios.codes], case.clusters)
    p_value = sign_flips(sums(second - first, clusters).total).mid
    return Tested(paired_rate(second, first, clusters, units=scenarios), p_value)


def _unpaired_rate(rng: np.random.Generator, case: Case) -> Tested:
    both = _clusters(rng, case), _clusters(rng, case)
    rows = [
        _yes(p, own, rng.random(own.count), rng.random(len(own.codes)), case.rows == 1)
        for p, own in zip(_rates(case), both, strict=True)
    ]
    return unpaired_rate(rows[1], rows[0], (both[1], both[0]))


# Distributions by the inverse of their distribution function: symmetric, skewed, mostly nothing, and shares of which
# most are 1.
_SHAPES = ("normal", "exponential", "30% exponential, else 0", "80% at 1, else 0 to 1")


def _shape(what: str, u: Array) -> Array:
    if what == "normal":
        return np.asarray(special.ndtri(np.clip(u, 1e-12, 1 - 1e-12)))
    if what == "exponential":
        return -np.log1p(-u)
    if what.startswith("30%"):
        return np.where(u < 0.7, 0.0, -np.log1p(-np.maximum(u - 0.7, 0.0) / 0.3))
    return np.minimum(u / 0.2, 1.0)


def _values(what: str, clusters: Clusters, difficulty: Array, draws: Array) -> Array:
    """Return rows of which half the variance is between clusters."""
    own = _shape(what, draws)
    if len(own) == clusters.count:
        return own
    return 0.5 * own + 0.5 * _shape(what, difficulty)[clusters.codes]


def _paired_mean(rng: np.random.Generator, case: Case) -> Tested:
    clusters = _clusters(rng, case)
    difficulty, draws = rng.random(clusters.count), rng.random(len(clusters.codes))
    first = _values(case.what, clusters, difficulty, draws)
    others = _again(rng, difficulty, case.shared), _again(rng, draws, case.shared)
    return paired_difference(_values(case.what, clusters, *others), first, clusters)


def _unpaired_mean(rng: np.random.Generator, case: Case) -> Tested:
    both = _clusters(rng, case), _clusters(rng, case)
    rows = [_values(case.what, own, rng.random(own.count), rng.random(len(own.codes))) for own in both]
    return unpaired_difference(rows[0], rows[1], both)


def _paired_ratio(rng: np.random.Generator, case: Case) -> Tested:
    """Events per kilometer: both runs drive about the same distance in clusters that are more or less dangerous."""
    clusters = _clusters(rng, case)
    per_km = float(case.what.split()[0])
    distance = rng.uniform(0.02, 0.2, len(clusters.codes))
    danger = rng.gamma(2.0, 0.5, clusters.count)[clusters.codes]
    weights = tuple(distance * rng.uniform(0.8, 1.2, len(distance)) for _ in range(2))
    events = [rng.poisson(per_km * danger * weight).astype(np.float64) for weight in weights]
    return paired_difference(events[0], events[1], clusters, (weights[0], weights[1]))


def _few_clusters(rng: np.random.Generator, case: Case) -> Tested:
    """Return the interval that counts each cluster as one pair."""
    clusters, second, first = _paired_rows(rng, case)
    found = one_pair_per_cluster(second - first, clusters)
    return Tested(found, sign_flips(sums(second - first, clusters).total).mid)


_DRAW = {
    "few clusters": _few_clusters,
    "paired rates": _paired_rate,
    "paired rates on maps": _paired_rate_on_maps,
    "unpaired rates": _unpaired_rate,
    "paired means": _paired_mean,
    "unpaired means": _unpaired_mean,
    "paired ratios": _paired_ratio,
}


def write_tables(results: list[Result]) -> None:
    """Write the tables into the document between its markers."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in dict.fromkeys(result.case.table for result in results):
        lines = _table([result for result in results if result.case.table == table])
        pattern = re.compile(rf"(<!-- coverage of {re.escape(table)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{DOCUMENT} has no markers for the coverage of {table}")
        text = pattern.sub(lambda match, lines=lines: f"{match[1]}{lines}{match[2]}", text)  # type: ignore[misc]
    DOCUMENT.write_text(text, encoding="utf-8")


def _table(results: list[Result]) -> str:
    """Return a table with a row for each figure and size, and columns for each share of common chance."""
    shares = list(dict.fromkeys(result.case.shared for result in results))
    word = "correlation" if "maps" in results[0].case.table else "shared"
    heads = [f"{word} {share:g}" for share in shares] if len(shares) > 1 else ["coverage"]
    lines = [f"| values | clusters | rows each | {' | '.join(heads)} |", f"|{'---|' * (3 + len(heads))}"]
    groups: dict[tuple[str, int, int], dict[float, Result]] = {}
    for result in results:
        case = result.case
        groups.setdefault((case.what, case.clusters, case.rows), {})[case.shared] = result
    for (what, clusters, rows), group in groups.items():
        cells = [_cell(group[share]) if share in group else "" for share in shares]
        lines.append(f"| {what} | {clusters:,} | {'1 to 20' if rows == UNEQUAL else rows} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{results[0].repeats:,} repetitions each.", ""])


def _cell(result: Result) -> str:
    if not result.given:
        return "not enough data"
    refused = 1.0 - result.given / result.repeats
    cell = f"{100.0 * result.held / result.given:.1f}"
    if result.case.truth == 0.0:
        cell += f" / {100.0 * result.rejected / result.repeats:.1f}"
    return cell + (f" ({refused:.0%} not enough data)" if refused > 0.005 else "")
