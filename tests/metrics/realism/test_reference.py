"""Agreement with the challenge's own implementation, on every figure."""

from __future__ import annotations

import pytest

from roadworthy.metrics.realism import CHALLENGES, score_rollouts
from tests.metrics.realism.reference import FIGURES, load_rollouts, load_scenario

TOLERANCE = 1e-4  # what the requirement asks for


@pytest.mark.row("REAL-1")
@pytest.mark.parametrize("year", ["2025", "2024"])
@pytest.mark.parametrize("name", ["recording", "noise"])
@pytest.mark.parametrize("origin", [(0.0, 0.0, 0.0), (2134.0, -1287.0, 14.0), (-731.25, 1.0625, 0.0)], ids=str)
def test_every_figure_agrees_with_the_reference_in_any_frame_of_the_map(
    origin: tuple[float, float, float], name: str, year: str
) -> None:
    figures = score_rollouts(load_scenario(origin), load_rollouts(name), CHALLENGES[year]).plain()
    assert figures == pytest.approx(FIGURES[name][year], abs=TOLERANCE)
    assert set(figures) == set(FIGURES[name][year])
