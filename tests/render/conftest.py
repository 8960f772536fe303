"""Fixtures for tests of videos."""

from __future__ import annotations

import pytest

from roadworthy.record import Run
from roadworthy.render.views import EpisodeScene
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack
from tests.render.drives import TRIALS, VEHICLES, record_run, story_of
from tests.sim.scenes import pack_of


@pytest.fixture(scope="session")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Four generated towns with lights, people and parked cars."""
    behaviors = ("protected_left", "hard_stop", "pedestrian_crossing", "nudge_parked")
    scenarios = [generate_scenario(3, behavior, 0, 91) for behavior in behaviors]
    return pack_of(tmp_path_factory.mktemp("towns") / "towns.pack", *scenarios)


@pytest.fixture(scope="session")
def scene(towns: Pack) -> EpisodeScene:
    """One car, three trials of fourteen steps."""
    return story_of(towns, TRIALS)


@pytest.fixture(scope="session")
def run(towns: Pack, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Eight episodes with up to eight egos each."""
    return record_run(tmp_path_factory.mktemp("runs"), towns, VEHICLES, replicates=2)
