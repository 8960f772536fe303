"""`roadworthy scenarios generate`: generate a pack of scenarios from a seed."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, tell, tell_json
from roadworthy.cli.scenarios.options import PackOutput, ProcessCount
from roadworthy.progress import progress

EXAMPLES = examples(
    "roadworthy scenarios generate -o town.pack",
    "roadworthy scenarios generate --count 24 --seed 7 -o town.pack",
    "roadworthy scenarios generate --class cut_in --class merge -o highway.pack",
    "roadworthy scenarios generate --config town.toml --set seed=3 -o town.pack",
)


def generate(
    output: PackOutput,
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of scenarios (1200).")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Equal seeds give equal bytes (0).")] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=91, help="Number of steps of 0.1 s in each scenario (91).")
    ] = None,
    behaviors: Annotated[
        list[str] | None, typer.Option("--class", metavar="NAME", help="A behavior class; repeatable (all).")
    ] = None,
    processes: ProcessCount = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with a section \\[generate].")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set one key of the config; repeatable.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Generate a pack of scenarios from a seed: road networks with recorded traffic.

    Flags override --set, and --set overrides the file.
    """
    from roadworthy.config import Layer, parse_overrides, read, resolve
    from roadworthy.scenario.generate import GenerateConfig
    from roadworthy.scenario.generate import generate as generate_scenarios

    flags: dict[str, Any] = {"count": count, "seed": seed, "steps": steps, "classes": behaviors or None}
    layers = [read(config, "generate")] if config else []
    layers.append(parse_overrides(overrides or ()))
    layers.append(Layer("the command line", {key: value for key, value in flags.items() if value is not None}))
    settings = resolve(GenerateConfig, layers).config

    started = time.monotonic()
    with progress("generating scenarios") as report:
        result = generate_scenarios(output, **asdict(settings), processes=processes, progress=report)
    seconds = time.monotonic() - started
    size = output.stat().st_size
    if json:
        facts = {"scenarios": result.scenario_count, "maps": result.map_count, "tags": result.tag_counts}
        tell_json({"pack": str(output), **facts, "bytes": size, "seconds": round(seconds, 3)})
    else:
        counts = f"scenarios: {result.scenario_count}, classes: {len(result.tag_counts)}, maps: {result.map_count}"
        tell(f"{output} ({counts}; {size / 1e6:.1f} MB in {seconds:.1f} s)")
