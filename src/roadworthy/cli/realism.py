"""`roadworthy realism`: how much simulated agents drive like recorded ones."""

from __future__ import annotations

import csv
import json as json_format
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.files import PackPath, make_folder, require_suffix
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.metrics.realism import RealismConfig, RealismFigures

app = typer.Typer(no_args_is_help=True, help="Measure how much simulated agents drive like recorded ones.")

EXAMPLES = examples(
    "roadworthy realism score town.pack rollouts/",
    "roadworthy realism score womd.pack submission.binproto --challenge 2024",
    "roadworthy realism score womd.pack submission.tar.gz --only 637f20cafde22ff8",
    "roadworthy realism score town.pack rollouts/ --scenarios realism.csv --json",
)
BUCKET_NAMES = ("kinematic_metrics", "interactive_metrics", "map_based_metrics")


class Challenge(Enum):
    """A configuration of the challenge."""

    Y2025 = "2025"
    Y2024 = "2024"
    SCENARIO_GENERATION = "2025_scenario_gen"


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
            show_default=False,
        ),
    ],
    challenge: Annotated[Challenge, typer.Option(help="Whose configuration to use.")] = Challenge.Y2025,
    scenarios: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the figures of every scenario there, as .csv or .json.",
            callback=require_suffix(".csv", ".json"),
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Score this scenario alone; may be given several times.", show_default=False),
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out rollouts of scenarios that are not in the pack.")
    ] = False,
    processes: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes (one per core).")] = None,
    json: JsonFlag = False,
) -> None:
    """Score rollouts, wherever they come from, with the metrics of the Waymo Open Sim Agents challenge.

    An .npz file holds object_id (agents), and x, y, z, heading (rollouts, agents, steps), in the coordinates of the
    scenario's source. Shards are the files NAME-00000-of-00150 and so on: name them, their folder, or NAME.
    """
    from roadworthy.metrics.realism import CHALLENGES, buckets, mean_figures
    from roadworthy.metrics.realism.score_files import score_files
    from roadworthy.scenario.pack import Pack

    config = CHALLENGES[challenge.value]
    with progress("scoring") as report:
        scores = score_files(
            pack,
            rollouts,
            config,
            only=only or (),
            skip_unknown=skip_unknown,
            processes=processes,
            progress=report,
        )
    with Pack(pack) as opened:
        missing = len(opened) - len(scores)
    figures = mean_figures(list(scores.values()))
    groups = {name: _plain(value) for name, value in buckets(figures, config).items()}
    if scenarios is not None:
        _write(scores, config, make_folder(scenarios))
    if missing:
        note(f"{missing} of the pack's {missing + len(scores)} scenarios have no rollouts, or were not asked for")
    if json:
        written = {"scenarios_file": str(scenarios)} if scenarios else {}
        counts = {"scenarios": len(scores), "scenarios_without_rollouts": missing}
        told = {"pack": str(pack), "challenge": challenge.value, **counts, "figures": figures.plain()}
        tell_json({**told, "buckets": groups, **written})
    else:
        tell(_table(f"{pack}: realism of {len(scores)} scenario{'s' if len(scores) > 1 else ''}", figures, config))
        if scenarios:
            tell(str(scenarios))


def _plain(value: float) -> float | None:
    return None if value != value else value


def _write(scores: dict[str, RealismFigures], config: RealismConfig, path: Path) -> None:
    from roadworthy.metrics.realism import buckets

    rows = []
    for name, figures in scores.items():
        groups = {key: _plain(value) for key, value in buckets(figures, config).items() if key in BUCKET_NAMES}
        rows.append({"scenario_id": name, **figures.plain(), **groups})
    if path.suffix.lower() == ".json":
        path.write_text(json_format.dumps(rows, indent=1) + "\n", encoding="utf-8")
        return
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _table(title: str, figures: RealismFigures, config: RealismConfig) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from roadworthy.metrics.realism import buckets
    from roadworthy.metrics.realism.config import BUCKETS

    groups = buckets(figures, config)
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("feature")
    for name in ("weight", "likelihood", "rate"):
        table.add_column(name, justify="right")
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


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.4f}"
