"""`roadworthy scenarios hardness`: find the scenarios where a policy fails most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.files import make_folder, require_suffix
from roadworthy.cli.output import JsonFlag, examples, new_table, tell, tell_json
from roadworthy.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.evaluation.hardness import Hardness

EXAMPLES = examples(
    "roadworthy scenarios hardness runs/town/20260101T120000Z-best-1f2e3d4c --csv hard.csv",
    "roadworthy scenarios hardness hard.csv --from town.pack --hardest 50 --pack hard.pack",
)
_MOST_ROWS = 10


def hardness(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders of one policy, or one CSV: id, n, rate, low, high."),
    ],
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A CSV file to write.", callback=require_suffix(".csv"))
    ] = None,
    pack: Annotated[
        Path | None,
        typer.Option(
            metavar="PACK", help="The pack of the hardest scenarios to write.", callback=require_suffix(".pack")
        ),
    ] = None,
    count: Annotated[int, typer.Option("--hardest", metavar="N", min=1, help="Number of scenarios in the pack.")] = 50,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="PACK", help="The pack with the scenarios; by default that of the run."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Score scenarios by how often a policy fails in them, and write a pack of the hardest ones."""
    from roadworthy.evaluation.hardness import hardness_of, read_hardness, write_hardest, write_hardness
    from roadworthy.record import Run

    is_table = sources[0].suffix.lower() == ".csv"
    if is_table and len(sources) > 1:
        raise UsageError(f"{sources[0]} and {len(sources) - 1} more were given; expected one CSV, or run folders")
    scenarios = read_hardness(sources[0]) if is_table else hardness_of(map(Run, sources))
    result: dict[str, Any] = {"scenarios": len(scenarios)}
    if csv is not None:
        write_hardness(make_folder(csv), scenarios)
        result["csv"] = str(csv)
    if pack is not None:
        if source is None and (is_table or len(sources) > 1):
            raise UsageError("a pack of the hardest scenarios needs a source pack; name it with --from")
        result["hardest"] = write_hardest(source or Run(sources[0]).pack, scenarios, count, make_folder(pack))
        result["pack"] = str(pack)
    if json:
        tell_json(result)
    else:
        tell(_table(scenarios), *(str(path) for path in (csv, pack) if path is not None))


def _table(scenarios: list[Hardness]) -> Table:
    shown = min(_MOST_ROWS, len(scenarios))
    title = f"the {shown} hardest of {len(scenarios)} scenarios"
    table = new_table("scenario", right=("episodes", "failed", "from", "to"), title=title)
    for scenario in scenarios[:_MOST_ROWS]:
        rates = (f"{value:.3f}" for value in (scenario.rate, scenario.low, scenario.high))
        table.add_row(scenario.id, str(scenario.n), *rates)
    return table
