"""`roadworthy scenarios statistics`: how the traffic of a pack compares with human driving, in pictures and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.files import PackPath
from roadworthy.cli.output import JsonFlag, examples, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = examples(
    "roadworthy scenarios statistics town.pack -o statistics",
    "roadworthy scenarios statistics town.pack -o statistics --json",
)


def statistics(
    pack: PackPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write.", show_default=False)
    ],
    json: JsonFlag = False,
) -> None:
    """Measure speeds, headways, accelerations, lane changes and gaps, and set them beside figures of human driving.

    Writes pictures and a table (traffic_*.png, traffic_table.md) into the folder.
    """
    from roadworthy.scenario.pack import Pack
    from roadworthy.scenario.statistics import measure
    from roadworthy.scenario.statistics.draw import draw
    from roadworthy.scenario.statistics.summary import markdown, summarise

    if output.exists() and not output.is_dir():
        raise UsageError(f"{str(output)!r} is a file, expected a folder to write pictures into; name another one")
    with Pack(pack) as opened, progress("measuring") as report:
        if not len(opened):
            raise UsageError(f"{pack}: the pack is empty, so there is nothing to measure")
        sample = measure(opened, report)
    output.mkdir(parents=True, exist_ok=True)
    table = output / "traffic_table.md"
    table.write_text(markdown(sample), encoding="utf-8")
    files = [str(path) for path in (*draw(sample, output), table)]
    summary = summarise(sample)
    if json:
        tell_json({"pack": str(pack), **summary, "files": files})
    else:
        tell(_table(str(pack), summary), *files)


def _table(title: str, summary: dict[str, Any]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from roadworthy.scenario.statistics import QUANTITIES

    heading = f"{title}: traffic of {summary['scenarios']} scenarios"
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("quantity")
    for name in ("n", "5 %", "median", "95 %"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    for name, quantity in QUANTITIES.items():
        found = summary["quantities"][name]
        points = ["–" if found[p] is None else f"{found[p]:.2f}" for p in ("p5", "p50", "p95")]
        table.add_row(quantity.title, f"{found['n']:,}", *points, quantity.unit)
    return table
