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
from roadworthy.cli.progress import progress
from roadworthy.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.metrics.realism import RealismConfig, RealismFigures

app = typer.Typer(no_args_is_help=True, help="Measure how much simulated agents drive like recorded ones.")

EXAMPLES = examples(
    "roadworthy realism score town.pack rollouts/",
    "roadworthy realism score womd.pack submission.binproto --challenge 2024",
    "roadworthy realism score town.pack rollouts/ --scenarios realism.csv --json",
)


class Challenge(Enum):
    """The year of a Sim Agents challenge."""

    Y2025 = "2025"
    Y2024 = "2024"


@app.callback()
def _group() -> None:
    """Measure how much simulated agents drive like recorded ones."""


@app.command(epilog=EXAMPLES)
def score(
    pack: PackPath,
    rollouts: Annotated[
        Path,
        typer.Argument(
            metavar="ROLLOUTS",
            help="ID.npz of a scenario, a submission of the challenge, or a folder of such files.",
            show_default=False,
        ),
    ],
    challenge: Annotated[Challenge, typer.Option(help="Whose weights to use.")] = Challenge.Y2025,
    scenarios: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the figures of every scenario there, as .csv or .json.",
            callback=require_suffix(".csv", ".json"),
            show_default=False,
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Score rollouts, wherever they come from, with the metrics of the Waymo Open Sim Agents challenge.

    An .npz file holds object_id (agents), and x, y, z, heading (rollouts, agents, steps), in the coordinates of the
    scenario's source.
    """
    from roadworthy.metrics.realism import CHALLENGES, mean_figures

    config = CHALLENGES[challenge.value]
    scores, missing = _score_all(pack, rollouts, config)
    figures = mean_figures(list(scores.values()))
    if scenarios is not None:
        _write(scores, make_folder(scenarios))
    if missing:
        note(f"{missing} of the pack's {missing + len(scores)} scenarios have no rollouts and are not scored")
    if json:
        written = {"scenarios_file": str(scenarios)} if scenarios else {}
        counts = {"scenarios": len(scores), "scenarios_without_rollouts": missing}
        tell_json({"pack": str(pack), "challenge": challenge.value, **counts, "figures": figures.plain(), **written})
    else:
        tell(_table(f"{pack}: realism of {len(scores)} scenario{'s' if len(scores) > 1 else ''}", figures, config))
        if scenarios:
            tell(str(scenarios))


def _score_all(pack: Path, rollouts: Path, config: RealismConfig) -> tuple[dict[str, RealismFigures], int]:
    """The figures of each scenario that has rollouts, and how many have none."""
    from roadworthy.metrics.realism import score_rollouts
    from roadworthy.metrics.realism.read import read_rollouts
    from roadworthy.scenario.pack import Pack

    scores: dict[str, RealismFigures] = {}
    with Pack(pack) as opened, progress("scoring") as report:
        for name, found in read_rollouts(rollouts, opened.ids):
            if name in scores:
                raise UsageError(
                    f"{rollouts}: the scenario {name!r} is there twice; expected the rollouts of each once"
                )
            scores[name] = score_rollouts(opened.scenario(name), found, config)
            report(len(scores), len(opened))
        return scores, len(opened) - len(scores)


def _write(scores: dict[str, RealismFigures], path: Path) -> None:
    rows = [{"scenario_id": name, **figures.plain()} for name, figures in scores.items()]
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
    table.add_row("realism", "1.00", _number(figures.metametric), style="bold")
    table.add_row("average displacement error", "", f"{_number(figures.average_displacement_error)} m")
    table.add_row("smallest of a rollout", "", f"{_number(figures.min_average_displacement_error)} m")
    return table


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.4f}"
