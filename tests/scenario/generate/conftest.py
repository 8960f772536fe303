"""Fixtures of the generator's tests: a few dozen road networks, and hundreds for the long tests."""

from __future__ import annotations

import pytest

from roadworthy.scenario.detect import BEHAVIORS
from tests.scenario.generate.sites import Site, draw_site

EVERY_CLASS = len(BEHAVIORS)
CHUNK = EVERY_CLASS // 2


def _chunks() -> list[object]:
    """Return (seed, numbers) of the networks that a test gets at once: few enough that workers share them evenly."""
    few = [
        pytest.param((5, range(first, first + CHUNK)), id=f"5:{first}") for first in range(0, 3 * EVERY_CLASS, CHUNK)
    ]
    many = [
        pytest.param((seed, range(3 * EVERY_CLASS)), id=f"{seed}:long", marks=pytest.mark.long)
        for seed in range(100, 110)
    ]
    return [*few, *many]


# Scope "session", so that pytest runs the tests of the same networks one after another.
@pytest.fixture(scope="session", params=_chunks())
def sites(request: pytest.FixtureRequest) -> list[Site]:
    """Return half a dozen networks (three dozen in the long tests)."""
    seed, numbers = request.param
    return [draw_site(seed, number) for number in numbers]
