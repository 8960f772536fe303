"""What tests of evaluation share: small packs, and the rows of a run in a form that can be compared."""

from __future__ import annotations

import pytest

from roadworthy.scenario.pack import Pack
from tests.sim.scenes import Actor, pack_of, scene


@pytest.fixture(scope="session")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Fifty short scenes of one car each: half of them start at 10 m/s, half at 8."""
    scenes = [scene(Actor(5.0 + k, speed=10.0 - 2.0 * (k % 2)), id=f"coin-{k:02}", steps=31) for k in range(50)]
    return pack_of(tmp_path_factory.mktemp("coins") / "coins.pack", *scenes)


@pytest.fixture(scope="session")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Twelve scenes with two to four cars, of which some are slow enough to be run into."""
    scenes = []
    for k in range(12):
        cars = [Actor(10.0 + 14.0 * a, y=-1.75 if a % 2 else 1.75, speed=6.0 + k / 4 - a) for a in range(2 + k % 3)]
        scenes.append(scene(*cars, id=f"street-{k:02}", steps=41))
    return pack_of(tmp_path_factory.mktemp("streets") / "streets.pack", *scenes)
