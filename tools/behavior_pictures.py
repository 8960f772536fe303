"""Draws docs/pictures/behaviors: each behavior class at the exam's start, at its event and in the end.

    python -m tools.behavior_pictures [FOLDER]

The scenarios are generated (seed 42, the first of each class), and drawn by the project's own renderer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image as Pillow

from roadworthy.render.sheet import Tile, contact_sheet, telling_step
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.exams import situation_of
from roadworthy.scenario.generate.config import EXAM_STEPS
from roadworthy.scenario.generate.producer import produce
from roadworthy.scenario.schema import Scenario

SEED = 42
WIDTH_PX = 960
WIDTH_M = 80.0
COLORS = 128
FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "behaviors"


def tiles(scenario: Scenario) -> list[Tile]:
    """Return the exam's start, the step that says most about the car's motion, and the exam's end."""
    start = scenario.current_step
    situation = situation_of(scenario, start)
    assert situation is not None
    end = start + len(situation.recorded.car) - 1
    event = min(max(telling_step(scenario), start + 10), end - 10)
    return [
        Tile(f"{(step - start) * scenario.dt:.1f} s: {what}", scenario, step)
        for step, what in ((start, "the exam starts"), (event, "the event"), (end, "the exam ends"))
    ]


def main(folder: Path = FOLDER) -> None:
    """Draw a strip of three pictures for every class."""
    folder.mkdir(parents=True, exist_ok=True)
    for behavior in BEHAVIORS:
        scenario = produce(SEED, behavior, 0, EXAM_STEPS)
        picture = contact_sheet(tiles(scenario), columns=3, width=WIDTH_PX, tile_width_m=WIDTH_M)
        path = folder / f"{behavior}.png"
        Pillow.fromarray(picture).quantize(COLORS, dither=Pillow.Dither.NONE).save(path, optimize=True)
        print(path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
