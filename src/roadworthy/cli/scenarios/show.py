"""`roadworthy scenarios show`: draw one scenario as a picture, an animation or a video."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roadworthy.cli.files import PackPath, chosen_scenario, make_folder, require_suffix
from roadworthy.cli.output import examples, tell
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.render.raster import Image
    from roadworthy.scenario.schema import Scenario

PICTURE_SIZE = (1280, 960)
GIF_SIZE = (640, 480)  # GIF compresses badly: larger ones are too big to mail

View = Literal["bev", "ego"]

EXAMPLES = examples(
    "roadworthy scenarios show town.pack 0 -o town.png",
    "roadworthy scenarios show town.pack 0 -o town.png --view bev --step 40",
    "roadworthy scenarios show town.pack 0 --gif town.gif --mp4 town.mp4",
)


def show(
    pack: PackPath,
    scenario: Annotated[str, typer.Argument(metavar="ID", help="The scenario's id or number.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PNG", help="Write a picture of one step.", callback=require_suffix(".png")
        ),
    ] = None,
    gif: Annotated[
        Path | None,
        typer.Option(metavar="GIF", help="Write an animation of all steps.", callback=require_suffix(".gif")),
    ] = None,
    mp4: Annotated[
        Path | None, typer.Option(metavar="MP4", help="Write a video of all steps.", callback=require_suffix(".mp4"))
    ] = None,
    step: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The picture's step (the last of the history).")
    ] = None,
    view: Annotated[
        View | None,
        typer.Option(
            help="The whole map (bev) or the surroundings of the self-driving car (ego; default if there is a car)."
        ),
    ] = None,
) -> None:
    """Draw one scenario as a picture, an animation or a video."""
    if output is None and gif is None and mp4 is None:
        raise UsageError("nothing to draw: give at least one of -o FILE.png, --gif FILE.gif, --mp4 FILE.mp4")

    from roadworthy.render.birdview import BirdView, save_png
    from roadworthy.render.video import write_gif, write_mp4
    from roadworthy.scenario.pack import Pack

    with Pack(pack) as opened:
        chosen = chosen_scenario(opened, scenario)
    fps = 1.0 / chosen.dt
    view = view or _first_view(chosen)
    if output is not None:
        bird = BirdView(chosen)
        at = chosen.current_step if step is None else step
        save_png(make_folder(output), bird.frame(at, bird.camera(view, at, PICTURE_SIZE)))
        tell(str(output))
    if gif is not None:
        write_gif(make_folder(gif), _frames(chosen, view, GIF_SIZE), fps)
        tell(str(gif))
    if mp4 is not None:
        write_mp4(make_folder(mp4), _frames(chosen, view, PICTURE_SIZE), fps)
        tell(str(mp4))


def _first_view(scenario: Scenario) -> View:
    """Return the view with what a person looks for first."""
    return "ego" if scenario.sdc >= 0 and scenario.valid[scenario.sdc].any() else "bev"


def _frames(scenario: Scenario, view: View, size: tuple[int, int]) -> Iterator[Image]:
    from roadworthy.render.birdview import animate

    with progress("drawing frames") as report:
        for done, image in enumerate(animate(scenario, view, size), start=1):
            yield image
            report(done, scenario.steps)
