"""The cases of the coverage benchmark: distributions with known true values, and intervals of samples from them.

The correlation is the share of the variance that the rows of a cluster have in common: 0 when a cluster says nothing
about its rows, 1 when it decides them. Clusters of unequal size have 1 to 20 rows, or 1 to 50 with many small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from roadworthy.metrics.roll_up import Part, roll_up
from roadworthy.statistics import Clusters, Interval, mean, paired_rate, rate, ratio, with_missing
from roadworthy.statistics.clusters import sums

Array = NDArray[np.float64]
Rng = np.random.Generator
UNEQUAL, SKEWED = 0, -1  # rows per cluster: 1 to 20 evenly, or 1 to about 50 with many small ones
SIZES = {UNEQUAL: "1 to 20", SKEWED: "1 to 50"}
PER_MAP = 5  # scenarios that share a map


@dataclass(frozen=True)
class Case:
    """One cell of a table: what is drawn, from how many clusters, and how its interval is made."""

    table: str
    what: str
    clusters: int
    rows: int  # of each cluster, or one of SIZES
    column: str
    truth: float
    draw: Callable[[Rng, Clusters], Interval]
    is_rate: bool = False  # whether values jump, so that coverage can't be met on both sides

    @property
    def size(self) -> str:
        """The rows of a cluster in words."""
        return SIZES.get(self.rows, str(self.rows))

    @property
    def name(self) -> str:
        """The name in the figures of the benchmark."""
        return f"{self.table}: {self.what}, {self.clusters} clusters x {self.size}, {self.column}"

    def sample(self, rng: Rng) -> Interval:
        """Draw a sample and return its interval."""
        return self.draw(rng, clusters_of(rng, self.clusters, self.rows))


def clusters_of(rng: Rng, count: int, rows: int) -> Clusters:
    """Return clusters with as many rows as a case has."""
    if rows == UNEQUAL:
        sizes = rng.integers(1, 21, count)
    elif rows == SKEWED:
        sizes = np.clip(np.round(np.exp(rng.normal(1.2, 1.0, count))), 1, 50).astype(np.int64)
    else:
        sizes = np.full(count, rows)
    return Clusters(np.repeat(np.arange(count), sizes), count)


def cases() -> Iterator[Case]:
    """Return all cases."""
    yield from _rates()
    yield from _means()
    yield from _ratios()
    yield from _paired_rates()
    yield from _missing_data()
    yield from _shared_maps()
    yield from _roll_ups()


def _rates() -> Iterator[Case]:
    def case(
        table: str, p: float, count: int, rows: int, column: str, draw: Callable[..., Array], *more: float
    ) -> Case:
        return Case(table, f"{p:g}", count, rows, column, p, lambda rng, c: rate(draw(rng, c, p, *more), c), True)

    for p in (0.02, 0.5, 0.98):
        for count in (20, 100, 1000):
            yield case("rates", p, count, 1, "correlation 0", correlated, 0.0)
            for share in (0.0, 0.1, 0.3, 0.6, 1.0):
                yield case("rates", p, count, 5, f"correlation {share:g}", correlated, share)
    for p in (0.02, 0.1, 0.5, 0.98):
        for count in (20, 100, 1000):
            for rows in (UNEQUAL, SKEWED):
                for share in (0.0, 0.3, 0.6):
                    yield case("rates, unequal", p, count, rows, f"correlation {share:g}", correlated, share)
    for p in (0.02, 0.1, 0.95):
        for count in (20, 100, 400):
            for rows in (8, UNEQUAL):
                for share in (0.2, 0.5, 0.8):
                    yield case("rates, joint failures", p, count, rows, f"{share:.0%} joint", jointly_failing, share)
    for p in (0.02, 0.2, 0.5, 0.98):
        for count in (2, 4, 8):
            for share in (0.0, 0.3, 1.0):
                yield case("rates, few clusters", p, count, 5, f"correlation {share:g}", correlated, share)
    for p in (0.08, 0.25, 0.8):
        for count in (15, 35, 200):
            for rows in (3, 12):
                for spread in (1.0, 3.0):
                    yield case("rates, held out", p, count, rows, f"spread {spread:g}", logistic, spread)


def _means() -> Iterator[Case]:
    for what, truth in MEANS.items():
        for count in (10, 20, 50, 100, 1000):
            for rows in (1, 5, UNEQUAL) if count < 1000 else (5,):
                draw = partial(_mean, what=what, is_share=what in SHARES)
                yield Case("means", what, count, rows, "coverage", truth, draw)


def _ratios() -> Iterator[Case]:
    for per_km in (0.05, 0.2, 2.0):
        for count in (5, 20, 100, 1000):
            for column, danger, joint in (("independent", 0.0, 0.0), ("varying", 0.7, 0.0), ("half joint", 0.7, 0.5)):
                draw = partial(_ratio, per_km=per_km, danger=danger, joint=joint)
                yield Case("ratios", f"{per_km:g} per km", count, 5, column, per_km, draw)


def _paired_rates() -> Iterator[Case]:
    for delta in (0.0, 0.05, 0.3):
        for count in (20, 100, 1000):
            for rows, share in ((1, 0.0), (5, 0.3)):
                draw = partial(_paired, delta=delta, share=share)
                what = f"0.5 and {0.5 + delta:g}"
                yield Case("paired rates", what, count, rows, "coverage", delta, draw)


def _missing_data() -> Iterator[Case]:
    """10% of the episodes crash, in hard scenarios; 0.82 is the rate if all had run, 0.789 if those had failed."""
    for count in (100, 500):
        for rows in (1, 5):
            for column, truth, is_worst, failed in (
                ("left out", 0.82, False, None),
                ("counted as failed", 0.789, False, 0.0),
                ("worst case", 0.82, True, 0.0),
            ):
                draw = partial(_crashing, is_worst=is_worst, failed=failed)
                yield Case("missing data", "0.82", count, rows, column, truth, draw, True)


def _shared_maps() -> Iterator[Case]:
    for what, truth in (("rate", 0.7), ("rate", 0.95), ("rate", 0.02), *((name, 1.0) for name in LATENT)):
        for count in (12, 24, 48, 96):
            for column, by_map in (("by scenario", False), ("by map", True)):
                draw = partial(_on_maps, what=what, truth=truth, by_map=by_map)
                name = f"{what}, {truth:g}" if what == "rate" else what
                yield Case("shared maps", name, count, PER_MAP, column, LATENT.get(what, truth), draw)


def _roll_ups() -> Iterator[Case]:
    for p in (0.5, 0.9, 0.98):
        for count in (12, 24, 96):
            for column, is_joint in (("as if independent", False), ("clustered jointly", True)):
                draw = partial(_roll_up, p=p, is_joint=is_joint)
                yield Case("roll-ups", f"{p:g}, three sections", count, PER_MAP, column, p, draw)


def correlated(rng: Rng, clusters: Clusters, p: float, share: float) -> Array:
    """Draw rows of 0 and 1 with mean p and this correlation within clusters."""
    if share == 0.0:
        chances = np.full(clusters.count, p)
    elif share == 1.0:
        chances = (rng.random(clusters.count) < p).astype(np.float64)
    else:
        strength = (1.0 - share) / share
        chances = rng.beta(p * strength, (1.0 - p) * strength, clusters.count)
    return _yes(rng, chances[clusters.codes])


def jointly_failing(rng: Rng, clusters: Clusters, p: float, share: float) -> Array:
    """Draw rows with mean p of which the rarer outcome comes in whole clusters in a share of the cases, else alone."""
    rarer = min(p, 1.0 - p)
    together = rng.random(clusters.count) < rarer * share
    alone = _yes(rng, np.full(len(clusters.codes), rarer * (1.0 - share) / (1.0 - rarer * share)))
    found = np.where(together[clusters.codes], 1.0, alone)
    return found if p <= 0.5 else 1.0 - found


def logistic(rng: Rng, clusters: Clusters, p: float, spread: float) -> Array:
    """Draw rows with mean p in clusters whose log odds are normal with this standard deviation."""
    chances = expit(_middle(p, spread) + spread * rng.normal(size=clusters.count))
    return _yes(rng, chances[clusters.codes])


@cache
def _middle(p: float, spread: float) -> float:
    """Return the log odds of the median cluster where the mean rate is p."""
    points, weights = np.polynomial.hermite_e.hermegauss(101)

    def excess(middle: float) -> float:
        return float((weights * expit(middle + spread * points)).sum() / weights.sum()) - p

    return float(brentq(excess, logit(p) - 20.0, logit(p) + 20.0))


def _yes(rng: Rng, chances: Array) -> Array:
    return (rng.random(len(chances)) < chances).astype(np.float64)


# Means by what is drawn: symmetric, skewed, mostly nothing, lengths of which most are the longest possible, and shares.
MEANS = {
    "normal": 0.0,
    "exponential": 1.0,
    "30% exponential, else 0": 0.3,
    "80% near 90, else 5 to 60": 78.5,
    "share near 1": 8.0 / 8.8,
    "share, 60% are 1": 0.6 + 0.4 * 6.0 / 7.0,
}
SHARES = ("share near 1", "share, 60% are 1")


def _values(rng: Rng, what: str, size: int) -> Array:
    if what == "normal":
        return rng.normal(size=size)
    if what == "exponential":
        return rng.exponential(size=size)
    if what == "share near 1":
        return rng.beta(8.0, 0.8, size)
    if what == "share, 60% are 1":
        return np.where(rng.random(size) < 0.6, 1.0, rng.beta(6.0, 1.0, size))
    if what.startswith("30%"):
        return rng.exponential(size=size) * (rng.random(size) < 0.3)
    return np.where(rng.random(size) < 0.8, rng.normal(90.0, 1.0, size), rng.uniform(5.0, 60.0, size))


def _mean(rng: Rng, clusters: Clusters, what: str, is_share: bool) -> Interval:
    """Draw rows of which half the variance is between clusters; one row per cluster is drawn directly."""
    own = _values(rng, what, len(clusters.codes))
    if len(own) != clusters.count:
        own = 0.5 * own + 0.5 * _values(rng, what, clusters.count)[clusters.codes]
    return mean(own, clusters, is_share=is_share)


def _ratio(rng: Rng, clusters: Clusters, per_km: float, danger: float, joint: float) -> Interval:
    """Events per kilometer over 20 to 200 m a row, in clusters of varying danger; some happen to all rows at once."""
    distance = rng.uniform(0.02, 0.2, len(clusters.codes))
    dangers = rng.gamma(1.0 / danger**2, danger**2, clusters.count) if danger else np.ones(clusters.count)
    alone = rng.poisson((1.0 - joint) * per_km * (dangers[clusters.codes]) * distance).astype(np.float64)
    together = rng.poisson(joint * per_km * dangers * 0.11)[clusters.codes]
    return ratio(alone + together, distance, clusters)


def _paired(rng: Rng, clusters: Clusters, delta: float, share: float) -> Interval:
    """Draw pairs: half of the egos have equal trials; the gain is among the others."""
    before = correlated(rng, clusters, 0.5, share)
    again = correlated(rng, clusters, 0.5 + 2.0 * delta if delta < 0.25 else 0.5, share)
    after = np.where(rng.random(len(before)) < 0.5, again, before)
    if delta >= 0.25:
        after = np.maximum(after, (rng.random(len(before)) < 2.0 * delta).astype(np.float64))
    return paired_rate(after, before, clusters)


def _crashing(rng: Rng, clusters: Clusters, is_worst: bool, failed: float | None) -> Interval:
    """A fifth of the scenarios are hard: 31% succeed there, and half of the episodes crash; else 94.75% succeed."""
    is_hard = (rng.random(clusters.count) < 0.2)[clusters.codes]
    values = _yes(rng, np.where(is_hard, 0.31, 0.9475))
    has_crashed = is_hard & (rng.random(len(values)) < 0.5)
    found = with_missing(lambda rows: rate(rows, clusters), values, has_crashed, failed, (0.0, 1.0))
    if is_worst:
        return Interval(found.value, found.n, found.clusters, found.worst_low, found.worst_high)
    return found


LATENT = {"share": 0.8, "distance": 1.0, "events per km": 1.0}  # what is drawn on maps, with its true value


def _on_maps(rng: Rng, maps: Clusters, what: str, truth: float, by_map: bool) -> Interval:
    """Draw two egos in each scenario; 30% of the variance is between maps, 10% between the scenarios of a map."""
    places = Clusters(np.repeat(maps.codes, 2), maps.count)
    scenarios = Clusters(np.repeat(np.arange(len(maps.codes)), 2), len(maps.codes))
    latent = np.sqrt(0.3) * rng.normal(size=maps.count)[places.codes]
    latent += np.sqrt(0.1) * rng.normal(size=scenarios.count)[scenarios.codes]
    latent += np.sqrt(0.6) * rng.normal(size=len(places.codes))
    clusters, units = (places, scenarios) if by_map else (scenarios, None)
    if what == "rate":
        return rate((latent < ndtri(truth)).astype(np.float64), clusters, units=units)
    if what == "share":
        return mean(np.clip(0.8 + 0.06 * latent, 0.0, 1.0), clusters, is_share=True, units=units)
    if what == "distance":
        return mean(np.exp(0.5 * latent - 0.125), clusters)
    events = rng.poisson(0.2 * np.exp(0.7 * latent - 0.245)).astype(np.float64)
    return ratio(events, np.full(len(events), 0.2), clusters, units=units)


def _roll_up(rng: Rng, maps: Clusters, p: float, is_joint: bool) -> Interval:
    """Draw three sections of scenarios on the same maps; the maps decide half of the variance of all sections."""
    sections = [Clusters(maps.codes, maps.count)] * 3
    chances = rng.beta(p, 1.0 - p, maps.count)  # a correlation of 0.5
    parts = []
    for number, section in enumerate(sections):
        values = _yes(rng, chances[section.codes])
        found = rate(values, section)
        names = (f"{number}/{k}" if not is_joint else f"{k}" for k in range(maps.count))
        contributions = dict(zip(names, sums(values, section).parts.tolist(), strict=True))
        part = Part(f"{number}", "score", 1.0, found.value, found.low, found.high, found.level)
        parts.append(Part(**{**vars(part), "contributions": contributions}))
    return _of_roll_up(parts)


def _of_roll_up(parts: Sequence[Part]) -> Interval:
    found = roll_up(parts)
    return Interval(found["value"], len(parts), 0, found["low"], found["high"], found["level"])
