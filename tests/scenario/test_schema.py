"""The content of a scenario, and its checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import ScenarioError
from roadworthy.scenario.schema import FeatureKind, LightState
from tests.scenario.example import example_map, example_scenario, map_of, pairs


@pytest.mark.row("SCEN-1")
def test_a_sound_scenario_has_no_faults() -> None:
    scenario = example_scenario()
    assert list(scenario.check()) == []
    scenario.require_sound()


@pytest.mark.row("SCEN-1")
def test_features_are_found_by_kind() -> None:
    road_map = example_map()
    assert road_map.lane_count == 4
    assert list(road_map.features(FeatureKind.LANE)) == [0, 1, 2, 3]
    assert list(road_map.features(FeatureKind.ROAD_EDGE)) == [5, 6]
    assert list(road_map.features(FeatureKind.SPEED_BUMP)) == []
    assert road_map.polyline(8).shape == (1, 3)
    assert road_map.predecessors.tolist() == [[1, 0], [3, 2]]


def test_an_empty_map_is_sound() -> None:
    empty = map_of([])
    assert list(empty.check()) == []
    assert (empty.feature_count, empty.lane_count) == (0, 0)


def test_a_scenario_knows_its_lengths() -> None:
    scenario = example_scenario(steps=20)
    assert (scenario.agent_count, scenario.steps) == (3, 20)
    assert scenario.light_states[0, [0, -1]].tolist() == [LightState.STOP, LightState.GO]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"starts": np.array([0, 3], np.int32)}, "2 starts"),
        ({"points": np.full_like(example_map().points, np.nan)}, "points contain NaN"),
        ({"points": example_map().points[:-1]}, "starts don't divide the points"),
        ({"kinds": example_map().kinds[::-1].copy()}, "not in the order of their kinds"),
        ({"speed_limits": np.zeros(3, np.float32)}, "4 lanes, but 3 speed_limits"),
        ({"successors": pairs((0, 4))}, "successors name lanes outside 0..3"),
        ({"left_neighbors": pairs((-1, 0))}, "left_neighbors name lanes outside 0..3"),
        ({"stop_signs": pairs((7, 0))}, "no stop signs"),
        ({"stop_signs": pairs((8, 9))}, "stop_signs name lanes outside 0..3"),
        ({"stop_line_lanes": np.zeros(1, np.int32)}, "2 stop lines, but 1 lanes"),
    ],
)
def test_a_fault_of_a_map_is_named(changes: dict[str, Any], words: str) -> None:
    assert any(words in fault for fault in replace(example_map(), **changes).check())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"headings": np.zeros((3, 90), np.float32)}, "headings has shape (3, 90), expected (3, 91)"),
        ({"positions": np.full((3, 91, 3), np.inf, np.float32)}, "positions contain NaN or infinity"),
        ({"sdc": 3}, "the self-driving car is agent 3, but there are 3 agents"),
        ({"predict": np.array([3], np.int32)}, "predict names agents outside 0..2"),
        ({"light_lanes": np.array([4], np.int32)}, "light_lanes name lanes outside 0..3"),
        ({"current_step": 91}, "current_step is 91, but there are 91 steps"),
        ({"dt": 0.0}, "dt is 0.0"),
        ({"agent_types": np.array([1, 2, 4], np.uint8)}, "agent_types hold 4, expected 0..3"),
        ({"light_states": np.full((1, 91), 9, np.uint8)}, "light_states hold 9, expected 0..8"),
        ({"dt": float("nan")}, "dt is nan"),
    ],
)
def test_a_fault_of_a_scenario_is_named(changes: dict[str, Any], words: str) -> None:
    scenario = replace(example_scenario(), **changes)
    assert any(words in fault for fault in scenario.check())
    with pytest.raises(ScenarioError, match="scenario 'example': "):
        scenario.require_sound()
