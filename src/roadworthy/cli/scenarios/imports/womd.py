"""`roadworthy scenarios import womd`: a pack from TFRecord files of the Waymo Open Motion Dataset."""

from __future__ import annotations

import glob
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.files import make_folder, require_suffix
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = examples(
    "roadworthy scenarios import womd training.tfrecord-00000-of-01000 -o womd.pack",
    "roadworthy scenarios import womd 'validation/*.tfrecord-*' -o womd.pack --skip-damaged",
    "roadworthy scenarios import womd *.tfrecord.gz -o womd.pack --json",
)


def womd(
    files: Annotated[
        list[str], typer.Argument(metavar="FILES", help="TFRecord files, or patterns such as 'training/*'.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="PACK",
            help="Where to write.",
            callback=require_suffix(".pack"),
            show_default=False,
        ),
    ],
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave damaged records out and list them, instead of giving up.")
    ] = False,
    processes: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes (one per core).")] = None,
    json: JsonFlag = False,
) -> None:
    """Make a pack of the scenarios of the Waymo Open Motion Dataset (the format `scenario`, TFRecord, also gzipped).

    Ends with exit code 3, and writes nothing, when a record is damaged; with --skip-damaged the exit code is 0 as long
    as there is any scenario.
    """
    from roadworthy.kernels import cache_folder
    from roadworthy.scenario.importers import import_womd

    paths = _expand(files)
    if not cache_folder("scenario").exists():
        note("compiling first, about half a minute, once for each version")
    started = time.monotonic()
    with progress("importing, MB") as report:
        result = import_womd(
            paths, make_folder(output), skip_damaged=skip_damaged, processes=processes, progress=report
        )
    seconds = time.monotonic() - started
    size = output.stat().st_size
    if json:
        skipped = [
            {"file": str(place.path), "record": place.number, "offset": place.offset, "what": what}
            for place, what in result.damages
        ]
        facts = {"files": len(paths), "scenarios": result.scenario_count, "bytes": size, "seconds": round(seconds, 3)}
        tell_json({"pack": str(output), **facts, "skipped": skipped, "omitted": result.omitted})
        return
    tell(f"{output} (scenarios: {result.scenario_count}, files: {len(paths)}; {size / 1e6:.1f} MB in {seconds:.1f} s)")
    if result.omitted:
        tell(_table(result.omitted))
    if result.damages:
        tell(f"damaged and left out: {len(result.damages)}", *(f"  {place}: {what}" for place, what in result.damages))


def _expand(files: list[str]) -> list[Path]:
    """Every file that is named or matches a pattern, once, in the order of the names; matches in alphabetical order."""
    paths: dict[Path, None] = {}
    for name in files:
        matches = [name] if Path(name).exists() else sorted(glob.glob(name, recursive=True))
        if not matches:
            raise UsageError(f"{name}: there is no such file, and none that matches")
        paths |= dict.fromkeys(Path(match) for match in matches if not Path(match).is_dir())
    if not paths:
        raise UsageError(f"{', '.join(files)}: folders alone; name files, such as {files[0].rstrip('/')}/*")
    return list(paths)


def _table(omitted: dict[str, int]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("what a pack doesn't hold", "", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[1].justify = "right"
    for what, count in omitted.items():
        table.add_row(what, f"{count:,}")
    return table
