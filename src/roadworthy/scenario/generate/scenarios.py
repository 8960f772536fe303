"""One scenario as a pure function of (seed, class, index): stage, record, detect, validate, else try again.

Recordings of EXAM_STEPS or more also have to qualify for the exam of their class (scenario/exams).
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
from roadworthy.scenario.generate.setups import SETUPS
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.generate.traffic.simulate import DT
from roadworthy.scenario.generate.traffic.tables import Layout, lay_out
from roadworthy.scenario.schema import RoadMap, Scenario
from roadworthy.scenario.validate import GENERATED, faults

SCENARIOS_PER_PLACE = 5
SETTLING_STEPS = 8  # before the first window, so that nothing is left of how road users were placed
SEARCH_STEPS = 96  # how far the window may be moved
STRIDE = 6
ATTEMPTS_TO_BUILD = 200
ATTEMPTS_PER_PLACE = 12
PLACES_PER_SCENARIO = 12
WINDOWS_PER_RECORDING = 3
WINDOWS_PER_EXAM = 6

_NETWORK, _TRAFFIC = 0, 1  # purposes of random streams


@dataclass(frozen=True, eq=False)
class Place:
    """A road network in the forms that staging, traffic and scenarios need."""

    network: Network
    layout: Layout
    road_map: RoadMap


def build_place(seed: int, behavior: str, number: int) -> Place:
    """The place with a number for a behavior class."""
    for attempt in range(ATTEMPTS_TO_BUILD):
        rng = np.random.default_rng([seed, BEHAVIORS.index(behavior), _NETWORK, number, attempt])
        try:
            network = SETUPS[behavior].build(rng)
            return Place(network, lay_out(network), assemble(network))
        except GenerationError:
            continue
    raise GenerationError(f"no road network for {behavior!r} was found with seed {seed}, number {number}")


class ScenarioGenerator:
    """Makes scenarios of one class and seed; keeps the place that it used last."""

    def __init__(self, seed: int, behavior: str, steps: int = DEFAULT_STEPS) -> None:
        self.seed, self.behavior, self.steps = seed, behavior, steps
        self._place: tuple[int, Place] | None = None

    def scenario(self, index: int) -> Scenario:
        """The scenario with an index. Neighboring indices share their place unless nothing can happen there."""
        for change in range(PLACES_PER_SCENARIO):
            # Places beyond the shared ones are numbered so that no two scenarios meet in the same one.
            shared = index // SCENARIOS_PER_PLACE
            place = self._at(shared if change == 0 else -1 - index * PLACES_PER_SCENARIO - change)
            for attempt in range(ATTEMPTS_PER_PLACE):
                key = [self.seed, BEHAVIORS.index(self.behavior), _TRAFFIC, index, change, attempt]
                found = self._try(place, np.random.default_rng(key), f"{self.seed}-{self.behavior}-{index:04d}")
                if found is not None:
                    return found
        raise GenerationError(
            f"no scenario of class {self.behavior!r} came about with seed {self.seed}, index {index}, "
            f"in {PLACES_PER_SCENARIO * ATTEMPTS_PER_PLACE} attempts; try another seed"
        )

    def _at(self, number: int) -> Place:
        if self._place is None or self._place[0] != number:
            self._place = number, build_place(self.seed, self.behavior, 2 * number if number >= 0 else -2 * number - 1)
        return self._place[1]

    def _try(self, place: Place, rng: np.random.Generator, id: str) -> Scenario | None:
        stage = Stage(
            place.network, place.layout, rng, SETTLING_STEPS + SEARCH_STEPS + self.steps, DT, is_exam=self._is_exam
        )
        try:
            SETUPS[self.behavior].cast(stage)
        except GenerationError:
            return None
        recording = record(stage)
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
        """Whether a recording is long enough for no exam, or qualifies for one."""
        return (
            not self._is_exam or disqualification(self.behavior, situation_of(scenario, scenario.current_step)) is None
        )

    def _windows(self, recording: Recording, road_map: RoadMap, rng: np.random.Generator) -> Iterator[int]:
        """First steps of windows in which the self-driving car is there and shows the behavior, in random order."""
        there = recording.motion["present"][recording.stage.sdc]
        whole = cut(recording, road_map, 0, recording.stage.steps)
        tracks = Tracks.of(whole)
        needed = min(self.steps, EXAM_STEPS)
        for first in rng.permutation(np.arange(SETTLING_STEPS, SETTLING_STEPS + SEARCH_STEPS, STRIDE)).tolist():
            if there[first : first + needed].all() and DETECTORS[self.behavior](
                tracks.window(first, first + self.steps)
            ):
                yield first


def generate_scenario(seed: int, behavior: str, index: int, steps: int = DEFAULT_STEPS) -> Scenario:
    """The scenario of a class with an index, from 0: the same bytes every time."""
    GenerateConfig(seed=seed, steps=steps, classes=(behavior,))  # raises what is wrong with these
    if index < 0:
        raise ConfigError(f"index is {index}, expected 0 or more")
    return ScenarioGenerator(seed, behavior, steps).scenario(index)
