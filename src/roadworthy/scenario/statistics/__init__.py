"""Traffic statistics: what people measure of human driving, measured in scenarios, from motion and map alone.

`measure(pack)` gives every observation of every quantity; `summary.summarize` tells medians and spreads of them,
`summary.markdown` sets them beside published figures of human driving, and `draw.draw` makes pictures of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized

from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.statistics.changes import lane_changes
from roadworthy.scenario.statistics.crossings import critical_gap, gaps_and_encroachments
from roadworthy.scenario.statistics.following import Following, following_distances, free_speeds
from roadworthy.scenario.statistics.motion import accelerations, bends, speeds, stops_and_starts, walkers_and_cyclists
from roadworthy.scenario.statistics.sample import QUANTITIES, Collection, Quantity, Sample

__all__ = ["QUANTITIES", "Quantity", "Sample", "critical_gap", "measure"]


def measure(scenarios: Iterable[Scenario], progress: Callable[[int, int], None] | None = None) -> Sample:
    """All observations in the scenarios; `progress` is called with how many are done, of how many."""
    collection = Collection()
    total = len(scenarios) if isinstance(scenarios, Sized) else 0
    for scenario in scenarios:
        tracks = Tracks.of(scenario)
        following = Following.of(tracks)
        collection.add(
            speeds(tracks),
            accelerations(tracks),
            stops_and_starts(tracks),
            bends(tracks),
            following_distances(tracks, following),
            free_speeds(tracks, following),
            lane_changes(tracks),
            gaps_and_encroachments(tracks),
            walkers_and_cyclists(tracks),
        )
        collection.scenario_count += 1
        if progress:
            progress(collection.scenario_count, total)
    return collection.sample()
