"""Compile in advance: each process compiles half of the kernels, waits for the others, and loads the rest.

Without compiled kernels in the cache, all processes would otherwise compile everything at the same time.
"""

from __future__ import annotations

from contextlib import suppress
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError

import numpy as np

from roadworthy.scenario.detect import BEHAVIORS, detect
from roadworthy.scenario.generate.recording import Recording, cut, record
from roadworthy.scenario.generate.scenarios import Place, build_place
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.signals import light_states
from roadworthy.scenario.generate.traffic.simulate import DT, MOTION
from roadworthy.scenario.generate.traffic.tables import road_tables
from roadworthy.scenario.processes import end_with_parent
from roadworthy.scenario.validate import GENERATED, faults

STEPS = 12
LONGEST_WAIT_S = 120.0


def start_process(turn: Synchronized[int], together: Barrier) -> None:
    """Initialize a process. `turn` counts the processes, and they wait for each other at `together`."""
    end_with_parent()
    with turn.get_lock():
        number = turn.value
        turn.value += 1
    scene, place = _one_car()
    if number % 2 == 0:
        record(scene)
    else:
        _judge(scene, place)
    with suppress(BrokenBarrierError):  # a process that is late or gone must not stop the others
        together.wait(LONGEST_WAIT_S)


def _one_car() -> tuple[Scene, Place]:
    place = build_place(0, BEHAVIORS[-1], 0)
    scene = Scene(place.network, place.layout, np.random.default_rng(0), STEPS, DT)
    scene.sdc = scene.put_car(0, 5.0)
    return scene, place


def _judge(scene: Scene, place: Place) -> None:
    """Run detectors and validation on a standing car."""
    tables = road_tables(place.layout, [], [])
    motion = np.zeros((1, STEPS), MOTION)
    motion["present"] = True
    start = place.network.lanes[0].start
    motion["x"], motion["y"], motion["heading"] = start.x, start.y, start.heading
    lights = light_states(place.network, tables, scene.offsets, STEPS, DT)
    scenario = cut(Recording(scene, tables, motion, lights), place.road_map, 0, STEPS)
    detect(scenario)
    faults(scenario, GENERATED)
