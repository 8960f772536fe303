"""`roadworthy scenarios validate`: find every fault of a pack, in the file and in the motion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.files import PackPath
from roadworthy.cli.output import JsonFlag, examples, tell, tell_json
from roadworthy.cli.progress import progress
from roadworthy.errors import PackError, ScenarioError

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = examples(
    "roadworthy scenarios validate town.pack",
    "roadworthy scenarios validate town.pack --max-shown 0",
    "roadworthy scenarios validate town.pack --json",
)


def validate(
    pack: PackPath,
    max_shown: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many faults to print in full; all are counted.")
    ] = 50,
    json: JsonFlag = False,
) -> None:
    """Find every fault of a pack: damaged bytes, arrays that don't fit, overlaps, motion no human would drive.

    Ends with exit code 3 when there are faults.
    """
    faults = list(_faults(pack))
    if json:
        tell_json({"pack": str(pack), "fault_count": len(faults), "faults": faults})
    elif not faults:
        tell(f"{pack}: no faults")
    else:
        for fault in faults[:max_shown]:
            tell(f"{fault['where']}: {fault['rule']}: {fault['message']}")
        if 0 < max_shown < len(faults):
            tell(f"... and {len(faults) - max_shown} more; --max-shown {len(faults)} prints them all")
        tell(_counts(pack, faults))
    if faults:
        raise typer.Exit(ScenarioError.exit_code)


def _faults(path: Path) -> Iterator[dict[str, Any]]:
    """Faults of the file first, then of the motion of every scenario that can be read."""
    from roadworthy.scenario.pack import Pack, inspect
    from roadworthy.scenario.validate import faults

    if not path.exists():
        raise PackError(f"{path}: there is no such file")
    with progress("reading") as report:
        damage = inspect(path, report)
    yield from ({"where": fault.where, "rule": "integrity", "message": fault.what} for fault in damage)
    damaged = {fault.where for fault in damage}
    if damaged & {"file", "index"}:
        return
    with Pack(path) as pack, progress("validating") as report:
        for number, name in enumerate(pack.ids):
            where = f"scenario {name!r}"
            for fault in faults(pack[number]) if where not in damaged else ():
                found = {"where": where, "rule": fault.rule, "message": fault.message}
                yield {**found, "agent": fault.agent, "step": fault.step}
            report(number + 1, len(pack))


def _counts(path: Path, faults: list[dict[str, Any]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"{path}: {len(faults)} fault{'s' if len(faults) > 1 else ''}"
    table = Table("rule", "faults", "places", title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for rule, count in Counter(fault["rule"] for fault in faults).most_common():
        places = {fault["where"] for fault in faults if fault["rule"] == rule}
        table.add_row(rule, str(count), str(len(places)))
    return table
