"""Load the metrics that a configuration names: built-in sets, those of installed packages, and the user's own code.

A section's `metrics = ["exams", "my_metrics.py:near_misses"]` names each as an entry point of `roadworthy.metrics`, as
`module:Name` or as `file.py:Name`. In a driving evaluator, each is one of:

    Metric        a figure over a column that the rows of trials or agents have
    TraceMetrics  columns that are computed from the trace of each episode, and the figures over them
    a function    (trace, scenario, agent, trial) -> a number, or None for no data; the figure is its mean over trials
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.metrics.metric import Kind, Metric
from roadworthy.plugins import load

if TYPE_CHECKING:
    from roadworthy.metrics.trace_figures import TraceFigures
    from roadworthy.record.traces import Trace
    from roadworthy.scenario.schema import Scenario

GROUP = "roadworthy.metrics"


@dataclass(frozen=True)
class TraceMetrics:
    """Metrics over columns that one function computes from the trace of an episode."""

    metrics: tuple[Metric, ...]
    compute: TraceFigures


@dataclass(frozen=True)
class NamedTraceFigures:
    """Compute the trace figures of named metrics. An instance can be pickled: each process loads the code itself."""

    names: tuple[str, ...]

    def __call__(self, trace: Trace, scenario: Scenario, agent: int, trial: int) -> Mapping[str, float]:
        """Return the figures of one ego in one trial by column."""
        figures: dict[str, float] = {}
        for name in self.names:
            found = _load(name)
            if isinstance(found, TraceMetrics):
                try:
                    figures |= found.compute(trace, scenario, agent, trial)
                except Exception as error:  # the user's code may raise anything
                    raise RoadworthyError(
                        f"metric {name!r} failed in episode {trace.episode_id!r}, agent {agent}, trial {trial}: "
                        f"{type(error).__name__}: {error}"
                    ) from error
        return figures


def named_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """Return the metrics with these names; ConfigError says which name is unknown or isn't a metric."""
    loaded = [_load(name) for name in names]
    return tuple(m for found in loaded for m in (found.metrics if isinstance(found, TraceMetrics) else (found,)))


@cache
def _load(name: str) -> Metric | TraceMetrics:
    found: Any = load(GROUP, name, "metric")
    if isinstance(found, Metric | TraceMetrics):
        return found
    if not callable(found):
        raise ConfigError(
            f"metric {name!r} is a {type(found).__name__}, expected a Metric, a TraceMetrics or a function "
            "(trace, scenario, agent, trial) -> number"
        )
    column = str(found.__name__)

    def compute(trace: Trace, scenario: Scenario, agent: int, trial: int) -> Mapping[str, float]:
        value = found(trace, scenario, agent, trial)
        return {column: math.nan if value is None else float(value)}

    what = (found.__doc__ or "").strip().partition("\n")[0]
    return TraceMetrics((Metric(column, Kind.MEAN, column, "1", "trial", what),), compute)
