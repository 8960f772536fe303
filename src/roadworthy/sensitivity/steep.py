"""Find where success changes too abruptly for a smooth surface: bands there hold less than they promise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roadworthy.sensitivity.basis import SPLINE_PIECES
from roadworthy.sensitivity.design import DesignWarning
from roadworthy.sensitivity.factors import Categorical
from roadworthy.sensitivity.surface import Surface

STEEP_SHARE = 0.5  # of a curve's whole rise, within one piece of a spline
STEEP_CHANGE = 0.15  # of the chance of success; less is lost in the band
# Share of 90% bands that held the truth in 150 experiments with a cliff (docs/sensitivity.md), and near the cliff.
CURVES_HELD, NEAR_HELD = "84%", "one in ten"


def steep_warnings(surface: Surface) -> Iterator[DesignWarning]:
    """Name the factors along which the chance of success jumps, and where: the surface draws a step as a slope."""
    if not surface.is_binary:
        return
    for number, factor in enumerate(surface.factors):
        if isinstance(factor, Categorical):
            continue
        grid, curve = surface.grid(number), surface.marginal(number).mean
        width = round((len(grid) - 1) / SPLINE_PIECES)
        change = np.abs(curve[width:] - curve[:-width])
        place = int(change.argmax())
        if change[place] >= max(STEEP_CHANGE, STEEP_SHARE * float(np.ptp(curve))):
            low, high = factor.value(float(grid[place])), factor.value(float(grid[place + width]))
            yield DesignWarning(
                "steep",
                (factor.name,),
                f"success changes abruptly between {factor.name} {low:.4g} and {high:.4g}. A step is drawn as a slope, "
                "and close to it bands hardly ever hold the truth: in experiments with such a step, bands that promise "
                f"90% held {CURVES_HELD} of the curves, and {NEAR_HELD} of the points beside the step. Read the band "
                "as a guide to where the step is, not to how high it is, and run more episodes there.",
            )
