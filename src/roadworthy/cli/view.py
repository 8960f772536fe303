"""`roadworthy view`: look at runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import progress

EXAMPLES = examples(
    "roadworthy view runs",
    "roadworthy view runs/town/20260101T120000Z-best-1f2e3d4c --port 0",
    "roadworthy view runs --bundle site     # static files, also offline",
    "python -m http.server --bind 127.0.0.1 --directory site",
    "roadworthy view runs --embed           # static files in runs/viewer",
    "",
    "From another machine: ssh -L 7788:localhost:7788 MACHINE",
    "or --host 0.0.0.0, which requires the token in the address that is shown",
    "Exit codes: 0 written, 1 failed, 2 usage, 5 the extra `view` is missing, 130 Ctrl-C",
)


def view(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="FOLDER", help="Folders with runs, or run folders (runs).")
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write the pages as static files into this folder.")
    ] = None,
    light: Annotated[bool, typer.Option("--light", help="Leave motion and videos out of the bundle.")] = False,
    embed: Annotated[
        bool, typer.Option("--embed", help="Write the pages into FOLDER/viewer; motion and videos are not copied.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")] = 7788,
    token: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The secret that other machines need (a random one).")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    json: JsonFlag = False,
) -> int:
    """Look at runs, their figures and their episodes in a browser. Pages update while evaluations and trainings run.

    Nothing in a run is changed or executed. The server answers to this machine alone, unless --host says otherwise.
    """
    from roadworthy.viewer.view import view as show

    def ready(address: str) -> None:
        if json:
            tell_json({"address": address})
        else:
            tell(f"{address}  (Ctrl-C ends it)")

    given = folders or [Path("runs")]
    if bundle is None and not embed:
        show(given, host=host, port=port, token=token, browser=browser, ready=ready)
        return 0
    with progress("writing") as update:
        written = show(given, bundle=bundle, light=light, embed=embed, progress=update)
    assert written is not None
    for reason in written.skipped:
        note(f"left out: {reason}")
    if json:
        tell_json({"bundle": str(written.folder), "files": written.files, "bytes": written.bytes})
    else:
        tell(f"{written.folder} ({written.files} files, {written.bytes / 1e6:.1f} MB); serve it with:")
        served = written.folder.parent if embed else written.folder
        tell(f"python -m http.server --bind 127.0.0.1 --directory {served}")
    return 0
