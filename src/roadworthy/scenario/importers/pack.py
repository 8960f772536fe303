"""A pack from files of scenarios of another format: a stream, however many there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

from roadworthy.errors import ScenarioError, UsageError
from roadworthy.scenario.importers.tfrecord import Damage, Place, Record, records
from roadworthy.scenario.importers.womd import read_scenario
from roadworthy.scenario.pack import PackWriter, encode_map, encode_scenario
from roadworthy.scenario.processes import available_cores, map_in_order

BYTES_PER_MB = 1_000_000


@dataclass(frozen=True)
class ImportReport:
    """What became of the records of an import."""

    scenario_count: int
    damages: tuple[Damage, ...]  # records that were skipped
    omitted: dict[str, int]  # how often there was something that a Scenario can't hold, by what it is


class Converted(NamedTuple):
    """A scenario, encoded."""

    place: Place
    id: str
    map_block: bytes
    scenario_block: bytes
    omitted: Counter[str]


def import_womd(
    paths: Iterable[Path],
    output: Path,
    *,
    skip_damaged: bool = False,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Write a pack of the scenarios of TFRecord files of the Waymo Open Motion Dataset, in the order of the files.

    A damaged record is an error, unless `skip_damaged` says that it is to be listed in the report instead.
    `progress` is called with the megabytes that are done and all of them.
    """
    sizes = {path: _size(path) for path in paths}
    before = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))  # bytes of the files before each
    total_mb = math.ceil(sum(sizes.values()) / BYTES_PER_MB)
    places: dict[str, Place] = {}  # of each id
    damages: list[Damage] = []
    omitted: Counter[str] = Counter()
    with PackWriter(output) as writer:
        work = map_in_order(convert, chain.from_iterable(map(records, sizes)), processes or available_cores())
        with closing(work):
            for item in work:
                if isinstance(item, Converted) and item.id in places:
                    item = Damage(item.place, f"its scenario_id {item.id!r} is also that of {places[item.id]}")
                if isinstance(item, Converted):
                    places[item.id] = item.place
                    omitted.update(item.omitted)
                    writer.add_encoded(item.scenario_block, writer.add_encoded_map(item.map_block))
                elif skip_damaged:
                    damages.append(item)
                else:
                    raise ScenarioError(f"{item.place}: {item.what}; with --skip-damaged it would be left out")
                if progress is not None:
                    path, _, offset = item.place
                    # What a gzipped file holds is longer than the file.
                    progress((before[path] + min(offset, sizes[path])) // BYTES_PER_MB, total_mb)
        if progress is not None:
            progress(total_mb, total_mb)
        if not places:
            raise ScenarioError(f"no scenario was found: {len(damages)} damaged records in {len(sizes)} files")
    return ImportReport(len(places), tuple(damages), {what: n for what, n in omitted.most_common() if n})


def convert(record: Record | Damage) -> Converted | Damage:
    """Read and encode one scenario; damage stays what it is."""
    if isinstance(record, Damage):
        return record
    omitted: Counter[str] = Counter()
    try:
        scenario = read_scenario(record.data, omitted)
        return Converted(record.place, scenario.id, encode_map(scenario.map), encode_scenario(scenario), omitted)
    except ScenarioError as error:
        return Damage(record.place, str(error))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from error
