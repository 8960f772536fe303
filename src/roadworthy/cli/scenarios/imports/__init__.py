"""`roadworthy scenarios import`: make packs from recordings of others, a verb for each format."""

import typer

from roadworthy.cli.scenarios.imports import womd

app = typer.Typer(no_args_is_help=True, help="Make packs from recordings of others.")
app.command(epilog=womd.EXAMPLES)(womd.womd)


@app.callback()
def _formats() -> None:
    """Keep the name of the format in the command, though there is one alone."""
