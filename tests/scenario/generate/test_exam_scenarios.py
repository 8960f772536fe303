"""Scenarios that are long enough for an exam: each qualifies for that of its class, and is valid."""

from __future__ import annotations

import pytest

from roadworthy.scenario.detect import BEHAVIORS, detect
from roadworthy.scenario.exams import disqualification, situation_of
from roadworthy.scenario.generate.config import EXAM_STEPS
from roadworthy.scenario.generate.scenarios import ScenarioGenerator
from roadworthy.scenario.pack import encode_scenario
from roadworthy.scenario.validate import faults

CHUNKS = [
    pytest.param(3, range(2), id="3"),
    *(pytest.param(seed, range(20), id=f"{seed}:long", marks=pytest.mark.long) for seed in (1100, 1101)),
]


@pytest.mark.row("CL-3")
@pytest.mark.row("SCEN-4")
@pytest.mark.parametrize(("seed", "indices"), CHUNKS)
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_every_long_scenario_qualifies_for_the_exam_of_its_class(behavior: str, seed: int, indices: range) -> None:
    generator = ScenarioGenerator(seed, behavior, EXAM_STEPS)
    for index in indices:
        scenario = generator.scenario(index)
        where = f"generate_scenario({seed}, {behavior!r}, {index}, {EXAM_STEPS})"
        situation = situation_of(scenario, scenario.current_step)
        assert situation is not None, where
        assert disqualification(behavior, situation) is None, where
        assert detect(scenario) == (behavior,), where
        assert faults(scenario) == [], where
        assert scenario.steps == EXAM_STEPS, where
        assert scenario.valid[scenario.sdc].all(), where


def test_a_long_scenario_is_a_pure_function_of_seed_class_and_index() -> None:
    first, second = (ScenarioGenerator(3, "cut_in", EXAM_STEPS).scenario(1) for _ in range(2))
    assert encode_scenario(first) == encode_scenario(second)
