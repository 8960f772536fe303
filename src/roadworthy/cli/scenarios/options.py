"""What `generate` and `import` share: options; for imports, a note before kernels are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.files import require_suffix
from roadworthy.cli.output import note

PackOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="PACK", help="The pack to write.", callback=require_suffix(".pack"))
]
ProcessCount = Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of processes (one per core).")]


def note_compilation() -> None:
    """Say so if kernels have to be compiled first."""
    from roadworthy.kernels import cache_folder
    from roadworthy.kernels.installed import has_numba

    if has_numba() and not cache_folder("scenario").exists():
        note("compiling kernels (once per version, about half a minute)")
