"""Draw docs/pictures/behaviors: each behavior class at the exam's start, at its event and at its end.

    python -m tools.behavior_pictures [FOLDER]

The scenarios are generated (seed 42, the first of each class), and drawn by the project's own renderer.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from roadworthy.render.sheet import Tile, contact_sheet
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.exams import Situation, situation_of
from roadworthy.scenario.exams.encounters import crossing_pedestrians, parked_in_the_way
from roadworthy.scenario.exams.junctions import recorded_turn, yielded_to
from roadworthy.scenario.exams.lanes import cutting_in, recorded_change
from roadworthy.scenario.exams.pace import HARD_STOP_END_MPS, braking_leader
from roadworthy.scenario.generate.config import EXAM_STEPS
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.schema import Scenario

SEED = 42
WIDTH_PX = 960
WIDTH_M = 80.0
COLORS = 128
FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "behaviors"


def event(behavior: str, situation: Situation) -> int:
    """Return the frame that shows the event after which the class is named."""
    recorded, frames = situation.recorded, len(situation.recorded.car)
    if behavior == "hard_stop":
        leader = recorded.others[braking_leader(situation)]
        return int(np.argmax(leader.speed < HARD_STOP_END_MPS))
    if behavior == "stop_and_go":
        return int(np.argmin(recorded.car.speed[10:])) + 10
    if behavior in ("lane_change", "merge"):
        change = recorded_change(situation, leaves_ending=behavior == "merge")
        return frames // 2 if change is None else change.frame
    if behavior == "cut_in":
        return cutting_in(situation)[1]
    if behavior == "roundabout":
        lanes = recorded.places.lane
        return int(np.median(np.flatnonzero((lanes >= 0) & situation.network.is_ring[lanes])))
    if behavior == "highway_straight":
        return frames // 2
    if behavior == "protected_left":
        turn = recorded_turn(situation, 1.0)
        return frames // 2 if turn is None else (turn.first + turn.end) // 2
    if behavior.startswith("unprotected"):
        turn = recorded_turn(situation, 1.0 if behavior.endswith("left") else -1.0)
        agents = [] if turn is None else yielded_to(situation, turn)
    else:
        agents = crossing_pedestrians(situation) or parked_in_the_way(situation)
    car = recorded.car
    away = [
        np.where(o.present, np.hypot(o.x - car.x, o.y - car.y), np.inf) for o in (recorded.others[n] for n in agents)
    ]
    return int(np.argmin(np.min(away, axis=0)))


def tiles(behavior: str, scenario: Scenario) -> list[Tile]:
    """Return the exam's start, its event and its end."""
    start = scenario.current_step
    situation = situation_of(scenario, start)
    assert situation is not None
    end = start + len(situation.recorded.car) - 1
    middle = start + event(behavior, situation)
    return [
        Tile(f"{(step - start) * scenario.dt:.1f} s: {what}", scenario, step)
        for step, what in ((start, "the exam starts"), (middle, "the event"), (end, "the exam ends"))
    ]


def main(folder: Path = FOLDER) -> None:
    """Draw a strip of three pictures for every class."""
    folder.mkdir(parents=True, exist_ok=True)
    for behavior in BEHAVIORS:
        scenario = generate_scenario(SEED, behavior, 0, EXAM_STEPS)
        picture = contact_sheet(tiles(behavior, scenario), columns=3, width=WIDTH_PX, tile_width_m=WIDTH_M)
        path = folder / f"{behavior}.png"
        Pillow.fromarray(picture).quantize(COLORS, dither=Pillow.Dither.NONE).save(path, optimize=True)
        print(path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
