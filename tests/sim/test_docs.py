"""The simulator's document says what the code says."""

from __future__ import annotations

from roadworthy.sim.rules.episode_figures import EPISODE_FIGURES
from tools.settings import SIMULATOR


def test_every_setting_is_documented_with_its_default() -> None:
    assert SIMULATOR.path.read_text() == SIMULATOR.written(), "run python -m tools.settings"


def test_every_figure_is_documented() -> None:
    text = SIMULATOR.path.read_text()
    for name in EPISODE_FIGURES:
        assert name in text, name
