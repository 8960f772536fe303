"""`roadworthy scenarios info`: describe a pack, or one of its scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.files import PackPath, chosen_scenario
from roadworthy.cli.output import JsonFlag, examples, new_table, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.console import RenderableType

EXAMPLES = examples(
    "roadworthy scenarios info town.pack",
    "roadworthy scenarios info town.pack 0",
    "roadworthy scenarios info town.pack --json",
)


def info(
    pack: PackPath,
    scenario: Annotated[str | None, typer.Argument(metavar="[ID]", help="One scenario: its id or its number.")] = None,
    json: JsonFlag = False,
) -> None:
    """Describe a pack, or one of its scenarios."""
    from roadworthy.scenario.description import describe_pack, describe_scenario
    from roadworthy.scenario.pack import Pack

    with Pack(pack) as opened, progress("reading scenarios") as report:
        if scenario is None:
            facts = describe_pack(opened, report)
        else:
            facts = describe_scenario(chosen_scenario(opened, scenario))
    if json:
        tell_json({"pack": str(pack), **facts})
    else:
        title = str(pack) if scenario is None else facts["id"]
        tell(*_tables(title, facts))


def _tables(title: str, facts: dict[str, Any]) -> list[RenderableType]:
    """Return single facts under a title, then a table for each group of counts, side by side if they fit."""
    from rich.columns import Columns
    from rich.table import Table
    from rich.text import Text

    single = Table(show_header=False, box=None, pad_edge=False)
    groups: list[RenderableType] = []
    for name, value in facts.items():
        words = name.replace("_", " ")
        if isinstance(value, dict) and len(value) > 1:
            group = new_table(words, right=["count"])
            for key, count in value.items():
                group.add_row(key, str(count))
            groups.append(group)
        elif isinstance(value, dict):
            single.add_row(words, ", ".join(f"{key}: {count}" for key, count in value.items()) or "none")
        elif isinstance(value, list):
            single.add_row(words, ", ".join(value) or "none")
        else:
            single.add_row(words, "none" if value is None else str(value))
    return [Text(title, style="bold"), single, Columns(groups, padding=(0, 4))]
