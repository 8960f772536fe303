"""The complete analysis of one outcome: surface, importance, checks, warnings and suggestions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.sensitivity.agreement import Distance, distances
from roadworthy.sensitivity.calibration import Calibration, TwinCoverage, calibrate, twin_coverage
from roadworthy.sensitivity.design import DesignWarning, design_warnings
from roadworthy.sensitivity.difference import Difference
from roadworthy.sensitivity.difference_report import difference_as_json
from roadworthy.sensitivity.importance import Importance, importance, interactions
from roadworthy.sensitivity.next_batch import as_values, suggest
from roadworthy.sensitivity.posterior import NeuralPosterior, neural_posterior
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.steep import steep_warnings
from roadworthy.sensitivity.surface import Surface, SurfaceConfig, fit

SCHEMA_VERSION = 2

Report = Callable[[int, int], None]  # called with the number of fits done, and of all


@dataclass(frozen=True)
class AnalysisConfig:
    """Settings of an analysis."""

    surface: SurfaceConfig = field(default_factory=SurfaceConfig)
    """The settings of the surface."""
    flips: int = 999
    """The number of random signs of the residuals, which show what chance alone explains."""
    twins: int = 20
    """The number of simulated experiments with a known truth, which test the bands."""
    next_episodes: int = 16
    """The number of episodes to suggest."""
    has_neural_posterior: bool = False
    """Whether to learn the distributions of the factors by a network too (needs sbi)."""


@dataclass(frozen=True)
class Analysis:
    """The results of an analysis."""

    rows: Rows
    config: AnalysisConfig
    surface: Surface
    importance: tuple[Importance, ...]  # in the order of the factors
    interactions: NDArray[np.float64]  # (factors, factors)
    calibration: Calibration
    twins: TwinCoverage
    warnings: tuple[DesignWarning, ...]
    suggestions: tuple[dict[str, Any], ...]
    neural: NeuralPosterior | None
    neural_distances: tuple[Distance, ...] = ()  # between the neural posterior and the surface
    difference: Difference | None = None  # from another run, if one was given

    @property
    def ranking(self) -> list[int]:
        """The indices of the factors, most important first."""
        return sorted(range(len(self.importance)), key=lambda number: -self.importance[number].total.mean)


def analyze(rows: Rows, config: AnalysisConfig | None = None, report: Report | None = None) -> Analysis:
    """Fit the surface and compute all results."""
    config = config or AnalysisConfig()
    tests = len(rows.factors)

    def after(earlier: int) -> Report | None:
        return None if report is None else lambda done, _: report(earlier + done, tests + config.twins)

    surface = fit(rows, config.surface)
    neural = neural_posterior(rows, seed=config.surface.seed) if config.has_neural_posterior else None
    return Analysis(
        rows=rows,
        config=config,
        surface=surface,
        importance=tuple(importance(rows, surface, config.flips, after(0))),
        interactions=interactions(surface),
        calibration=calibrate(rows, surface),
        twins=twin_coverage(rows, surface, config.twins, after(tests)),
        warnings=(*design_warnings(rows), *steep_warnings(surface)),
        suggestions=tuple(as_values(surface, suggest(surface, config.next_episodes, config.surface.seed))),
        neural=neural,
        neural_distances=distances(surface, neural) if neural is not None else (),
    )


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Return the results of an analysis as plain values."""
    rows, surface = analysis.rows, analysis.surface
    rate = surface.rate()
    return {
        "schema_version": SCHEMA_VERSION,
        "outcome": rows.outcome_name,
        "is_binary": rows.is_binary,
        "n": len(rows),
        "rejected": [asdict(row) for row in rows.rejected],
        "mean_of_rows": float(rows.outcome.mean()),
        "mean_over_factors": {"mean": float(rate.mean), "low": float(rate.low), "high": float(rate.high)},
        "band": surface.config.band,
        "model": surface.config.model,
        "factors": [_factor(analysis, number) for number in range(len(rows.factors))],
        "interactions": analysis.interactions.tolist(),
        "calibration": asdict(analysis.calibration),
        "twin_coverage": asdict(analysis.twins),
        "warnings": [asdict(warning) for warning in analysis.warnings],
        "next_episodes": list(analysis.suggestions),
        "neural": _neural(analysis),
        "difference": None if analysis.difference is None else difference_as_json(analysis.difference),
    }


def _factor(analysis: Analysis, number: int) -> dict[str, Any]:
    surface, found = analysis.surface, analysis.importance[number]
    factor, curve, whole = surface.factors[number], surface.marginal(number), surface.simultaneous(number)
    values: dict[str, Any] = {
        "name": factor.name,
        "type": factor.kind,
        "verdict": found.verdict.value,
        "first_order": asdict(found.first_order),
        "total": asdict(found.total),
        "swing": asdict(found.swing),
        "p_value": found.p_value,
        "at": [factor.value(unit) for unit in surface.grid(number)],
        "curve": _lists(curve.mean, curve.low, curve.high),
        "simultaneous": {"low": whole.low.tolist(), "high": whole.high.tolist()},
    }
    if surface.is_binary:
        for name, is_success in (("given_success", True), ("given_failure", False)):
            band = surface.given(number, is_success)
            values[name] = _lists(band.mean, band.low, band.high)
    return values


def _neural(analysis: Analysis) -> dict[str, Any] | None:
    """Return the neural posterior's distributions of every factor, and their distance from the surface's."""
    neural = analysis.neural
    if neural is None:
        return None
    return {
        "method": neural.method,
        "outcomes": list(neural.outcomes),
        "distances": [asdict(distance) for distance in analysis.neural_distances],
        "distributions": {
            factor.name: [neural.distribution(number, outcome).tolist() for outcome in neural.outcomes]
            for number, factor in enumerate(neural.factors)
        },
    }


def _lists(mean: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> dict[str, list[float]]:
    return {"mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
