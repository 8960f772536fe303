"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="A checkpoint, baseline:NAME, expert:NAME, random, module:Class or file.py:Class.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a key, or eval.NAME.KEY of one section; repeatable."),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
MovedPolicy = Annotated[
    str | None, typer.Option("--policy", metavar="POLICY", help="The new path of the run's policy, if it has moved.")
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Run a policy that is code (module:Class) or an address (ws://), as the run folder names it."
    ),
]
