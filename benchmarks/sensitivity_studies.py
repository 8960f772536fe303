"""Sensitivity analysis of studies as people run them: replicates, correlated factors, few rows, and two runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from benchmarks.known_surfaces import DIMMED, KNOWN_SURFACES, NO_EFFECT, SMALL_EFFECT, KnownSurface
from benchmarks.runner import Measurements, Sizes
from roadworthy.sensitivity.averages import grid_units
from roadworthy.sensitivity.difference import Difference, difference
from roadworthy.sensitivity.importance import Verdict, importance
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import SurfaceConfig, fit

Array = NDArray[np.float64]

FIRST_SEED = 400_000
SMOOTH = KNOWN_SURFACES[0]
DUMMY = 2  # the factor without effect, or with the small one
REPLICATED = {  # scenarios, rows of each, their likeness, factors that vary within scenarios
    "130 scenarios of 5": (130, 5, 0.5, ()),
    "40 scenarios of 5": (40, 5, 0.5, ()),
    "130 scenarios of 5, light varies within": (130, 5, 0.5, (0,)),
    "130 scenarios of 5, very much alike": (130, 5, 0.8, ()),
    "130 scenarios of 5, not alike": (130, 5, 0.0, ()),
}


def clusters(found: Measurements, sizes: Sizes) -> None:
    """Measure the coverage of 90% bands where scenarios have several rows, and if rows are taken as independent."""
    truths = [SMOOTH.marginal(j, grid_units(factor)) for j, factor in enumerate(SMOOTH.factors)]
    for name, (scenarios, replicates, likeness, within) in REPLICATED.items():
        held: dict[str, list[list[float]]] = {"": [], ", as independent": [], ", whole curves": []}
        for repeat in range(sizes["repeats"]):
            rng = np.random.default_rng(FIRST_SEED + repeat)
            rows = SMOOTH.replicate(scenarios, replicates, likeness, rng, within)
            for way in ("", ", as independent"):
                with found.stage(f"{name}{way}: fit"):
                    surface = fit(rows if not way else replace(rows, scenarios=None))
                bands = [surface.marginal(number) for number in range(len(truths))]
                held[way].append([_share(b.low, t, b.high) for b, t in zip(bands, truths, strict=True)])
                if not way:
                    bands = [surface.simultaneous(number) for number in range(len(truths))]
                    held[", whole curves"].append(
                        [float(_share(b.low, t, b.high) == 1.0) for b, t in zip(bands, truths, strict=True)]
                    )
        for way, shares in held.items():
            _tell(found, f"{name}: curves covered{way}", np.mean(shares, axis=1))


def null_factors(found: Measurements, sizes: Sizes) -> None:
    """Count how often a factor without effect is said to matter, and a small effect to be irrelevant."""
    studies = {
        "correlated 0.6": lambda rng: correlated(300, 0.6, rng),
        "correlated 0.8": lambda rng: correlated(300, 0.8, rng),
        "correlated 0.95": lambda rng: correlated(300, 0.95, rng),
        "of scenarios, 2% jitter, 50 of 8": lambda rng: jittered(50, 8, rng),
        "of scenarios, 2% jitter, 20 of 8": lambda rng: jittered(20, 8, rng),
        "independent, 644 rows": lambda rng: NO_EFFECT.sample(644, rng),
        "independent, 2000 rows": lambda rng: NO_EFFECT.sample(2000, rng),
        "total index 0.24, 60 rows": lambda rng: SMALL_EFFECT.sample(60, rng),
        "total index 0.24, 150 rows": lambda rng: SMALL_EFFECT.sample(150, rng),
        "total index 0.24, 400 rows": lambda rng: SMALL_EFFECT.sample(400, rng),
    }
    for name, study in studies.items():
        said = []
        for repeat in range(sizes["repeats"]):
            rows = study(np.random.default_rng(FIRST_SEED + repeat))
            surface = fit(rows, SurfaceConfig(draws=200))
            with found.stage("importance"):
                said.append([part.verdict for part in importance(rows, surface)])
        for verdict in Verdict:
            _tell(found, f"{name}: {verdict.value}", np.array([row[DUMMY] is verdict for row in said], np.float64))
        _tell(found, f"{name}: light matters", np.array([row[0] is Verdict.MATTERS for row in said], np.float64))


def differences(found: Measurements, sizes: Sizes) -> None:
    """Measure the coverage of 95% bands of the difference of two runs, and how often a region is wrong."""
    for name, other, replicates, is_paired in (
        ("worse in the dark, pairs", DIMMED, 1, True),
        ("worse in the dark, unpaired", DIMMED, 1, False),
        ("equal, pairs", SMOOTH, 1, True),
        ("equal, 5 pairs of each scenario", SMOOTH, 5, True),
    ):
        truths = [
            other.marginal(j, grid_units(factor)) - SMOOTH.marginal(j, grid_units(factor))
            for j, factor in enumerate(SMOOTH.factors)
        ]
        held, whole, mean_held, wrong, is_found, width = [], [], [], [], [], []
        for repeat in range(sizes["repeats"]):
            runs = two_runs(other, 600, replicates, is_paired, np.random.default_rng(FIRST_SEED + repeat))
            with found.stage(f"{name}: difference"):
                compared = difference(*runs, ("A", "B"))
                regions = compared.regions
            bands = [compared.marginal(number) for number in range(len(truths))]
            held.append(np.mean([_share(b.low, t, b.high) for b, t in zip(bands, truths, strict=True)]))
            width.append(np.mean([b.high - b.low for b in bands]))
            bands = [compared.simultaneous(number) for number in range(len(truths))]
            whole.append(float(all(_share(b.low, t, b.high) == 1.0 for b, t in zip(bands, truths, strict=True))))
            mean_held.append(float(compared.overall.low <= truths[0].mean() <= compared.overall.high))
            wrong.append(float(_is_wrong(compared, truths)))
            is_found.append(float(any(region.factor == 0 and region.is_lower for region in regions)))
        _tell(found, f"{name}: curves covered", np.array(held))
        _tell(found, f"{name}: all curves wholly covered", np.array(whole))
        _tell(found, f"{name}: mean covered", np.array(mean_held))
        _tell(found, f"{name}: a region is wrong", np.array(wrong))
        _tell(found, f"{name}: darkness found", np.array(is_found))
        _tell(found, f"{name}: width of a band", np.array(width))


def correlated(count: int, correlation: float, rng: np.random.Generator) -> Rows:
    """Return rows in which the factor without effect goes along with light."""
    both = rng.multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]], count)
    light, dummy = norm.cdf(both).T
    return NO_EFFECT.observe(np.column_stack([light, rng.random(count), dummy]), rng)


def jittered(scenarios: int, replicates: int, rng: np.random.Generator) -> Rows:
    """Return rows of scenarios that are alike, in which the factor without effect differs by 2% within a scenario."""
    number = np.repeat(np.arange(scenarios), replicates)
    units = rng.random((len(number), 3))
    units[:, DUMMY] = 0.02 + 0.96 * rng.random(scenarios)[number] + rng.uniform(-0.02, 0.02, len(number))
    latent = 0.8 * rng.standard_normal(scenarios)[number] + 0.6 * rng.standard_normal(len(number))
    success = (norm.cdf(latent) < NO_EFFECT.chance(units)).astype(np.float64)
    rows = Rows.of_arrays(NO_EFFECT.factors, units, success)
    return replace(rows, scenarios=tuple(f"s{name}" for name in number))


def two_runs(
    other: KnownSurface, count: int, replicates: int, is_paired: bool, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Return the rows of two runs: of the smooth surface and of another one.

    What decides an episode beyond its factors is 40% of its scenario, 30% of its seed, 15% of the scenario in this run,
    and 15% of this episode in this run. Pairs share the first two, and their factors.
    """
    scenarios = count // replicates
    number = np.repeat(np.arange(scenarios), replicates)

    def of_scenarios() -> Array:
        values: Array = rng.standard_normal(scenarios)[number]
        return values

    runs: list[Rows] = []
    units, shared = _units(scenarios, number, rng), np.sqrt(0.4) * of_scenarios()
    shared = shared + np.sqrt(0.3) * rng.standard_normal(count)
    for case in (SMOOTH, other):
        if runs and not is_paired:
            units, shared = _units(scenarios, number, rng), np.sqrt(0.4) * of_scenarios()
            shared = shared + np.sqrt(0.3) * rng.standard_normal(count)
        latent = shared + np.sqrt(0.15) * (of_scenarios() + rng.standard_normal(count))
        rows = Rows.of_arrays(case.factors, units, (norm.cdf(latent) < case.chance(units)).astype(np.float64))
        runs.append(replace(rows, scenarios=tuple(f"{len(runs)}s{name}" for name in number)))
    if is_paired:
        keys = tuple(map(str, range(count)))
        runs = [replace(rows, keys=keys) for rows in runs]
    return runs[0], runs[1]


def _units(scenarios: int, number: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Return units that scenarios share, but for friction."""
    units = rng.random((scenarios, 3))[number]
    units[:, 1] = rng.random(len(number))
    return units


def _is_wrong(compared: Difference, truths: list[Array]) -> bool:
    """Return whether a region has a place where the true difference is 0 or of the other sign."""
    return any(
        bool((truths[region.factor][region.first : region.last + 1] * (-1.0 if region.is_lower else 1.0) <= 1e-9).any())
        for region in compared.regions
    )


def _share(low: Array, true: Array, high: Array) -> float:
    return float(np.mean((low <= true) & (true <= high)))


def _tell(found: Measurements, name: str, values: Array) -> None:
    """Record the mean over experiments, with its standard error."""
    found.figures[name] = round(float(values.mean()), 4)
    if len(values) > 1:
        found.figures[f"{name}, standard error"] = round(float(values.std(ddof=1) / np.sqrt(len(values))), 4)
