"""Experiments with a known truth: success probabilities that no logistic spline matches, and their sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm, qmc

from roadworthy.sensitivity.factors import Categorical, Continuous, Factor, spread_units
from roadworthy.sensitivity.rows import Rows

Array = NDArray[np.float64]

LIGHT = Continuous("light", 0.0, 2000.0)
FRICTION = Continuous("friction", 0.2, 1.2)
HEIGHT = Continuous("height", -0.1, 0.1)
DUMMY = Continuous("dummy", 0.0, 1.0)
OBJECT = Categorical("object", ("box", "can", "ball"))


@dataclass(frozen=True)
class KnownSurface:
    """Factors, the true probability of success at units (n, factors), and the sampling of rows."""

    name: str
    factors: tuple[Factor, ...]
    chance: Callable[[Array], Array]
    is_smooth: bool = True
    is_uneven: bool = False

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Return the rows of an experiment with their sampling density."""
        units, density = rng.random((count, len(self.factors))), np.ones(count)
        if self.is_uneven:
            for column, factor in enumerate(self.factors):
                if isinstance(factor, Categorical):
                    shares = np.array([0.6, 0.3, 0.1])
                    units[:, column] = rng.choice(3, count, p=shares)
                    density *= 3.0 * shares[units[:, column].astype(int)]
                else:
                    units[:, column] = rng.beta(1.5, 3.0, count)
                    density *= beta.pdf(units[:, column], 1.5, 3.0)
        else:
            units = spread_units(self.factors, units)
        return self.observe(units, rng, density)

    def observe(self, units: Array, rng: np.random.Generator, density: Array | None = None) -> Rows:
        """Run episodes at these units."""
        success = (rng.random(len(units)) < self.chance(units)).astype(np.float64)
        return Rows.of_arrays(self.factors, units, success, density)

    def replicate(
        self, scenarios: int, replicates: int, likeness: float, rng: np.random.Generator, within: tuple[int, ...] = ()
    ) -> Rows:
        """Run every scenario several times; its rows are alike beyond their factors.

        Args:
            scenarios: The number of scenarios.
            replicates: The number of rows of each scenario.
            likeness: The correlation of rows of a scenario, of a latent Normal variable that decides success. The true
                probability of success at given factors stays that of the surface.
            rng: The source of random draws.
            within: The columns of factors that vary within scenarios; the others have one value for each scenario.
        """
        number = np.repeat(np.arange(scenarios), replicates)
        points = rng.random((scenarios, len(self.factors)))[number]
        for column in within:
            points[:, column] = rng.random(len(number))
        units = spread_units(self.factors, points)
        latent = np.sqrt(likeness) * rng.standard_normal(scenarios)[number]
        latent = latent + np.sqrt(1.0 - likeness) * rng.standard_normal(len(number))
        success = (norm.cdf(latent) < self.chance(units)).astype(np.float64)
        rows = Rows.of_arrays(self.factors, units, success, np.ones(len(number)))
        return replace(rows, scenarios=tuple(f"s{name}" for name in number))

    def marginal(self, factor: int, units: Array) -> Array:
        """Return the true probability at units of one factor, averaged over the others."""
        others = spread_units(self.factors, qmc.Sobol(len(self.factors), rng=5).random(4096))
        curve = np.empty(len(units))
        for number, unit in enumerate(units):
            others[:, factor] = unit
            curve[number] = self.chance(others).mean()
        return curve


def _smooth(units: Array) -> Array:
    light, friction, height = units.T[:3]
    return norm.cdf(1.3 * np.sin(2.6 * light) - 1.6 * friction**2 + 0.9 * height - 0.4)


def _cliff(units: Array) -> Array:
    light, friction = units.T[:2]
    return np.where((light > 0.45) & (friction < 0.7), 0.92, 0.08)


def _threshold(units: Array) -> Array:
    light, friction = units.T[:2]
    return np.where(light > 0.6, 0.25, 0.8) + 0.15 * (friction - 0.5)


def _line(units: Array) -> Array:
    """The third factor moves the probability by 0.24, and explains 24% of the variation."""
    return 0.5 + 0.433 * (units[:, 0] - 0.5) + 0.243 * (units[:, 2] - 0.5)


def _of_two(units: Array) -> Array:
    light, friction = units.T[:2]
    return norm.cdf(1.3 * np.sin(3.9 * light) - 1.2 * friction**2)


def _dimmed(units: Array) -> Array:
    chance = _smooth(units)
    return chance * (1.0 - 0.75 * np.exp(-((units[:, 0] / 0.35) ** 2)))


def _ridge(units: Array) -> Array:
    light, friction, height = units.T
    return 0.08 + 0.8 * np.exp(-(((light - friction) / 0.45) ** 2)) * (1.0 - 0.4 * height)


def _with_object(units: Array) -> Array:
    light, friction, number = units.T
    best, width = np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.35, 0.6])
    kind = number.astype(int)
    return 1.0 - np.exp(-2.2 * np.exp(-(((light - best[kind]) / width[kind]) ** 2)) * (0.35 + 0.65 * friction))


def _rare(units: Array) -> Array:
    light, friction, height = units.T
    return 0.002 + 0.11 * np.exp(-(((light - 0.75) / 0.35) ** 2)) * (0.2 + 0.8 * friction) * (0.6 + 0.1 * height)


KNOWN_SURFACES = (
    KnownSurface("smooth", (LIGHT, FRICTION, HEIGHT), _smooth),
    KnownSurface("irrelevant factor", (LIGHT, FRICTION, HEIGHT, DUMMY), _smooth),
    KnownSurface("interaction", (LIGHT, FRICTION, HEIGHT), _ridge),
    KnownSurface("categorical interaction", (LIGHT, FRICTION, OBJECT), _with_object),
    KnownSurface("uneven sampling", (LIGHT, FRICTION, OBJECT), _with_object, is_uneven=True),
    KnownSurface("2% successes", (LIGHT, FRICTION, HEIGHT), _rare, is_smooth=False),
    KnownSurface("cliff", (LIGHT, FRICTION, HEIGHT), _cliff, is_smooth=False),
    KnownSurface("threshold", (LIGHT, FRICTION, HEIGHT), _threshold, is_smooth=False),
)
NO_EFFECT = KnownSurface("no effect", (LIGHT, FRICTION, DUMMY), _of_two)  # of the dummy
SMALL_EFFECT = KnownSurface("small effect", (LIGHT, FRICTION, DUMMY), _line)  # of the dummy: a total index of 0.24
DIMMED = KnownSurface("worse in the dark", (LIGHT, FRICTION, HEIGHT), _dimmed)  # than the smooth one
