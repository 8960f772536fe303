"""`roadworthy rescore`: recompute every figure of a run from its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.options import RunPath
from roadworthy.cli.output import JsonFlag, examples, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.evaluation.rescore import FigureChange, Rescored

EXAMPLES = examples(
    "roadworthy rescore runs/town/20260101T120000Z-best-1f2e3d4c",
    "",
    "Exit codes: 0 everything agrees, 1 something differs, 2 usage",
)
DIFFERS = 1


def rescore(
    run: RunPath,
    json: JsonFlag = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run metrics that are code named in the run folder.")] = False,
) -> int:
    """Recompute every row and figure from the recorded motion, with the rules of the simulator, and compare.

    The policy is not needed. If the definition of a metric has changed since the run, both versions are named.
    """
    from roadworthy.evaluation.recorded import open_run
    from roadworthy.evaluation.rescore import rescore as recompute
    from roadworthy.record import Run

    with progress("rescoring") as report:
        result = recompute(open_run(Run(run), trust=trust), report)
    if json:
        tell_json({"run": str(run), **_plain(result)})
    else:
        tell(*_lines(result))
    return 0 if result.agrees else DIFFERS


def _plain(result: Rescored) -> dict[str, Any]:
    return {
        "agrees": result.agrees,
        "episodes": result.episodes,
        "untraced": list(result.untraced),
        "differing": list(result.differing),
        "moved": list(result.moved),
        "changes": [
            {
                "figure": change.name,
                "recorded": change.recorded,
                "recomputed": change.recomputed,
                "is_new": change.is_new,
                "is_other_version": change.is_other_version,
            }
            for change in result.changes
        ],
    }


def _lines(result: Rescored) -> list[str]:
    lines = [f"{result.episodes} episodes re-scored; {len(result.differing)} differ from their rows"]
    lines += [f"  {name}" for name in result.differing[:5]]
    if result.untraced:
        lines.append(f"{len(result.untraced)} have no trace; their recorded rows were used")
    if result.moved:
        lines.append(f"{len(result.moved)} would move differently on this machine; the recorded motion was used")
    lines += [_change(change) for change in result.changes]
    return [*lines, "everything agrees" if result.agrees else "the run recorded other values"]


def _change(change: FigureChange) -> str:
    before, after = change.recorded, change.recomputed
    if after is None:
        return f"{change.name}: is no longer a figure"
    if before is None:
        between = "" if after["low"] is None else f", {after['low']} to {after['high']}"
        return f"{change.name}: {after['value']}{between}; new since the run was recorded"
    if change.is_other_version:
        return (
            f"{change.name}: {after['value']} by version {after['version']} of the metric, "
            f"recorded was {before['value']} by version {before['version']}"
        )
    return f"{change.name}: {after['value']}, recorded was {before['value']}"
