"""`roadworthy scenarios generate`: make a pack of scenarios from a seed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from roadworthy.cli.files import make_folder, require_suffix
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import progress

EXAMPLES = examples(
    "roadworthy scenarios generate -o town.pack",
    "roadworthy scenarios generate --count 24 --seed 7 -o town.pack",
    "roadworthy scenarios generate --class cut_in --class merge -o highway.pack",
    "roadworthy scenarios generate --config town.toml --set seed=3 -o town.pack",
)


def generate(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="PACK",
            help="Where to write.",
            callback=require_suffix(".pack"),
            show_default=False,
        ),
    ],
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many scenarios (1200).")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="The same seed, the same bytes (0).")] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=91, help="Steps of 0.1 s in each (91).")] = None,
    behaviors: Annotated[
        list[str] | None, typer.Option("--class", metavar="NAME", help="A behaviour class; repeatable (all).")
    ] = None,
    processes: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes (one per core).")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with a section \\[generate].", show_default=False)
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set one key of the config; repeatable.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make a pack of scenarios from a seed: towns with recorded traffic.

    Flags win over --set, and --set over the file.
    """
    from roadworthy.config import Layer, parse_overrides, read, resolve
    from roadworthy.kernels import cache_folder
    from roadworthy.scenario.generate import GenerateConfig, generate_pack
    from roadworthy.scenario.pack import Pack

    flags: dict[str, Any] = {"count": count, "seed": seed, "steps": steps, "classes": behaviors or None}
    layers = [read(config, "generate")] if config else []
    layers.append(parse_overrides(overrides or ()))
    layers.append(Layer("the command line", {key: value for key, value in flags.items() if value is not None}))
    settings = resolve(GenerateConfig, layers).config

    if not cache_folder("scenario").exists():
        note("compiling first, about half a minute, once for each version")
    started = time.monotonic()
    with progress("generating") as report:
        generate_pack(settings, make_folder(output), processes=processes, progress=report)
    seconds = time.monotonic() - started
    size = output.stat().st_size
    with Pack(output) as pack:
        made: dict[str, Any] = {"scenarios": len(pack), "maps": pack.map_count, "tags": pack.tag_counts}
    if json:
        tell_json({"pack": str(output), **made, "bytes": size, "seconds": round(seconds, 3)})
    else:
        counts = f"scenarios: {made['scenarios']}, classes: {len(made['tags'])}, maps: {made['maps']}"
        tell(f"{output} ({counts}; {size / 1e6:.1f} MB in {seconds:.1f} s)")
