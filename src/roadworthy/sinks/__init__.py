"""Sinks: publish figures and videos of evaluations, and scalars of training, to other tools."""

from roadworthy.sinks.publish import Publication, Sink, Sinks, Training, TrainingScalars, figures_of, read_sinks

__all__ = ["Publication", "Sink", "Sinks", "Training", "TrainingScalars", "figures_of", "read_sinks"]
