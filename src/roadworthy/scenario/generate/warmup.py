"""Compiling ahead: each process compiles half of the kernels, waits for the others, and finds the rest in the cache.

Where nothing is compiled yet, every process would else compile everything, all at the same time.
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
from roadworthy.scenario.generate.signals import light_states
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.generate.traffic.simulate import DT, MOTION
from roadworthy.scenario.generate.traffic.tables import road_tables
from roadworthy.scenario.processes import end_with_parent
from roadworthy.scenario.validate import GENERATED, faults

STEPS = 12
LONGEST_WAIT_S = 120.0


def start_process(turn: Synchronized[int], together: Barrier) -> None:
    """What a new process does first. `turn` counts the processes, `together` is where they wait for each other."""
    end_with_parent()
    with turn.get_lock():
        number = turn.value
        turn.value += 1
    stage, place = _one_car()
    if number % 2 == 0:
        record(stage)
    else:
        _judge(stage, place)
    with suppress(BrokenBarrierError):  # one that is late or gone keeps nobody from working
        together.wait(LONGEST_WAIT_S)


def _one_car() -> tuple[Stage, Place]:
    place = build_place(0, BEHAVIORS[-1], 0)
    stage = Stage(place.network, place.layout, np.random.default_rng(0), STEPS, DT)
    stage.sdc = stage.put_car(0, 5.0)
    return stage, place


def _judge(stage: Stage, place: Place) -> None:
    """Show detectors and validation a car that stands."""
    tables = road_tables(place.layout, [], [])
    motion = np.zeros((1, STEPS), MOTION)
    motion["present"] = True
    start = place.network.lanes[0].start
    motion["x"], motion["y"], motion["heading"] = start.x, start.y, start.heading
    lights = light_states(place.network, tables, stage.offsets, STEPS, DT)
    scenario = cut(Recording(stage, tables, motion, lights), place.road_map, 0, STEPS)
    detect(scenario)
    faults(scenario, GENERATED)
