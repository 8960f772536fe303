"""The figures of the closed-loop score, and how often substitutes for missing map data were used.

Every figure is the mean over scenarios, each of which counts once, as in nuPlan.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from roadworthy.metrics.closed_loop.figures import SCORE, SUBSTITUTES, closed_loop_figures
from roadworthy.metrics.extensions import TraceMetrics
from roadworthy.metrics.metric import Kind, Metric, Rows

_share = partial(Metric, kind=Kind.SHARE, unit="share", per="scenario", is_per_scenario=True, better="higher")
_rate = partial(Metric, kind=Kind.RATE, unit="share", per="scenario", is_per_scenario=True, better="higher")
_score = partial(_share, failed=0.0, version=2)  # a scenario that crashed scores 0, as in nuPlan


def _metric(name: str, kind: partial[Metric], what: str) -> Metric:
    return kind(name=name, column=name, what=what)


CLOSED_LOOP_METRICS: tuple[Metric, ...] = (
    _metric(SCORE, _score, "product of four multipliers times the weighted mean of four graded parts"),
    _metric("no_at_fault_collision", _share, "multiplier: 1 without at-fault collisions; 0.5 for one with an object"),
    _metric("drivable_area", _rate, "multiplier: never 0.3 m or more outside lanes and road"),
    _metric("making_progress", _rate, "multiplier: at least 20% of the recorded car's progress"),
    _metric("driving_direction", _share, "multiplier: 1, or 0.5 or 0 for 2 m or 6 m against the lane within a second"),
    _metric("progress", _share, "weight 5: progress along the recorded route, as a share of the recorded car's"),
    _metric("time_to_collision", _rate, "weight 5: always above 0.95 s"),
    _metric("speed_limit", _share, "weight 4: less for overspeed, by how much and how long"),
    _metric("comfort_in_bounds", _rate, "weight 2: all accelerations, jerks and yaw rates within their bounds"),
)
CLOSED_LOOP = TraceMetrics(CLOSED_LOOP_METRICS, closed_loop_figures)


def closed_loop_counts(trials: Rows) -> dict[str, int] | None:
    """Return how many trials were scored, and in how many each substitute applied; None where none was scored."""
    count = int(np.count_nonzero(~np.isnan(trials.column(SCORE))))
    if not count:
        return None
    return {"num_trials": count} | {name: int(np.nansum(trials.column(name))) for name in SUBSTITUTES}
