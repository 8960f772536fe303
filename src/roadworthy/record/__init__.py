"""Run folders: an evaluation writes them, everything else reads them."""

from roadworthy.record.episodes import AgentRow, EpisodeResult, EpisodeRow, TrialRow
from roadworthy.record.run import Run
from roadworthy.record.traces import Trace, read_trace, write_trace
from roadworthy.record.writer import RunWriter

__all__ = [
    "AgentRow",
    "EpisodeResult",
    "EpisodeRow",
    "Run",
    "RunWriter",
    "Trace",
    "TrialRow",
    "read_trace",
    "write_trace",
]
