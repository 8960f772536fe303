"""Warn of steps: places where success changes too abruptly for a smooth surface."""

from __future__ import annotations

from collections.abc import Iterator

from roadworthy.sensitivity.design import DesignWarning
from roadworthy.sensitivity.surface import Surface

# Of experiments with a cliff that splines alone follow, by 90% bands: see docs/sensitivity.md.
CURVES_HELD, POINTS_HELD = "92%", "84%"


def steep_warnings(surface: Surface) -> Iterator[DesignWarning]:
    """Yield a warning for each factor along which the probability of success jumps."""
    for number, (low, high) in surface.steps.items():
        factor = surface.factors[number]
        where = f"between {factor.name} {factor.value(low):.4g} and {factor.value(high):.4g}"
        if surface.known_steps is not None:
            message = (
                f"success changes abruptly {where}. The surface has a step there, and bands span the values on both "
                "sides where the step may be. Run more episodes there to find its place more precisely."
            )
        else:
            message = (
                f"success changes abruptly {where}. The surface shows a step as a slope, so bands near it span the "
                "values on both sides; they show where the step is. In experiments with a cliff, 90% bands of slopes "
                f"covered {CURVES_HELD} of the curves, but only {POINTS_HELD} of the points of the surface; run more "
                "episodes there."
            )
        yield DesignWarning("steep", (factor.name,), message)
