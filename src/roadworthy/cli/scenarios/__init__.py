"""`roadworthy scenarios`: generate, import, inspect and draw packs of scenarios."""

import typer

from roadworthy.cli.scenarios import generate, hardness, imports, info, sheet, show, statistics, validate

app = typer.Typer(no_args_is_help=True, help="Generate, import, inspect and draw packs of scenarios.")
for verb in (generate, info, show, sheet, statistics, validate, hardness):
    app.command(epilog=verb.EXAMPLES)(getattr(verb, verb.__name__.rpartition(".")[2]))
app.command("import", epilog=imports.EXAMPLES)(imports.import_)
