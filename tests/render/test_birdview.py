"""Objects have the right positions and colors in pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image as Pillow

from roadworthy.errors import UsageError
from roadworthy.render import DARK, LIGHT, BirdView, Camera, MapLayer, Show, animate, draw, save_png
from roadworthy.render.lights import lamp_color
from roadworthy.render.motion import parked_agents
from roadworthy.scenario.schema import AgentType, LightState
from tests.render.town_square import LANE, build_map, build_scenario

BARE = Show(trail_seconds=0.0, future=False, caption=False, legend=False, scale_bar=False)
FAR = (6000.0, -4000.0)
SDC, CAR, CYCLIST, PEDESTRIAN, PARKED, LATE = 0, 1, 4, 5, 7, 9


@pytest.fixture(scope="module")
def scenario():
    town = build_scenario()
    town.require_sound()
    return town


def pixel(image, camera, point):
    column, row = np.floor(camera.snapped().to_pixels(point)).astype(int)
    return tuple(image[row, column].tolist())


def place(scenario, agent, step, ahead=0.0):
    heading = scenario.headings[agent, step]
    return scenario.positions[agent, step, :2] + ahead * np.array([np.cos(heading), np.sin(heading)])


@pytest.mark.row("SCEN-5")
@pytest.mark.parametrize("offset", [(0.0, 0.0), FAR])
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_agents_are_drawn_where_they_are_in_the_color_of_their_kind(offset, theme):
    scenario, step = build_scenario(offset), 33
    camera = Camera((offset[0], offset[1]), 0.05, (3300, 2600))
    image = draw(scenario, step, camera, theme=theme, show=BARE)
    for agent, color in ((SDC, theme.sdc), (CAR, theme.vehicle), (PARKED, theme.parked)):
        assert pixel(image, camera, place(scenario, agent, step)) == color
    assert pixel(image, camera, place(scenario, CYCLIST, step, ahead=-0.5)) == theme.cyclist
    assert pixel(image, camera, place(scenario, PEDESTRIAN, step, ahead=-0.25)) == theme.pedestrian


def test_a_box_is_as_large_as_its_agent(scenario):
    lone = replace(scenario, valid=scenario.valid & (np.arange(scenario.agent_count) == CAR)[:, None])
    scale = 0.05
    camera = Camera(tuple(place(lone, CAR, 20).tolist()), scale, (200, 120))
    show_all = draw(lone, 20, camera, show=BARE)
    is_body = (show_all == LIGHT.vehicle).all(axis=2)
    columns, rows = np.flatnonzero(is_body.any(axis=0)), np.flatnonzero(is_body.any(axis=1))
    assert np.ptp(columns) * scale == pytest.approx(4.6, abs=2.5 * scale)
    assert np.ptp(rows) * scale == pytest.approx(1.9, abs=2.5 * scale)


def test_the_windshield_is_in_front(scenario):
    camera = Camera(tuple(place(scenario, CAR, 20).tolist()), 0.02, (400, 300))
    image = draw(scenario, 20, camera, show=BARE)
    front, back = (pixel(image, camera, place(scenario, CAR, 20, ahead)) for ahead in (0.8, -0.8))
    assert sum(front) < sum(LIGHT.vehicle)
    assert back == LIGHT.vehicle


def test_an_agent_that_is_not_there_is_not_drawn(scenario):
    absent = replace(scenario, valid=scenario.valid & (np.arange(scenario.agent_count) != LATE)[:, None])
    camera = BirdView(scenario).camera("bev", 0, (640, 480))
    show = Show(caption=False)
    for step, same in ((39, True), (40, False)):
        with_it, without = (draw(town, step, camera, show=show) for town in (scenario, absent))
        assert (with_it == without).all() == same
    origin = pixel(draw(scenario, 39, camera, show=BARE), camera, (0.0, 0.0))
    assert origin == LIGHT.road  # absent agents have zeros for a position


def test_only_vehicles_that_never_move_are_parked_and_never_the_sdc(scenario):
    assert np.flatnonzero(parked_agents(scenario)).tolist() == [7, 8]
    assert not parked_agents(replace(scenario, sdc=7))[7]


def test_the_road_lies_on_the_port_side_of_its_edges(scenario):
    camera = Camera((0.0, 0.0), 0.1, (1800, 1800))
    image = MapLayer(scenario.map, 0.1).background(camera.snapped())
    assert pixel(image, camera, (20.0, 0.6 * LANE)) == LIGHT.road
    assert pixel(image, camera, (40.0, 40.0)) == LIGHT.land
    assert pixel(image, camera, (45.0, 0.6)) == LIGHT.sidewalk  # inside the island
    assert pixel(image, camera, (20.0, 2 * LANE + 1.0)) == LIGHT.sidewalk


def test_a_map_without_closed_edges_shows_its_lanes_as_road():
    road_map = build_map(FAR, with_edges=False)
    camera = Camera((FAR[0], FAR[1]), 0.1, (1800, 1800))
    image = MapLayer(road_map, 0.1).background(camera.snapped())
    assert pixel(image, camera, (FAR[0] + 27.0, FAR[1] + 0.7 * LANE)) == LIGHT.road
    assert pixel(image, camera, (FAR[0] + 40.0, FAR[1] + 40.0)) == LIGHT.land


@pytest.mark.parametrize("state", list(LightState))
def test_a_lamp_has_the_color_of_its_state(scenario, state):
    one = replace(
        scenario,
        light_lanes=scenario.light_lanes[:1],
        light_stops=scenario.light_stops[:1],
        light_states=np.full((1, scenario.steps), state, np.uint8),
    )
    stop = one.light_stops[0, :2]
    camera = Camera(tuple(stop.tolist()), 0.02, (300, 300))
    image = draw(one, 0, camera, show=BARE)
    colors = {tuple(color) for color in image.reshape(-1, 3).tolist()}
    others = {LIGHT.red, LIGHT.amber, LIGHT.green, LIGHT.dark_lamp} - {lamp_color(state, LIGHT)}
    assert lamp_color(state, LIGHT) in colors
    assert not others & colors


def test_trails_are_behind_and_futures_ahead(scenario):
    step, camera = 30, Camera((-20.0, 0.0), 0.05, (2400, 800))
    plain = draw(scenario, step, camera, show=BARE)
    trail = draw(scenario, step, camera, show=replace(BARE, trail_seconds=2.0))
    future = draw(scenario, step, camera, show=replace(BARE, future=True))
    behind, ahead = place(scenario, CAR, step - 8), place(scenario, CAR, step + 12)
    assert pixel(trail, camera, behind) != pixel(plain, camera, behind)
    assert pixel(trail, camera, ahead) == pixel(plain, camera, ahead)
    assert pixel(future, camera, ahead) != pixel(plain, camera, ahead)
    assert pixel(future, camera, behind) == pixel(plain, camera, behind)


@pytest.mark.row("VID-1")
def test_the_ego_view_keeps_the_sdc_in_the_middle(scenario):
    lights = {name: getattr(scenario, name)[:0] for name in ("light_lanes", "light_stops", "light_states")}
    unlit = replace(scenario, **lights)  # lamps stand above cars
    frames = list(animate(unlit, "ego", (320, 240), width_m=40.0, show=BARE))
    assert len(frames) == scenario.steps
    assert all(tuple(frame[120, 160].tolist()) == LIGHT.sdc for frame in frames)


@pytest.mark.row("VID-1")
def test_the_whole_map_and_every_agent_are_in_the_bev_view(scenario):
    camera = BirdView(scenario).camera("bev", 0, (500, 300))
    points = np.concatenate([scenario.map.points[:, :2], scenario.positions[scenario.valid][:, :2]])
    pixels = camera.to_pixels(points)
    assert (pixels > 0).all()
    assert (pixels < [500, 300]).all()


def test_a_reused_view_draws_the_same_bytes_as_a_fresh_one(scenario):
    bird = BirdView(scenario)
    for step, view in ((0, "bev"), (50, "ego"), (51, "ego"), (90, "bev")):
        camera = bird.camera(view, step, (400, 300))
        assert (bird.frame(step, camera) == draw(scenario, step, camera)).all()


def test_a_moving_camera_sees_the_same_ground(scenario):
    layer = MapLayer(scenario.map, 0.1)
    first = layer.background(Camera((0.0, 0.0), 0.1, (1400, 700)))
    second = layer.background(Camera((3.0, -2.0), 0.1, (1400, 700)))
    assert (first[20:, 30:] == second[:-20, :-30]).all()


def test_caption_legend_and_scale_bar_can_be_left_out(scenario):
    camera = BirdView(scenario).camera("bev", 0, (640, 480))
    plain = draw(scenario, 0, camera, show=BARE)
    corners = {"caption": np.s_[:60, :60], "legend": np.s_[-60:, :60], "scale_bar": np.s_[-60:, -60:]}
    for name, corner in corners.items():
        shown = draw(scenario, 0, camera, show=replace(BARE, **{name: True}))
        assert (shown[corner] != plain[corner]).any()
        for other in corners.keys() - {name}:
            assert (shown[corners[other]] == plain[corners[other]]).all()


def test_a_scenario_without_agents_or_lights_is_drawn(scenario):
    none = slice(0, 0)
    empty = replace(
        scenario,
        **{name: getattr(scenario, name)[none] for name in ("agent_ids", "agent_types", "sizes", "positions")},
        **{name: getattr(scenario, name)[none] for name in ("headings", "velocities", "valid")},
        **{name: getattr(scenario, name)[none] for name in ("light_lanes", "light_stops", "light_states")},
        sdc=-1,
    )
    empty.require_sound()
    assert draw(empty, size=(200, 150)).shape == (150, 200, 3)


def test_other_agents_have_a_color_too(scenario):
    kinds = scenario.agent_types.copy()
    kinds[CYCLIST] = AgentType.OTHER
    camera = Camera(tuple(place(scenario, CYCLIST, 5).tolist()), 0.02, (200, 200))
    image = draw(replace(scenario, agent_types=kinds), 5, camera, show=BARE)
    assert pixel(image, camera, place(scenario, CYCLIST, 5, ahead=-0.5)) == LIGHT.other


def test_a_step_that_does_not_exist_is_refused(scenario):
    with pytest.raises(UsageError, match="no step 91; expected 0 to 90"):
        draw(scenario, 91)


def test_following_an_absent_agent_is_refused(scenario):
    with pytest.raises(UsageError, match="no agent -1 to follow"):
        BirdView(replace(scenario, sdc=-1)).camera("ego", 0)


def test_an_unknown_view_names_the_known_ones(scenario):
    with pytest.raises(UsageError, match="known: bev, ego"):
        BirdView(scenario).camera("side", 0)


@pytest.mark.row("SCEN-5")
def test_a_saved_picture_holds_the_same_pixels(scenario, tmp_path):
    image = draw(scenario, size=(320, 240))
    save_png(tmp_path / "town.png", image)
    assert (np.asarray(Pillow.open(tmp_path / "town.png")) == image).all()
    assert [path.name for path in tmp_path.iterdir()] == ["town.png"]


def test_a_picture_that_cannot_be_written_names_its_path(scenario, tmp_path):
    with pytest.raises(UsageError, match=r"missing/town\.png"):
        save_png(tmp_path / "missing" / "town.png", draw(scenario, size=(64, 48)))
