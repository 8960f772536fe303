"""`roadworthy scenarios sheet`: draw a picture with a tile for every behavior class of a pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.files import PackPath, make_folder, require_suffix
from roadworthy.cli.output import examples, tell
from roadworthy.errors import UsageError

if TYPE_CHECKING:
    from roadworthy.render.sheet import Tile
    from roadworthy.scenario.pack import Pack

EXAMPLES = examples(
    "roadworthy scenarios sheet town.pack -o sheet.png",
    "roadworthy scenarios sheet town.pack -o sheet.png --nth 3 --columns 3",
)


def sheet(
    pack: PackPath,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="PNG", help="The picture to write.", callback=require_suffix(".png")),
    ],
    nth: Annotated[int, typer.Option(metavar="N", min=0, help="Which scenario of each class to draw, from 0.")] = 0,
    columns: Annotated[int, typer.Option(metavar="N", min=1, max=12, help="Number of tiles side by side.")] = 4,
    width: Annotated[int, typer.Option(metavar="PX", min=400, max=8000, help="Width of the picture.")] = 1600,
) -> None:
    """Draw a picture with a tile for every behavior class of a pack."""
    from roadworthy.render.birdview import save_png
    from roadworthy.render.sheet import contact_sheet
    from roadworthy.scenario.pack import Pack

    with Pack(pack) as opened:
        tiles = _tiles(opened, nth)
    if not tiles:
        raise UsageError(f"{pack}: no scenario has a tag, so there is no class to draw; try: scenarios show")
    save_png(make_folder(output), contact_sheet(tiles, columns, width))
    tell(str(output))


def _tiles(pack: Pack, nth: int) -> list[Tile]:
    """Return a tile for each class: the built-in classes in their order, then other tags by name."""
    from roadworthy.render.sheet import Tile
    from roadworthy.scenario.detect import BEHAVIORS

    tags = [tag for tag in BEHAVIORS if tag in pack.tag_counts]
    tags += sorted(set(pack.tag_counts) - set(BEHAVIORS))
    return [Tile(tag.replace("_", " "), pack[pack.select(tag)[nth % pack.tag_counts[tag]]]) for tag in tags]
