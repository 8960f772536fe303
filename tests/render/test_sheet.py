"""Contact sheets show each scenario around its self-driving car."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.errors import UsageError
from roadworthy.render import LIGHT, Tile, contact_sheet
from roadworthy.render.sheet import key_step, tile_camera
from tests.render.town_square import build_scenario


@pytest.fixture(scope="module")
def scenario():
    return build_scenario()


def test_every_tile_shows_the_sdc(scenario):
    sheet = contact_sheet([Tile(f"number {i}", scenario) for i in range(5)], columns=3, width=900)
    assert sheet.shape[1] == 900
    is_sdc = (np.abs(sheet.astype(int) - LIGHT.sdc) < 3).all(axis=2)
    height = sheet.shape[0] // 2
    seen = [is_sdc[row * height :][:height, column * 300 :][:, :300].any() for row in range(2) for column in range(3)]
    assert seen == [True] * 5 + [False]


def test_titles_are_above_their_tiles(scenario):
    with_title, without = (contact_sheet([Tile(title, scenario)], 1, 400) for title in ("hard stop", ""))
    rows = np.flatnonzero((with_title != without).any(axis=(1, 2)))
    assert rows.min() > 0
    assert rows.max() < 60


def test_the_sdc_is_in_view_at_the_step_shown(scenario):
    size = (385, 289)
    for step in (0, 45, 90):
        x, y = tile_camera(scenario, step, size, 90.0).to_pixels(scenario.positions[scenario.sdc, step, :2])
        assert 0.1 * size[0] < x < 0.9 * size[0]
        assert 0.1 * size[1] < y < 0.9 * size[1]


def test_the_telling_step_is_where_the_sdc_brakes(scenario):
    velocities = np.zeros_like(scenario.velocities)
    velocities[scenario.sdc, :60, 0] = 15.0
    assert 55 <= key_step(replace(scenario, velocities=velocities)) <= 65


def test_a_scenario_without_an_sdc_is_shown_whole(scenario):
    nobody = replace(scenario, sdc=-1)
    assert key_step(nobody) == scenario.current_step
    assert contact_sheet([Tile("map", nobody)], 1, 300).shape[1] == 300


def test_an_empty_sheet_is_refused():
    with pytest.raises(UsageError, match="0 tiles"):
        contact_sheet([])
