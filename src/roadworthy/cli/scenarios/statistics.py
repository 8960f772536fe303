"""`roadworthy scenarios statistics`: compare the traffic of a pack with human driving, in plots and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.files import PackPath
from roadworthy.cli.output import JsonFlag, examples, new_table, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = examples(
    "roadworthy scenarios statistics town.pack -o statistics",
    "roadworthy scenarios statistics town.pack -o statistics --json",
)


def statistics(
    pack: PackPath,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write to.")],
    json: JsonFlag = False,
) -> None:
    """Measure speeds, headways, accelerations, lane changes and gaps, and compare them with published figures.

    Writes plots and a table (traffic_*.png, traffic_table.md) into the folder.
    """
    from roadworthy.scenario.statistics import write_statistics

    with progress("measuring traffic") as report:
        summary, paths = write_statistics(pack, output, progress=report)
    files = [str(path) for path in paths]
    if json:
        tell_json({"pack": str(pack), **summary, "files": files})
    else:
        tell(_table(str(pack), summary), *files)


def _table(title: str, summary: dict[str, Any]) -> Table:
    from roadworthy.scenario.statistics import QUANTITIES

    heading = f"{title}: traffic of {summary['scenarios']} scenarios"
    table = new_table("quantity", right=("n", "5 %", "median", "95 %"), title=heading)
    table.add_column("unit")
    for name, quantity in QUANTITIES.items():
        found = summary["quantities"][name]
        points = ["–" if found[p] is None else f"{found[p]:.2f}" for p in ("p5", "p50", "p95")]
        table.add_row(quantity.title, f"{found['n']:,}", *points, quantity.unit)
    return table
