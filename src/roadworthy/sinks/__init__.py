"""Sinks: where figures and videos of evaluations and the scalars of training go, found by entry points."""

from roadworthy.sinks.publish import Publication, Sink, Sinks, Training, TrainingScalars, figures_of, read_sinks

__all__ = ["Publication", "Sink", "Sinks", "Training", "TrainingScalars", "figures_of", "read_sinks"]
