"""Metrics: figures of a run, computed from its rows and traces. `extensions` says how to add one of your own."""

from roadworthy.metrics.extensions import TraceMetrics
from roadworthy.metrics.metric import Kind, Metric

__all__ = ["Kind", "Metric", "TraceMetrics"]
