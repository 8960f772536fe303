"""`roadworthy audit`: check that the outcomes of a run do not depend on how its episodes ran."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.options import MovedPolicy, RunPath, Trust
from roadworthy.cli.output import JsonFlag, examples, new_table, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.evaluation.audit import Audited

EXAMPLES = examples(
    "roadworthy audit runs/town/20260101T120000Z-best-1f2e3d4c",
    "roadworthy audit runs/town/20260101T120000Z-best-1f2e3d4c --episodes 200 --json",
    "",
    "Exit codes: 0 no outcome flips, 1 some do, 2 usage, 3 another checkpoint",
)
FLIPS = 1


def audit(
    run: RunPath,
    episodes: Annotated[int, typer.Option(metavar="N", min=1, help="The number of episodes to run again.")] = 50,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed that selects the episodes.")] = 0,
    workers: Annotated[
        int, typer.Option(metavar="N", min=0, help="The number of processes; 0 leaves out the check with processes.")
    ] = 2,
    policy: MovedPolicy = None,
    trust: Trust = False,
    json: JsonFlag = False,
) -> int:
    """Run a sample of episodes again with other batch sizes, slots, orders and engines; count outcomes that flip."""
    from roadworthy.evaluation.audit import audit as run_again
    from roadworthy.evaluation.recorded import open_run
    from roadworthy.record import Run

    with progress("auditing") as report:
        audited = run_again(
            open_run(Run(run), trust=trust), episodes, seed=seed, workers=workers, checkpoint=policy, progress=report
        )
    flips = sum(len(way.flips) for way in audited)
    if json:
        tell_json({"run": str(run), "flips": flips, "ways": [asdict(way) for way in audited]})
    else:
        tell(_table(audited))
    return FLIPS if flips else 0


def _table(audited: list[Audited]) -> Table:
    table = new_table("run in", right=("episodes", "flips", "other rows", "other motion"))
    for way in audited:
        counts = (way.episodes, len(way.flips), len(way.other_rows), len(way.other_motion))
        table.add_row(way.way, *map(str, counts))
    return table
