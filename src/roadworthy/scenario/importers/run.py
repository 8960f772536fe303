"""Import files: one path for all formats, as a stream, so that memory does not grow with the number of files."""

from __future__ import annotations

import glob
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from roadworthy import plugins
from roadworthy.errors import ScenarioError, UsageError
from roadworthy.scenario.importers.importer import Damage, Importer, Location, Record
from roadworthy.scenario.pack import EncodedScenarios, PackWriter, encode_scenarios
from roadworthy.scenario.processes import available_cores, map_in_order

GROUP = "roadworthy.importers"
AUTO = "auto"
BYTES_PER_MB = 1_000_000


@dataclass(frozen=True)
class ImportReport:
    """What an import read, skipped and omitted."""

    path: Path  # of the pack
    file_count: int
    scenario_count: int
    damages: tuple[Damage, ...]  # records that were skipped
    omitted: dict[str, int]  # data that a Scenario cannot hold: name, count


class Converted(NamedTuple):
    """A record whose scenarios are encoded."""

    location: Location
    ids: tuple[str, ...]
    encoded: EncodedScenarios
    omitted: Counter[str]


def import_scenarios(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    format: str = AUTO,
    skip_damaged: bool = False,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Write a pack of the scenarios in files of another format, in the order of the files.

    The pack appears complete or not at all, with the same bytes for any number of processes.

    Args:
        files: Files, or patterns such as "training/*"; matches of a pattern are sorted by name.
        out: The pack file. Missing folders are created, and an existing file is replaced.
        format: The name of an importer ("womd"), `module:Name`, `file.py:Name`, or "auto" to detect the format of
            each file by its content.
        skip_damaged: Whether to skip damaged records and list them in the report. By default they are an error.
        processes: The number of processes; one per available core by default.
        progress: A function that is called with the number of finished megabytes and their total number.

    Returns:
        The number of scenarios, the skipped records and the counts of omitted data.

    Raises:
        UsageError: If a file does not exist or its format is unknown; nothing is written.
        ScenarioError: If a record is damaged and `skip_damaged` is false, or if there is no scenario.

    Example:
        >>> import roadworthy as rw
        >>> report = rw.import_scenarios("validation/*.tfrecord-*", "womd.pack", skip_damaged=True)
        >>> report.scenario_count, report.damages
        (1, ())
    """
    formats = {path: format if format != AUTO else detect_format(path) for path in expand(files)}
    for name in set(formats.values()):
        load_importer(name)
    sizes = {path: path.stat().st_size for path in formats}
    start_bytes = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    total_mb = math.ceil(sum(sizes.values()) / BYTES_PER_MB)
    locations: dict[str, Location] = {}  # of each id
    damages: list[Damage] = []
    omitted: Counter[str] = Counter()
    work = map_in_order(convert, _records(formats), processes or available_cores())
    with PackWriter(out) as writer, closing(work):
        for item in work:
            damage = item if isinstance(item, Damage) else _repeated_id(item, locations)
            if isinstance(item, Converted) and damage is None:
                writer.add_all_encoded(item.encoded)
                locations |= dict.fromkeys(item.ids, item.location)
                omitted.update(item.omitted)
            elif damage is not None and skip_damaged:
                damages.append(damage)
            elif damage is not None:
                raise ScenarioError(f"{damage.location}: {damage.reason}; --skip-damaged skips such records")
            if progress is not None:
                path, _, offset = item.location
                # The offset in a compressed file can exceed its size.
                progress((start_bytes[path] + min(offset, sizes[path])) // BYTES_PER_MB, total_mb)
        if progress is not None:
            progress(total_mb, total_mb)
        if not locations:
            raise ScenarioError(f"no scenario was found: {len(damages)} damaged records in {len(sizes)} files")
    left_out = {what: count for what, count in omitted.most_common() if count}
    return ImportReport(Path(out), len(sizes), len(locations), tuple(damages), left_out)


def expand(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return every file that is named or matches a pattern, once, in the order of the names."""
    names = [os.fspath(name) for name in ([files] if isinstance(files, str | os.PathLike) else files)]
    paths: dict[Path, None] = {}
    for name in names:
        matches = [name] if Path(name).exists() else sorted(glob.glob(name, recursive=True))
        if not matches:
            raise UsageError(f"{name}: there is no such file, and none that matches")
        paths |= dict.fromkeys(Path(match) for match in matches if not Path(match).is_dir())
    if not paths:
        raise UsageError(f"{', '.join(names)}: only folders; name files, as in {names[0].rstrip('/')}/*")
    return list(paths)


def detect_format(path: Path) -> str:
    """Return the name of the importer that recognizes a file."""
    known = plugins.known(GROUP)
    try:
        found = [name for name in known if load_importer(name).matches(path)]
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror or error}") from error
    if len(found) == 1:
        return found[0]
    reason = f"several importers recognize it ({', '.join(found)})" if found else "no importer recognizes its content"
    raise UsageError(f"{path}: {reason}; name the format, one of: {', '.join(known)}")


@cache
def load_importer(name: str) -> Importer:
    """Return the importer with this name, the same for every call in a process."""
    importer: Importer = plugins.load(GROUP, name, "importer")()
    return importer


def convert(item: tuple[str, Record | Damage]) -> Converted | Damage:
    """Read and encode the scenarios of a record; return damage as it is."""
    format, record = item
    if isinstance(record, Damage):
        return record
    omitted: Counter[str] = Counter()
    try:
        scenarios = list(load_importer(format).read(record.data, omitted))
        ids = tuple(scenario.id for scenario in scenarios)
        return Converted(record.location, ids, encode_scenarios(scenarios), omitted)
    except ScenarioError as error:
        return Damage(record.location, str(error))


def _records(formats: dict[Path, str]) -> Iterator[tuple[str, Record | Damage]]:
    for path, format in formats.items():
        for record in load_importer(format).records(path):
            yield format, record


def _repeated_id(item: Converted, locations: dict[str, Location]) -> Damage | None:
    """Return damage if an id of a record occurred before."""
    for number, id in enumerate(item.ids):
        if id in locations or id in item.ids[:number]:
            first = locations.get(id, item.location)
            return Damage(item.location, f"its scenario id {id!r} is also that of {first}")
    return None
