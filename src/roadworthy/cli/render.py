"""`roadworthy render`: make videos of the episodes of a run from their traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, note, say_error, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.record import Run
    from roadworthy.render.config import RenderConfig
    from roadworthy.render.episode_video import Video

SOME = 10  # the default number of failed episodes
LONGEST = 10_000

EXAMPLES = examples(
    "roadworthy render runs/town/20260801-120000-baseline-1f3c --failed",
    "roadworthy render RUN --worst 3 --view bev,ego,obs --size 1920x1080",
    "roadworthy render RUN --episode 7-merge-0003-r0 --view obs --agent 4 --out films",
    "",
    "Exit codes: 0 all were made, 1 some were not, 2 usage",
)


def render(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    failed: Annotated[
        bool, typer.Option("--failed", help=f"Make videos of the {SOME} worst episodes in which an ego failed.")
    ] = False,
    worst: Annotated[int | None, typer.Option(metavar="N", min=1, help="Make videos of the N worst episodes.")] = None,
    first: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Make videos of the first N episodes of the ledger.")
    ] = None,
    random: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Make videos of N random episodes; see --seed.")
    ] = None,
    episode: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Make videos of this episode; repeatable.")
    ] = None,
    number: Annotated[int, typer.Option(metavar="N", min=1, help="The number of episodes with --failed.")] = SOME,
    view: Annotated[str, typer.Option(metavar="VIEWS", help="Comma-separated views: bev, ego, obs.")] = "ego",
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The folder for videos (RUN/videos).")] = None,
    size: Annotated[str, typer.Option(metavar="WxH", help="The size in pixels, even numbers.")] = "1280x720",
    max_steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="The maximum number of steps of each video.")
    ] = LONGEST,
    speed_up: Annotated[float, typer.Option(metavar="X", help="The playback speed.")] = 1.0,
    agent: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The number of the agent to follow (the worst ego).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of --random.")] = 0,
    json: JsonFlag = False,
) -> int:
    """Make videos of a run's episodes from their traces; the policy is not needed.

    Views: bev shows the whole map, ego the surroundings of one agent, obs the observations of its policy.
    """
    from roadworthy.config import parse
    from roadworthy.evaluation.recorded import open_run
    from roadworthy.record import Run
    from roadworthy.render.config import RenderConfig
    from roadworthy.render.run_videos import record_videos

    asked = {"failed": failed, "worst": worst, "first": first, "random": random, "episode": episode}
    given = [name for name, value in asked.items() if value]
    if len(given) != 1:
        options = f"{' and '.join(f'--{name}' for name in given)} were given" if given else "none was given"
        raise UsageError(
            f"which episodes? {options}; give one of --failed, --worst N, --first N, --random N, --episode ID"
        )
    run = Run(folder)
    wanted: dict[str, Any] = {
        "choose": tuple(episode) if episode else given[0],
        "views": tuple(name.strip() for name in view.split(",")),
        "max_steps": max_steps,
        "size": _size(size),
        "speed_up": speed_up,
        "seed": seed,
    }
    wanted |= {} if episode else {"episodes": worst or first or random or number}
    wanted |= {} if agent is None else {"agent": agent}
    config = parse(wanted, RenderConfig, "the command line")
    if episode:
        _require_episodes(run, episode)
    with progress("filming") as report:
        videos = record_videos(run, config, open_run(run).env, folder=out, progress=report)
    _tell(run, config, videos, json)
    return 0 if all(video.path for video in videos) else 1


def _size(text: str) -> tuple[int, ...]:
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.isdecimal() for side in sides):
        raise UsageError(f"--size is {text!r}, expected width x height in pixels, as in 1920x1080")
    return tuple(int(side) for side in sides)


def _require_episodes(run: Run, ids: list[str]) -> None:
    from roadworthy.plugins import nearest

    planned = run.ledger["episode_id"].to_pylist()
    for id in ids:
        if id not in planned:
            some = (
                nearest(id, planned)
                if len(planned) <= SOME
                else f"it has {len(planned)}, such as {', '.join(planned[:3])}"
            )
            raise UsageError(f"{run.folder}: the run has no episode {id!r}; {some}")


def _tell(run: Run, config: RenderConfig, videos: list[Video], is_json: bool) -> None:
    made = [video for video in videos if video.path is not None]
    if is_json:
        rows = [
            {
                "episode_id": video.episode_id,
                "view": video.view,
                "path": str(video.path) if video.path else None,
                "error": video.error,
                "frames": video.frames,
            }
            for video in videos
        ]
        tell_json({"run": str(run.folder), "videos": rows})
    else:
        for video in made:
            tell(str(video.path))
        if not videos:
            note("no episode failed" if config.choose == "failed" else "no episode has ended")
    for video in videos:
        if video.error:
            say_error(f"{video.episode_id or 'the choice of episodes'}, {video.view or 'all views'}: {video.error}")
