"""A pack that the tests of this folder share."""

from __future__ import annotations

import pytest

from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack
from tests.sim.scenes import pack_of


@pytest.fixture(scope="session")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Two generated towns with lights and traffic."""
    return pack_of(
        tmp_path_factory.mktemp("towns") / "towns.pack",
        *(generate_scenario(3, b, 0, 91) for b in ("protected_left", "merge")),
    )
