"""Sinks: where figures and videos of evaluations go besides the run folder, found by entry points."""

from roadworthy.sinks.publish import Publication, Sink, Sinks, figures_of, read_sinks

__all__ = ["Publication", "Sink", "Sinks", "figures_of", "read_sinks"]
