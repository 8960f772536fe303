"""`roadworthy scenarios import`: import recordings in the formats of other projects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.output import JsonFlag, examples, new_table, tell, tell_json
from roadworthy.cli.scenarios.options import PackOutput, ProcessCount, note_compilation
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = examples(
    "roadworthy scenarios import womd training.tfrecord-00000-of-01000 -o womd.pack",
    "roadworthy scenarios import auto 'validation/*.tfrecord-*' -o womd.pack --skip-damaged",
    "roadworthy scenarios import my_format.py:MyImporter recordings/* -o mine.pack --json",
)


def import_(
    format: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="womd (Waymo Open Motion Dataset, TFRecord files of scenarios), another importer's name, module:Name, "
            "file.py:Name, or auto to detect the format of each file.",
        ),
    ],
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Files, or patterns such as 'training/*'.")],
    output: PackOutput,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Skip damaged records and list them, instead of stopping.")
    ] = False,
    processes: ProcessCount = None,
    json: JsonFlag = False,
) -> None:
    """Import scenarios from files in another format.

    A damaged record stops the import with exit code 3, and nothing is written. With --skip-damaged, the exit code is 0
    if there is at least one scenario.
    """
    from roadworthy.scenario.importers import import_scenarios

    note_compilation()
    started = time.monotonic()
    with progress("importing scenarios, MB") as report:
        result = import_scenarios(
            files, output, format=format, skip_damaged=skip_damaged, processes=processes, progress=report
        )
    seconds = time.monotonic() - started
    size, count = output.stat().st_size, result.scenario_count
    if json:
        skipped = [
            {"file": str(location.path), "record": location.number, "offset": location.offset, "what": reason}
            for location, reason in result.damages
        ]
        facts = {"files": result.file_count, "scenarios": count, "bytes": size, "seconds": round(seconds, 3)}
        tell_json({"pack": str(output), **facts, "skipped": skipped, "omitted": result.omitted})
        return
    tell(f"{output} (scenarios: {count}, files: {result.file_count}; {size / 1e6:.1f} MB in {seconds:.1f} s)")
    if result.omitted:
        tell(_table(result.omitted))
    if result.damages:
        lines = (f"  {location}: {reason}" for location, reason in result.damages)
        tell(f"damaged records that were skipped: {len(result.damages)}", *lines)


def _table(omitted: dict[str, int]) -> Table:
    table = new_table("omitted from the pack", right=["count"])
    for name, count in omitted.items():
        table.add_row(name, f"{count:,}")
    return table
