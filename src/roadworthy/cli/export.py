"""`roadworthy export`: write episodes of a run in formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.options import RunPath
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json

RERUN_EXAMPLES = examples(
    "roadworthy export rerun runs/town/20260101T120000Z-best-1f2e3d4c town-0007-r0 -o episode.rrd",
    "rerun episode.rrd     # opens the viewer",
    "",
    "Exit codes: 0 written, 1 failed, 2 usage, 3 damaged file, 5 the extra `rerun` is missing",
)

app = typer.Typer(no_args_is_help=True, help="Write episodes of a run in formats of other tools.")


@app.callback()
def _group() -> None:
    """Write episodes of a run in formats of other tools."""


@app.command("rerun", epilog=RERUN_EXAMPLES)
def rerun(
    run: RunPath,
    episode: Annotated[str, typer.Argument(metavar="EPISODE", help="The id of an episode.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE.rrd", help="The file to write; an existing one is replaced.")
    ],
    json: JsonFlag = False,
) -> int:
    """Write the recorded motion, map, lights and events of an episode as a file for the Rerun viewer.

    Nothing in a run is changed or executed.
    """
    from roadworthy.record import Run
    from roadworthy.viewer.rerun_export import export_rerun

    written = export_rerun(Run(run), episode, out)
    if written.note:
        note(f"{run}: {written.note}")
    if json:
        tell_json(
            {"file": str(written.path), "bytes": written.bytes, "frames": written.frames, "agents": written.agents}
        )
    else:
        tell(f"{written.path} ({written.frames} frames of {written.agents} agents, {written.bytes / 1e6:.1f} MB)")
    return 0
