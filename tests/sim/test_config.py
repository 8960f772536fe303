"""Deprecated settings of a simulation keep working."""

from __future__ import annotations

import pytest

from roadworthy.config import parse
from roadworthy.errors import DeprecatedNameWarning
from roadworthy.sim.config import SimConfig
from roadworthy.sim.layout import layout


def test_the_british_key_of_the_lane_center_reward_works_with_a_warning() -> None:
    with pytest.warns(DeprecatedNameWarning, match=r"reward\.lane_centre is deprecated; use reward\.lane_center"):
        config = parse({"reward": {"lane_centre": 0.5}}, SimConfig)
    assert config.reward.lane_center == 0.5


def test_observations_keep_the_feature_names_that_checkpoints_store() -> None:
    assert "conditioning.lane_centre_weight" in layout(SimConfig()).columns()
