"""Sensitivity analysis with known truths: time, accuracy, coverage of bands, verdicts and suggestions."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benchmarks.known_surfaces import KNOWN_SURFACES, KnownSurface
from benchmarks.runner import Measurements, Sizes
from roadworthy.sensitivity.averages import grid_units, reference_units
from roadworthy.sensitivity.factors import Categorical, spread_units
from roadworthy.sensitivity.importance import Verdict, importance
from roadworthy.sensitivity.next_batch import suggest
from roadworthy.sensitivity.posterior import neural_posterior
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import Surface, SurfaceConfig, fit, normalized

Array = NDArray[np.float64]

ROWS = 644  # the size of a published experiment with a neural posterior
FIRST_SEED = 300_000  # lower seeds were used to choose priors and the rule of suggestions
PLACES = 200
START_ROWS, BATCH_ROWS = 150, 50


def surface(found: Measurements, sizes: Sizes) -> None:
    """Time a surface with the curves and distributions of all factors."""
    for case in KNOWN_SURFACES[:4]:
        rows = case.sample(ROWS, np.random.default_rng(FIRST_SEED))
        for _ in range(sizes["repeats"]):
            with found.stage(f"{case.name}: fit"):
                fitted = fit(rows)
            with found.stage(f"{case.name}: curves"):
                for factor in range(len(case.factors)):
                    fitted.marginal(factor)


def truth(found: Measurements, sizes: Sizes) -> None:
    """Measure the coverage of 90% bands, and the error of factor distributions given success, with splines."""
    _truth(found, sizes["repeats"], SurfaceConfig(), KNOWN_SURFACES)


def truth_of_process(found: Measurements, sizes: Sizes) -> None:
    """Measure the same with a Gaussian process, for factors that interact."""
    _truth(found, sizes["repeats"], SurfaceConfig(model="process"), (KNOWN_SURFACES[2], KNOWN_SURFACES[3]))


def _truth(found: Measurements, repeats: int, config: SurfaceConfig, cases: tuple[KnownSurface, ...]) -> None:
    for case in cases:
        places = spread_units(case.factors, np.random.default_rng(9).random((PLACES, len(case.factors))))
        true_places, true_curves = case.chance(places), [_true_curve(case, j) for j in range(len(case.factors))]
        curves, points, given, variation, whole, alone = [], [], [], [], [], []
        for repeat in range(repeats):
            rows = case.sample(ROWS, np.random.default_rng(FIRST_SEED + repeat))
            with found.stage(f"{case.name}: fit"):
                fitted = fit(rows, config)
            band = fitted.predict(places)
            points.append(_held(band.low, true_places, band.high))
            for factor, true_curve in enumerate(true_curves):
                band = fitted.marginal(factor)
                curves.append(_held(band.low, true_curve, band.high))
                alone.append(curves[-1] == 1.0)
                band = fitted.simultaneous(factor)
                whole.append(_held(band.low, true_curve, band.high) == 1.0)
                band, true_density = fitted.given(factor, True), normalized(true_curve, case.factors[factor])
                given.append(_held(band.low, true_density, band.high))
                variation.append(0.5 * np.abs(band.mean - true_density).mean())
        by_repeat = np.array(curves).reshape(repeats, -1).mean(axis=1)
        found.figures |= {
            f"{case.name}: curves covered": _round(np.mean(curves)),
            f"{case.name}: curves covered, standard error": _standard_error(by_repeat),
            f"{case.name}: whole curves in simultaneous bands": _round(np.mean(whole)),
            f"{case.name}: whole curves in pointwise bands": _round(np.mean(alone)),
            f"{case.name}: surface covered": _round(np.mean(points)),
            f"{case.name}: given success covered": _round(np.mean(given)),
            f"{case.name}: total variation": _round(np.mean(variation)),
        }


def verdicts(found: Measurements, sizes: Sizes) -> None:
    """Count how often each factor matters, if the last one has no effect."""
    case = KNOWN_SURFACES[1]
    counts = {(factor.name, verdict): 0 for factor in case.factors for verdict in Verdict}
    for repeat in range(sizes["repeats"]):
        rows = case.sample(ROWS, np.random.default_rng(FIRST_SEED + repeat))
        fitted = fit(rows)
        with found.stage("importance"):
            for part in importance(rows, fitted):
                counts[part.factor, part.verdict] += 1
    for (factor, verdict), count in counts.items():
        found.figures[f"{factor} {verdict.value}"] = _round(count / sizes["repeats"])


def next_batches(found: Measurements, sizes: Sizes) -> None:
    """Compare the error of the surface after suggested and after random episodes, from the same start."""
    for case in (KNOWN_SURFACES[0], *KNOWN_SURFACES[2:5], KNOWN_SURFACES[6]):
        errors = np.empty((2, sizes["repeats"], sizes["batches"] + 1))
        for repeat in range(sizes["repeats"]):
            start = case.sample(START_ROWS, np.random.default_rng(FIRST_SEED + repeat))
            for arm, name in enumerate(("suggested", "random")):
                rng = np.random.default_rng((FIRST_SEED + repeat, arm))
                rows = start
                for batch in range(sizes["batches"] + 1):
                    fitted = fit(rows)
                    errors[arm, repeat, batch] = _squared_error(case, fitted)
                    if name == "suggested":
                        with found.stage("suggest"):
                            units = suggest(fitted, BATCH_ROWS, seed=batch)
                    else:
                        units = spread_units(case.factors, rng.random((BATCH_ROWS, len(case.factors))))
                    rows = _joined(rows, case.observe(units, rng))
        ratio = np.log(errors[0, :, 1:] / errors[1, :, 1:]).mean(axis=1)  # (repeats,) over all batches
        middle, error = float(ratio.mean()), _standard_error(ratio) or 0.0
        found.figures |= {
            f"{case.name}: error, suggested over random": _round(np.exp(middle)),
            f"{case.name}: the same, from": _round(np.exp(middle - 1.96 * error)),
            f"{case.name}: the same, to": _round(np.exp(middle + 1.96 * error)),
            f"{case.name}: suggested better": _round(np.mean(ratio < 0.0)),
            f"{case.name}: error at first": _round(errors[:, :, 0].mean(), 5),
            f"{case.name}: at last, suggested": _round(errors[0, :, -1].mean(), 5),
            f"{case.name}: at last, random": _round(errors[1, :, -1].mean(), 5),
        }


def neural(found: Measurements, sizes: Sizes) -> None:
    """Measure the time and error of neural posteriors, compared with the surface on the same rows."""
    for case in (KNOWN_SURFACES[0], KNOWN_SURFACES[3], KNOWN_SURFACES[4]):
        variation: dict[str, list[float]] = {}
        for repeat in range(sizes["repeats"]):
            rows = case.sample(ROWS, np.random.default_rng(FIRST_SEED + repeat))
            with found.stage(f"{case.name}: surface"):
                fitted = fit(rows)
            for factor in range(len(case.factors)):
                true = normalized(_true_curve(case, factor), case.factors[factor])
                error = 0.5 * np.abs(fitted.given(factor, True).mean - true).mean()
                variation.setdefault("surface", []).append(float(error))
            if find_spec("sbi") is None:
                continue
            with found.stage(f"{case.name}: neural posterior"):
                posterior = neural_posterior(rows, seed=repeat, epochs=sizes["epochs"])
            for factor in range(len(case.factors)):
                density = posterior.distribution(factor, 1.0)
                is_categorical = isinstance(case.factors[factor], Categorical)
                grid = fitted.grid(factor) if is_categorical else (np.arange(len(density)) + 0.5) / len(density)
                true = case.marginal(factor, grid)
                error = 0.5 * np.abs(density - true / true.mean()).mean()
                variation.setdefault(posterior.method, []).append(float(error))
        found.figures |= {f"{case.name}: total variation, {name}": _round(np.mean(v)) for name, v in variation.items()}


def _true_curve(case: KnownSurface, factor: int) -> Array:
    return case.marginal(factor, grid_units(case.factors[factor]))


def _squared_error(case: KnownSurface, fitted: Surface) -> float:
    places = reference_units(case.factors, 1024, seed=21)
    return float(np.square(fitted.predict(places).mean - case.chance(places)).mean())


def _joined(first: Rows, second: Rows) -> Rows:
    units, outcome = np.vstack([first.units, second.units]), np.concatenate([first.outcome, second.outcome])
    return Rows.of_arrays(first.factors, units, outcome)


def _held(low: Array, true: Array, high: Array) -> float:
    return float(np.mean((low <= true) & (true <= high)))


def _standard_error(values: Array) -> float | None:
    return _round(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _round(value: float | np.floating, digits: int = 4) -> float:
    return round(float(value), digits)
