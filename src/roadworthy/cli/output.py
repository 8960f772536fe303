"""Print results as tables or as one line of JSON on stdout, and everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def examples(*lines: str) -> str:
    """Return the end of the help of a verb: a command per line."""
    return "\n".join(["[bold]Examples[/bold]", *lines])


def console(is_stderr: bool = False) -> Console:
    """Return a console on stdout or stderr. It is imported when needed, so that the help is fast."""
    from rich.console import Console

    return Console(stderr=is_stderr, highlight=False, markup=False)


def new_table(*columns: str, right: Sequence[str] = (), title: str | None = None) -> Table:
    """Return a table without rows: columns aligned to the left, then columns aligned to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in right:
        table.add_column(name, justify="right")
    return table


def tell(*parts: RenderableType) -> None:
    """Print results for people. Text is not wrapped, so that paths can be copied."""
    from rich.text import Text

    screen = console()
    for part in parts:
        screen.print(part, soft_wrap=isinstance(part, str | Text))


def tell_json(data: dict[str, Any]) -> None:
    """Print a result for programs: one object on one line, the last of stdout."""
    sys.stdout.write(json.dumps(data) + "\n")


def note(message: str) -> None:
    """Print an informative line on stderr."""
    console(is_stderr=True).print(message, soft_wrap=True)


def say_error(message: str) -> None:
    """Print an error in red on stderr; the first word is `error`."""
    from rich.text import Text

    console(is_stderr=True).print(Text.assemble(("error: ", "bold red"), (message, "red")), soft_wrap=True)
