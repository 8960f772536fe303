"""`roadworthy inspect`: record what happens inside a policy, step by step, as files, pictures and a video."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.evaluation.inspection import Inspected
    from roadworthy.policy.inspect import WorldKind

EXAMPLES = examples(
    "roadworthy inspect baseline:town --pack town.pack --agents 0,3",
    "roadworthy inspect CHECKPOINT --pack town.pack --worlds ego,replay --steps 120 -o look",
    "roadworthy inspect CHECKPOINT --pack town.pack --worlds coplayers --coplayer OTHER --set episode.trials=3",
    "",
    "Exit codes: 0 done, 1 some video could not be made, 2 usage, 3 bad data",
)


def inspect(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint, a training folder, or baseline:NAME.")
    ],
    pack: Annotated[Path, typer.Option(metavar="PACK", help="A pack file.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The output folder; it gets a folder for each kind of world."
        ),
    ] = Path("inspection"),
    scenario: Annotated[str, typer.Option(metavar="ID", help="The id of the scenario, or its number.")] = "0",
    worlds: Annotated[
        str, typer.Option(metavar="KINDS", help="Kinds of worlds, comma-separated: ego, replay, coplayers.")
    ] = "ego",
    agents: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Egos to record, such as 0,3; by default the first one.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Steps to record; by default all.")] = None,
    coplayers: Annotated[
        list[str] | None,
        typer.Option(
            "--coplayer", metavar="POLICY", help="A policy that drives co-players; repeatable; by default CHECKPOINT."
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the simulation; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the episode.")] = 0,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the most likely actions instead of samples.")] = False,
    video: Annotated[bool, typer.Option("--video/--no-video", help="Whether to record a video.")] = True,
    json: JsonFlag = False,
) -> int:
    """Inspect a policy during one episode.

    Each agent gets a .jsonl and an .npz file with the observation, action,
    value, memory, mask and attention of every step, and pictures and a video.

    In ego worlds, the policy controls all agents; in replay worlds, only the
    self-driving car; in coplayers worlds, other policies control half.
    """
    from roadworthy.evaluation.inspection import Request, inspect_episode
    from roadworthy.policy.checkpoint import load_checkpoint
    from roadworthy.policy.spec import require_checkpoint
    from roadworthy.scenario.pack import Pack

    kinds, numbers = _kinds(worlds), _numbers(agents)
    loaded = load_checkpoint(require_checkpoint(checkpoint, "the policy to inspect"))
    with Pack(pack) as opened:
        request = Request(loaded, opened, scenario, seed, coplayers or (), numbers, steps, greedy, overrides or ())
        episode = request.episode()
        found = []
        for kind in kinds:
            found.append(inspect_episode(request, kind, out / kind.value, has_video=video, showing=progress))
            if not json:
                tell(_summary(found[-1]))
    errors = [error for inspected in found for error in inspected.errors]
    for error in errors:
        note(f"no video: {error}")
    if json:
        files = {inspected.kind.value: list(map(str, inspected.files)) for inspected in found}
        tell_json({"checkpoint": str(loaded.path), "scenario": episode.scenario_id, "files": files, "errors": errors})
    return 1 if errors else 0


def _kinds(worlds: str) -> list[WorldKind]:
    from roadworthy.policy.inspect import WorldKind

    known = [kind.value for kind in WorldKind]
    names = [name.strip() for name in worlds.split(",")]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise UsageError(f"--worlds {wrong[0]!r} is unknown; known: {', '.join(known)}")
    return [WorldKind(name) for name in dict.fromkeys(names)]


def _numbers(agents: str | None) -> list[int] | None:
    if agents is None:
        return None
    parts = [part.strip() for part in agents.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--agents is {agents!r}, expected comma-separated numbers, as in 0,3")
    return list(dict.fromkeys(map(int, parts)))


def _summary(inspected: Inspected) -> str:
    agents = []
    for agent, inspection in inspected.inspections.items():
        inactive = int((~inspection.active).sum())
        agents.append(
            f"agent {agent}: {len(inspection.trial)} steps" + (f", {inactive} of them inactive" if inactive else "")
        )
    trials = f"{inspected.trials} trial{'s' if inspected.trials > 1 else ''}"
    return f"{inspected.kind.value}: {trials}, {'; '.join(agents)}\n{inspected.folder}"
