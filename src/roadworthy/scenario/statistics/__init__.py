"""Traffic statistics: quantities that studies of human driving report, measured in scenarios from motion and map.

`measure(pack)` returns every observation of every quantity; `summary.summarize` returns medians and percentiles,
`summary.markdown` compares them with published figures of human driving, and `draw.draw` draws both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from pathlib import Path
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.statistics.changes import lane_changes
from roadworthy.scenario.statistics.crossings import critical_gap, gaps_and_encroachments
from roadworthy.scenario.statistics.following import Following, following_distances, free_speeds
from roadworthy.scenario.statistics.motion import accelerations, bends, speeds, stops_and_starts, walkers_and_cyclists
from roadworthy.scenario.statistics.sample import QUANTITIES, Collection, Quantity, Sample

__all__ = ["QUANTITIES", "Quantity", "Sample", "critical_gap", "measure", "write_statistics"]


def measure(scenarios: Iterable[Scenario], progress: Callable[[int, int], None] | None = None) -> Sample:
    """Return all observations in the scenarios; `progress` is called with the finished and the total number."""
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


def write_statistics(
    pack: Path, folder: Path, *, progress: Callable[[int, int], None] | None = None
) -> tuple[dict[str, Any], list[Path]]:
    """Measure the traffic of a pack and write plots (traffic_*.png) and a table (traffic_table.md) into a folder.

    Args:
        pack: The pack.
        folder: The folder; it is created if it does not exist.
        progress: A function that is called with the finished and the total number of scenarios.

    Returns:
        The statistics (`summary.summarize`) and the written files.

    Example:
        >>> summary, files = write_statistics(Path("town.pack"), Path("statistics"))
    """
    from roadworthy.scenario.statistics.draw import draw
    from roadworthy.scenario.statistics.summary import markdown, summarize

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is a file, expected a folder for plots; name another one")
    with Pack(pack) as opened:
        if not len(opened):
            raise UsageError(f"{pack}: the pack is empty, so there is nothing to measure")
        sample = measure(opened, progress)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "traffic_table.md"
    table.write_text(markdown(sample), encoding="utf-8")
    return summarize(sample), [*draw(sample, folder), table]
