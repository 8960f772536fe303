"""Generation of scenarios: each stage on one core, and a whole pack on all cores."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.runner import Measurements, Sizes
from roadworthy.scenario.detect import BEHAVIORS, detect
from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.generate.config import DEFAULT_STEPS
from roadworthy.scenario.generate.pack import generate_pack
from roadworthy.scenario.generate.recording import cut, record
from roadworthy.scenario.generate.scenarios import SETTLING_STEPS, build_place
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.setups import SETUPS
from roadworthy.scenario.generate.traffic.simulate import DT
from roadworthy.scenario.pack import Pack, encode_map, encode_scenario
from roadworthy.scenario.validate import faults


def generate(found: Measurements, sizes: Sizes) -> None:
    """Time the stages of a scenario, then a pack."""
    for number in range(-1, sizes["repeats"]):  # the first one compiles
        for behavior in BEHAVIORS:
            stages = Measurements() if number < 0 else found
            _one(stages, behavior, number + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "town.pack"
        with found.stage("pack"):
            generate_pack(GenerateConfig(count=sizes["scenarios"], seed=7), path)
        found.figures["bytes"] = path.stat().st_size
        with Pack(path) as pack:
            found.figures["maps"] = pack.map_count
            found.figures["agents"] = sum(pack[i].agent_count for i in range(len(pack)))


def _one(found: Measurements, behavior: str, number: int) -> None:
    """Run every stage once; the time does not depend on whether the behavior occurs."""
    with found.stage("place"):
        place = build_place(7, behavior, number)
    rng = np.random.default_rng(number)
    scene = Scene(place.network, place.layout, rng, SETTLING_STEPS + DEFAULT_STEPS + 96, DT)
    with found.stage("populate"):
        SETUPS[behavior].populate(scene)
    with found.stage("record"):
        recording = record(scene)
    with found.stage("cut"):
        scenario = cut(recording, place.road_map, SETTLING_STEPS, DEFAULT_STEPS, id="town", tags=(behavior,))
    with found.stage("detect"):
        detect(scenario)
    with found.stage("validate"):
        faults(scenario)
    with found.stage("encode scenario"):
        encode_scenario(scenario)
    with found.stage("encode map"):
        encode_map(place.road_map)
