"""`roadworthy realism`: measure how much simulated agents drive like recorded ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import roadworthy
from roadworthy.cli.files import PackPath, require_suffix
from roadworthy.cli.output import JsonFlag, examples, new_table, note, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.metrics.realism.score_realism import RealismScores

app = typer.Typer(no_args_is_help=True, help="Measure how much simulated agents drive like recorded ones.")

EXAMPLES = examples(
    "roadworthy realism score town.pack rollouts/",
    "roadworthy realism score womd.pack submission.binproto --challenge 2024",
    "roadworthy realism score womd.pack submission.tar.gz --only 637f20cafde22ff8",
    "roadworthy realism score town.pack rollouts/ --scenarios realism.csv --json",
)


@app.callback()
def _group() -> None:
    """Measure how much simulated agents drive like recorded ones."""


@app.command(epilog=EXAMPLES)
def score(
    pack: PackPath,
    rollouts: Annotated[
        list[Path],
        typer.Argument(
            metavar="ROLLOUTS...",
            help="ID.npz of a scenario, a submission of the challenge (one file, shards, .tar.gz), or folders of them.",
        ),
    ],
    challenge: Annotated[
        Literal["2025", "2024", "2025_scenario_gen"], typer.Option(help="The version of the metrics.")
    ] = "2025",
    scenarios: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the figures of each scenario to this .csv or .json file.",
            callback=require_suffix(".csv", ".json"),
        ),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="Score only this scenario; repeatable.")] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Ignore rollouts of scenarios that are not in the pack.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The number of processes (one per core).")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Score rollouts of any simulator with the metrics of the Waymo Open Sim Agents Challenge.

    An .npz file holds object_id (agents), and x, y, z, heading (rollouts, agents, steps), in the coordinates of the
    scenario's source. Shards are the files NAME-00000-of-00150 and so on: name them, their folder, or NAME.
    """
    with progress("scoring") as update:
        scores = roadworthy.score_realism(
            pack,
            rollouts,
            challenge=challenge,
            only=only or (),
            skip_unknown=skip_unknown,
            processes=processes,
            progress=update,
        )
    if scenarios is not None:
        scores.write(scenarios)
    count = len(scores.scenarios)
    if scores.missing:
        note(f"{scores.missing} of the pack's {scores.missing + count} scenarios have no rollouts, or were not chosen")
    if json:
        result: dict[str, Any] = {"pack": str(pack), "challenge": challenge, "scenarios": count}
        result |= {"scenarios_without_rollouts": scores.missing, "figures": scores.figures.plain()}
        tell_json({**result, "buckets": scores.buckets(), **({"scenarios_file": str(scenarios)} if scenarios else {})})
    else:
        tell(_table(f"{pack}: realism of {count} scenario{'s' if count > 1 else ''}", scores))
        if scenarios:
            tell(str(scenarios))


def _table(title: str, scores: RealismScores) -> Table:
    from roadworthy.metrics.realism.config import BUCKETS
    from roadworthy.metrics.realism.score_realism import BUCKETS as BUCKET_NAMES

    figures, config, groups = scores.figures, scores.config, scores.buckets()
    table = new_table("feature", right=("weight", "likelihood", "rate"), title=title)
    rates = {
        "collision_indication": figures.simulated_collision_rate,
        "offroad_indication": figures.simulated_offroad_rate,
        "traffic_light_violation": figures.simulated_traffic_light_violation_rate,
    }
    for name, part in config.parts.items():
        likelihood = getattr(figures, f"{name}_likelihood")
        rate = f"{rates[name]:.1%}" if name in rates else ""
        table.add_row(name.replace("_", " "), f"{part.weight:.2f}", _number(likelihood), rate)
    table.add_section()
    for name in BUCKET_NAMES:
        weight = sum(config.parts[part].weight for part in BUCKETS[name.removesuffix("_metrics")])
        table.add_row(name.replace("_", " "), f"{weight:.2f}", _number(groups[name]))
    table.add_section()
    table.add_row("realism", "1.00", _number(figures.metametric), style="bold")
    table.add_row("average displacement error", "", f"{_number(figures.average_displacement_error)} m")
    table.add_row("smallest of a rollout", "", f"{_number(figures.min_average_displacement_error)} m")
    return table


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.4f}"
