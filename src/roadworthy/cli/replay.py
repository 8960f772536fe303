"""`roadworthy replay`: run an episode of a run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.options import MovedPolicy, RunPath, Trust
from roadworthy.cli.output import JsonFlag, examples, tell, tell_json

if TYPE_CHECKING:
    from roadworthy.record import EpisodeResult

EXAMPLES = examples(
    "roadworthy replay runs/town/20260101T120000Z-best-1f2e3d4c town-0007-r0 --verify",
    "roadworthy replay RUN EPISODE --trust    (if the run's policy is your own code: module:Class)",
    "",
    "Exit codes: 0 done (with --verify: the motion is the same), 1 it differs, 2 usage, 3 another checkpoint",
)
DIFFERS = 1


def replay(
    run: RunPath,
    episode: Annotated[str, typer.Argument(metavar="EPISODE", help="The id of an episode.")],
    verify: Annotated[bool, typer.Option("--verify", help="Compare the motion with the recorded one.")] = False,
    policy: MovedPolicy = None,
    trust: Trust = False,
    json: JsonFlag = False,
) -> int:
    """Run an episode again with its policy; report whether and where the motion differs."""
    from roadworthy.evaluation.recorded import open_run
    from roadworthy.evaluation.replay import first_difference
    from roadworthy.evaluation.replay import replay as run_again
    from roadworthy.record import Run

    opened = Run(run)
    before = opened.trace(episode) if verify else None
    result = run_again(open_run(opened, trust=trust), episode, policy)
    report: dict[str, Any] = {"run": str(run), "episode": episode, "outcomes": dict(result.episode.outcomes)}
    lines = [_outcome(result)]
    difference = None
    if before is not None and result.trace is not None:
        difference = first_difference(before, result.trace)
        report |= {"identical": difference is None, "first_difference": vars(difference) if difference else None}
        same = f"the motion is identical: {before.frame_count} frames of {before.agent_count} agents"
        lines.append(same if difference is None else f"the motion differs, first at {difference}")
    if json:
        tell_json(report)
    else:
        tell(*lines)
    return DIFFERS if difference is not None else 0


def _outcome(result: EpisodeResult) -> str:
    row = result.episode
    if row.status == "failed":
        return f"{row.episode_id}: failed: {row.error}"
    score = row.outcomes.get("score")
    return f"{row.episode_id}: {row.steps} steps, score {'no data' if score is None else f'{score:.3f}'}"
