"""`roadworthy scenarios`: make, list, draw and check packs of scenarios."""

import typer

from roadworthy.cli.scenarios import generate, hardness, imports, info, sheet, show, statistics, validate

app = typer.Typer(no_args_is_help=True, help="Make, list, draw and check packs of scenarios.")
for verb in (generate, info, show, sheet, statistics, validate, hardness):
    app.command(epilog=verb.EXAMPLES)(getattr(verb, verb.__name__.rpartition(".")[2]))
app.add_typer(imports.app, name="import")
