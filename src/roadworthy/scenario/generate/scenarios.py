"""Generate a scenario from (seed, class, index): set up a scene, simulate, detect, validate, and retry if needed.

Recordings of EXAM_STEPS or more also must qualify for the exam of their class (scenario/exams).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from roadworthy.errors import ConfigError, GenerationError
from roadworthy.scenario.detect import BEHAVIORS, DETECTORS, Tracks, detect
from roadworthy.scenario.exams import disqualification, situation_of
from roadworthy.scenario.generate.assemble import assemble
from roadworthy.scenario.generate.config import DEFAULT_STEPS, EXAM_STEPS, GenerateConfig
from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.recording import Recording, cut, record
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.setups import SETUPS
from roadworthy.scenario.generate.traffic.simulate import DT
from roadworthy.scenario.generate.traffic.tables import Layout, lay_out
from roadworthy.scenario.schema import RoadMap, Scenario
from roadworthy.scenario.validate import GENERATED, faults

SCENARIOS_PER_PLACE = 5
SETTLING_STEPS = 8  # before the first window, to remove effects of the initial placement
SEARCH_STEPS = 96  # range of the first step of the window
STRIDE = 6
ATTEMPTS_TO_BUILD = 200
ATTEMPTS_PER_PLACE = 12
PLACES_PER_SCENARIO = 12
WINDOWS_PER_RECORDING = 3
WINDOWS_PER_EXAM = 6

_NETWORK, _TRAFFIC = 0, 1  # purposes of random streams


@dataclass(frozen=True, eq=False)
class Place:
    """A road network in the forms that scenes, traffic and scenarios need."""

    network: Network
    layout: Layout
    road_map: RoadMap


def build_place(seed: int, behavior: str, number: int) -> Place:
    """Return the place with this number for a behavior class."""
    for attempt in range(ATTEMPTS_TO_BUILD):
        rng = np.random.default_rng([seed, BEHAVIORS.index(behavior), _NETWORK, number, attempt])
        try:
            network = SETUPS[behavior].build(rng)
            return Place(network, lay_out(network), assemble(network))
        except GenerationError:
            continue
    raise GenerationError(f"no road network for {behavior!r} was found with seed {seed}, number {number}")


class ScenarioGenerator:
    """A generator of scenarios of one class and seed, which caches its last place."""

    def __init__(self, seed: int, behavior: str, steps: int = DEFAULT_STEPS) -> None:
        self.seed, self.behavior, self.steps = seed, behavior, steps
        self._place: tuple[int, Place] | None = None

    def scenario(self, index: int) -> Scenario:
        """Return the scenario with an index. Adjacent indices share a place, unless the behavior cannot occur there."""
        for change in range(PLACES_PER_SCENARIO):
            # Further places have numbers such that no two scenarios share one.
            shared = index // SCENARIOS_PER_PLACE
            place = self._at(shared if change == 0 else -1 - index * PLACES_PER_SCENARIO - change)
            for attempt in range(ATTEMPTS_PER_PLACE):
                key = [self.seed, BEHAVIORS.index(self.behavior), _TRAFFIC, index, change, attempt]
                found = self._try(place, np.random.default_rng(key), f"{self.seed}-{self.behavior}-{index:04d}")
                if found is not None:
                    return found
        raise GenerationError(
            f"no scenario of class {self.behavior!r} could be generated with seed {self.seed}, index {index}, "
            f"in {PLACES_PER_SCENARIO * ATTEMPTS_PER_PLACE} attempts; try another seed"
        )

    def _at(self, number: int) -> Place:
        if self._place is None or self._place[0] != number:
            self._place = number, build_place(self.seed, self.behavior, 2 * number if number >= 0 else -2 * number - 1)
        return self._place[1]

    def _try(self, place: Place, rng: np.random.Generator, id: str) -> Scenario | None:
        scene = Scene(
            place.network, place.layout, rng, SETTLING_STEPS + SEARCH_STEPS + self.steps, DT, is_exam=self._is_exam
        )
        try:
            SETUPS[self.behavior].populate(scene)
        except GenerationError:
            return None
        recording = record(scene)
        shown = self._windows(recording, place.road_map, rng)
        for first in islice(shown, WINDOWS_PER_EXAM if self._is_exam else WINDOWS_PER_RECORDING):
            scenario = cut(recording, place.road_map, first, self.steps, id=id, tags=(self.behavior,))
            if not self._qualifies(scenario):
                continue
            if detect(scenario) == (self.behavior,) and not faults(scenario, GENERATED):
                return scenario
        return None

    @property
    def _is_exam(self) -> bool:
        return self.steps >= EXAM_STEPS

    def _qualifies(self, scenario: Scenario) -> bool:
        """Return whether a recording is too short for an exam, or qualifies for one."""
        return (
            not self._is_exam or disqualification(self.behavior, situation_of(scenario, scenario.current_step)) is None
        )

    def _windows(self, recording: Recording, road_map: RoadMap, rng: np.random.Generator) -> Iterator[int]:
        """Yield first steps of windows in which the car is present and shows the behavior, in random order."""
        there = recording.motion["present"][recording.scene.sdc]
        whole = cut(recording, road_map, 0, recording.scene.steps)
        tracks = Tracks.of(whole)
        needed = min(self.steps, EXAM_STEPS)
        for first in rng.permutation(np.arange(SETTLING_STEPS, SETTLING_STEPS + SEARCH_STEPS, STRIDE)).tolist():
            if there[first : first + needed].all() and DETECTORS[self.behavior](
                tracks.window(first, first + self.steps)
            ):
                yield first


def generate_scenario(seed: int, behavior: str, index: int, steps: int = DEFAULT_STEPS) -> Scenario:
    """Return the scenario of a class with an index, from 0. Equal arguments give equal bytes."""
    GenerateConfig(seed=seed, steps=steps, classes=(behavior,))  # raises ConfigError for wrong arguments
    if index < 0:
        raise ConfigError(f"index is {index}, expected 0 or more")
    return ScenarioGenerator(seed, behavior, steps).scenario(index)
