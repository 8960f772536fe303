"""What tests of the simulator share."""

from __future__ import annotations

import pytest

from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack
from tests.sim.scenes import pack_of


@pytest.fixture(scope="session")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """One generated scenario of each of six classes."""
    scenarios = [generate_scenario(3, behavior, 0, 91) for behavior in BEHAVIORS[::2]]
    return pack_of(tmp_path_factory.mktemp("towns") / "towns.pack", *scenarios)
