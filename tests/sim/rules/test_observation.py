"""Observations compared with plain NumPy, their laws, and the layout that names their numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import entry
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.prepare import prepare
from roadworthy.scenario.schema import AgentType, Floats, LightState
from roadworthy.sim import state
from roadworthy.sim.config import DisturbConfig, ObserveConfig, SimConfig
from roadworthy.sim.layout import CLIP, EGO_BLOCK, GOAL_BLOCK, WEIGHTS_BLOCK, ObservationLayout, layout
from roadworthy.sim.maps.road_points import entry_major
from roadworthy.sim.params import params
from roadworthy.sim.rules.observation import has_valid_pose
from roadworthy.sim.rules.observe_conditioning import write_weights
from roadworthy.sim.rules.observe_ego import write_ego
from roadworthy.sim.rules.observe_goals import write_goals
from roadworthy.sim.rules.observe_partners import observe_partners, update_appearances
from roadworthy.sim.rules.observe_roads import observe_roads
from roadworthy.sim.rules.observe_stop_lines import observe_stop_lines
from roadworthy.sim.state import GOALS, Maps, Params, Scenarios, Worlds
from tests.sim import arena

AGENTS, GOAL_ROOM, FRAMES, LIGHTS = 48, 3, 40, 75
CONFIG = SimConfig()
LAYOUT = layout(CONFIG)
Doubles = NDArray[np.float64]


@entry
def observe_all(worlds: Worlds, maps: Maps, scenarios: Scenarios, p: Params, rows_out: Floats) -> None:
    """Write what agent a of world 0 observes to rows_out[a]."""
    agents, flags, clock, seed = worlds.agents[0], worlds.agent_flags[0], worlds.clocks[0], worlds.seeds[0]
    m, s, step, count = clock[state.MAP], clock[state.SCENARIO], clock[state.STEP], clock[state.AGENT_COUNT]
    update_appearances(worlds, 0)
    for a in range(len(rows_out)):
        row, starts = rows_out[a], p.block_starts
        if not has_valid_pose(agents, a):
            row[:] = 0.0
            continue
        write_ego(agents, flags, a, row, starts[EGO_BLOCK])
        write_goals(agents, flags, a, p, row, starts[GOAL_BLOCK])
        write_weights(agents, a, row, starts[WEIGHTS_BLOCK])
        observe_partners(
            agents, flags, worlds.appearance[0], worlds.order[0], count, a, scenarios.dt[s], step, seed, p, row
        )
        observe_roads(agents, a, maps, m, step, seed, p, row)
        observe_stop_lines(agents, a, maps, m, scenarios, s, step, seed, p, row)


class Scene(NamedTuple):
    """World 0 on a map, with lights and stop signs."""

    worlds: Worlds
    maps: Maps
    scenarios: Scenarios

    def rows(self, config: SimConfig = CONFIG, step: int = 0, seed: int = 1, count: int = AGENTS) -> Floats:
        """Return what each agent observes, written to poisoned rows."""
        self.worlds.clocks[0, state.STEP] = step
        self.worlds.seeds[0] = seed
        self.worlds.order[:] = -99
        self.worlds.appearance[:] = np.nan
        rows = np.full((count, layout(config).size), np.nan, np.float32)
        settings = params(config)._replace(goal_count=np.int32(GOAL_ROOM))
        observe_all(self.worlds, self.maps, self.scenarios, settings, rows)
        return rows


@cache
def town() -> Maps:
    """A generated town with random signs; coordinates in 1/64 m, so that whole meters shift them exactly."""
    road_map = generate_scenario(5, "unprotected_left", 0).map
    maps = arena.maps_of_tables([(road_map, prepare(road_map))])
    rng = np.random.default_rng(3)
    lane_points, edge_points = entry_major(maps.lane_points.shape), entry_major(maps.edge_points.shape)
    lane_points[...], edge_points[...] = maps.lane_points, maps.edge_points
    for points in (lane_points, edge_points):
        points[:, :2] = np.round(points[:, :2] * 64) / 64
    # A generated town has neither bicycle lanes nor medians.
    lane_points[:, state.POINT_IS_BIKE] = rng.random(lane_points.shape[2]) < 0.5
    edge_points[:, state.POINT_IS_MEDIAN] = rng.random(edge_points.shape[2]) < 0.5
    maps.sizes[0, state.SIGN_COUNT] = 6
    return maps._replace(
        lane_points=lane_points, edge_points=edge_points, signs=random_lines(rng, lane_points[0], 6)[None]
    )


def random_lines(rng: np.random.Generator, points: Floats, count: int) -> Floats:
    """Return stop lines somewhere on lanes, across them, (5, count)."""
    chosen = points[:, rng.integers(points.shape[1], size=count)]
    return np.stack([*chosen[:4], np.full(count, 1.8, np.float32)]).astype(np.float32)


def random_scene(seed: int, agents: int = AGENTS) -> Scene:
    """Agents of all types near lanes, some absent, coordinates in odd 1/128 m (so on no border of a cell)."""
    rng, maps = np.random.default_rng(seed), town()
    points = maps.lane_points[0]
    middle = points[:2, rng.integers(points.shape[1])]
    near = np.argsort(np.hypot(points[0] - middle[0], points[1] - middle[1]))[: 8 * agents]
    places = points[:2, rng.choice(near, agents)] + rng.normal(0, 2, (2, agents))
    heading = rng.uniform(-np.pi, np.pi, agents)
    block, flags = arena.agents_at(*(np.floor(places * 64) / 64 + 1 / 128), heading, goals=GOAL_ROOM)
    block[state.SPEED] = rng.uniform(-3, 25, agents)
    block[state.LENGTH], block[state.WIDTH] = rng.uniform(0.5, 15, agents), rng.uniform(0.5, 3, agents)
    for line in (state.ACCELERATION, state.LATERAL, state.STEERING, *range(state.LANE_OFFSET, state.LANE_LIMIT + 1)):
        block[line] = rng.normal(0, 3, agents)
    block[state.WEIGHTS : GOALS] = rng.normal(size=(GOALS - state.WEIGHTS, agents))
    block[GOALS:] = np.round(rng.normal(0, 150, (2 * GOAL_ROOM, agents)) * 64) / 64
    flags[state.TYPE] = rng.choice(list(AgentType), agents)
    flags[state.IS_PRESENT] = rng.random(agents) < 0.9
    # There is room for the last goals only: goal k is in place k modulo the room.
    flags[state.GOAL_COUNT] = rng.integers(0, 3 * GOAL_ROOM + 1, agents)
    flags[state.GOAL] = rng.integers(np.maximum(flags[state.GOAL_COUNT] - GOAL_ROOM, 0), flags[state.GOAL_COUNT] + 1)
    lines = random_lines(rng, points, LIGHTS)
    scenarios = arena.scenarios_of(lines, rng.choice(list(LightState), (FRAMES, LIGHTS)))
    return Scene(world_of(block, flags), maps, scenarios)


def world_of(agents: Floats, flags: NDArray[np.int32]) -> Worlds:
    """Return one world; arrays that no observation reads are empty."""
    clocks = np.zeros((1, state.CLOCK_COLUMNS), np.int32)
    clocks[0, state.AGENT_COUNT] = agents.shape[1]
    room = -(-agents.shape[1] // 32) * 32
    given: dict[str, Any] = {
        "agents": agents[None].copy(),
        "agent_flags": flags[None].copy(),
        "clocks": clocks,
        "seeds": np.ones(1, np.uint64),
        "order": np.zeros((1, room), np.int32),
        "appearance": np.zeros((1, room, 8), np.float32),
    }
    shapes = {"trials": 4, "episodes": 3, "averages": 3, "episode_counts": 2, "hidden": 2}
    for name in Worlds._fields:
        if name not in given:
            whole = name in ("start_agent_flags", "episode_counts")
            given[name] = np.zeros((0,) * shapes.get(name, 3), np.int32 if whole else np.float32)
    return Worlds(**given)


def in_frame(agent: Doubles, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
    """Return the position ahead and to the left, by a rotation of complex numbers."""
    turned = (x - agent[state.X] + 1j * (y - agent[state.Y])) * np.conj(agent[state.COS] + 1j * agent[state.SIN])
    return turned.real, turned.imag


def expected_row(scene: Scene, a: int, config: SimConfig, step: int) -> Doubles:
    """Return what an agent observes, from the definitions in layout.py, in float64."""
    maps, plan = scene.maps, layout(config)
    row = np.zeros(plan.size)
    agents, flags = scene.worlds.agents[0].astype(np.float64), scene.worlds.agent_flags[0]
    me, seen = agents[:, a], config.observe

    def put(block: str, feature: str, values: Any, entry: int | None = None) -> None:
        values, scale = np.atleast_1d(values), next(f.scale for f in plan[block].features if f.name == feature)
        first = plan[block].column(feature) + (entry or 0)
        row[first : first + len(values)] = np.clip(values / scale, -CLIP, CLIP)

    def direction(cos: Any, sin: Any) -> tuple[Any, Any]:
        return in_frame(np.concatenate([[0.0, 0.0], me[2:]]), cos, sin)

    for name, line in (
        ("speed", state.SPEED),
        ("acceleration", state.ACCELERATION),
        ("lateral_acceleration", state.LATERAL),
        ("steering", state.STEERING),
        ("length", state.LENGTH),
        ("width", state.WIDTH),
        ("lane_offset", state.LANE_OFFSET),
        ("lane_sin", state.LANE_SIN),
        ("lane_cos", state.LANE_COS),
        ("speed_limit", state.LANE_LIMIT),
    ):
        put("ego", name, me[line])
    put("ego", "is_cyclist", flags[state.TYPE, a] == AgentType.CYCLIST)
    put("ego", "is_pedestrian", flags[state.TYPE, a] == AgentType.PEDESTRIAN)

    goal, goals = flags[state.GOAL, a], flags[state.GOAL_COUNT, a]
    for k, (name_x, name_y) in enumerate((("x", "y"), ("second_x", "second_y"))):
        if goal + k < goals:
            x, y = in_frame(me, *me[GOALS + 2 * ((goal + k) % GOAL_ROOM) :][:2])
            put("goal", name_x, x)
            put("goal", name_y, y)
    put("goal", "has_second", goal + 1 < goals)
    put("goal", "share_left", (goals - goal) / max(goals, 1))

    distance = np.hypot(agents[state.X] - me[state.X], agents[state.Y] - me[state.Y])
    others = np.flatnonzero((distance <= seen.partner_range_m) & (flags[state.IS_PRESENT] != 0))
    others = others[others != a]
    others = others[np.argsort(distance[others], kind="stable")][: seen.partners]
    kinds = np.select([flags[state.TYPE] == AgentType.CYCLIST, flags[state.TYPE] == AgentType.PEDESTRIAN], [0.5, 1.0])
    entries = {
        **dict(zip(("x", "y"), in_frame(me, agents[state.X], agents[state.Y]), strict=True)),
        **dict(zip(("cos", "sin"), direction(agents[state.COS], agents[state.SIN]), strict=True)),
        "speed": agents[state.SPEED],
        "length": agents[state.LENGTH],
        "width": agents[state.WIDTH],
        "kind": kinds,
    }
    if len(others):
        for name, values in entries.items():
            put("partners", name, values[others])

    columns, rows = maps.sizes[0, :2]
    column, line = (
        int(np.clip(np.floor((np.float32(me[k]) - maps.origins[0, k]) / np.float32(5)), 0, count - 1))
        for k, count in ((0, columns), (1, rows))
    )
    place = maps.cell_lists[0, line * columns + column]
    counts = {"partners": len(others)}
    for block, points, lists, total, further in (
        ("lanes", maps.lane_points, maps.lane_lists, state.LANE_POINT_COUNT, ("speed_limit", "is_bicycle_lane")),
        ("edges", maps.edge_points, maps.edge_lists, state.EDGE_POINT_COUNT, ("is_median",)),
    ):
        counts[block] = min(plan[block].entries, int(maps.sizes[0, total]))
        pieces = points[0].astype(np.float64)[:, lists[0, place][: counts[block]]]
        if pieces.size:
            names = ("x", "y", "cos", "sin", "half_length", *further)
            for name, values in zip(
                names, (*in_frame(me, *pieces[:2]), *direction(*pieces[2:4]), *pieces[4:]), strict=False
            ):
                put(block, name, values)

    lines = np.concatenate([scene.scenarios.lights[0], maps.signs[0]], axis=1).astype(np.float64)
    x, y = in_frame(me, lines[0], lines[1])
    away = np.hypot(x, y)
    ahead = np.flatnonzero((x > 0) & (away <= 100) & (direction(lines[2], lines[3])[0] > 0.5))
    ahead = ahead[np.argsort(away[ahead], kind="stable")][: seen.lights]
    counts["lights"] = len(ahead)
    for k, number in enumerate(ahead):
        put("lights", "x", x[number], k)
        put("lights", "y", y[number], k)
        if number >= LIGHTS:
            put("lights", "is_stop_sign", 1.0, k)
            continue
        shown = LightState(scene.scenarios.light_states[0, step, number]).name
        for name, words in (("is_red", ("STOP",)), ("is_amber", ("CAUTION",)), ("is_green", ("GO",))):
            put("lights", name, shown.split("_")[-1] in words, k)
    row[plan["conditioning"].slice] = me[state.WEIGHTS : GOALS]
    for name, count in counts.items():
        put("counts", name, count)
    return row


SMALL = SimConfig(observe=ObserveConfig(partners=5, partner_range_m=30.0, lanes=13, edges=3, lights=2))
NOTHING = SimConfig(observe=ObserveConfig(partners=0, lanes=0, edges=0, lights=0))


@pytest.mark.row("SIM-8")
@pytest.mark.parametrize("config", [CONFIG, SMALL, NOTHING], ids=["default", "small", "nothing"])
def test_rows_are_as_the_layout_says(config: SimConfig) -> None:
    for seed in range(4):
        scene = random_scene(seed)
        rows = scene.rows(config, step=seed)
        for a in range(AGENTS):
            np.testing.assert_allclose(rows[a], expected_row(scene, a, config, seed), atol=2e-5, err_msg=f"{seed} {a}")


def test_the_random_scenes_cover_every_case() -> None:
    rows = np.concatenate([random_scene(seed).rows(step=seed) for seed in range(12)])
    columns = LAYOUT.columns()
    constant = [columns[k] for k in np.flatnonzero(np.ptp(rows, axis=0) == 0)]
    assert constant == ["counts.lanes", "counts.edges"]  # the lists of a large map are full


@pytest.mark.parametrize("agents", [1, 2, 9, 48, 256])
def test_partners_are_sorted_by_distance_then_number(agents: int) -> None:
    scene = random_scene(8, agents)
    block, flags = scene.worlds.agents[0], scene.worlds.agent_flags[0]
    flags[state.IS_PRESENT] = 1
    # On a lattice, so that many are at the same distance; the length identifies each of them.
    block[state.X], block[state.Y] = np.divmod(np.random.default_rng(1).permutation(agents), 16)
    block[state.LENGTH] = np.arange(agents) / 10
    rows = scene.rows(count=agents)
    partners = LAYOUT["partners"].of(rows)
    for a in range(agents):
        distance = np.hypot(block[state.X] - block[state.X, a], block[state.Y] - block[state.Y, a])
        order = np.argsort(distance, kind="stable")
        order = order[order != a][:31]
        assert np.round(partners[a, 5, : len(order)] * 100).astype(int).tolist() == order.tolist()
        assert not partners[a, :, len(order) :].any()
        assert round(rows[a, LAYOUT["counts"].column("partners")] * 31) == len(order)


def test_absent_and_distant_agents_are_not_observed() -> None:
    scene = random_scene(2, 3)
    block, flags = scene.worlds.agents[0], scene.worlds.agent_flags[0]
    flags[state.IS_PRESENT] = 1
    block[state.Y], block[state.X] = 0, (0, 99.9, 100.1)
    count = LAYOUT["counts"].column("partners")
    assert np.round(scene.rows(count=3)[:, count] * 31).tolist() == [1, 2, 1]
    flags[state.IS_PRESENT, 1] = 0
    assert np.round(scene.rows(count=3)[:, count] * 31).tolist() == [0, 2, 0]


@pytest.mark.parametrize("line", [state.X, state.Y, state.COS, state.SIN], ids=["x", "y", "cos", "sin"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_an_agent_with_nan_position_observes_zeros_and_is_not_observed(line: int, value: float) -> None:
    scene = random_scene(3)
    scene.worlds.agent_flags[0, state.IS_PRESENT, 5] = 1
    scene.worlds.agents[0, line, 5] = value
    rows = scene.rows()
    assert not rows[5].any()
    assert np.isfinite(rows).all()
    if line in (state.X, state.Y):
        scene.worlds.agent_flags[0, state.IS_PRESENT, 5] = 0
        others = np.arange(AGENTS) != 5
        assert np.array_equal(rows[others], scene.rows()[others])


@pytest.mark.parametrize("where", ["corner", "far corner", "outside", "far outside"])
def test_at_the_border_and_outside_of_the_map_the_nearest_cell_counts(where: str) -> None:
    scene = random_scene(4)
    origin = scene.maps.origins[0]
    end = origin + 5 * scene.maps.sizes[0, :2]
    place = {"corner": origin, "far corner": end, "outside": origin - 333, "far outside": end + 5e5}[where]
    scene.worlds.agents[0, : state.Y + 1, :2] = place[:, None]
    rows = scene.rows()
    for a in range(2):
        np.testing.assert_allclose(rows[a], expected_row(scene, a, CONFIG, 0), atol=2e-5)


def test_a_map_with_few_points_fills_few_entries() -> None:
    scene = random_scene(5)
    sizes = scene.maps.sizes.copy()
    for lanes, edges in ((0, 3), (5, 0), (8, 9), (17, 63)):
        sizes[0, [state.LANE_POINT_COUNT, state.EDGE_POINT_COUNT]] = lanes, edges
        few = Scene(scene.worlds, scene.maps._replace(sizes=sizes), scene.scenarios)
        rows = few.rows()
        for a in range(8):
            np.testing.assert_allclose(rows[a], expected_row(few, a, CONFIG, 0), atol=2e-5)


def test_the_memory_layout_of_a_map_does_not_matter() -> None:
    scene = random_scene(6)

    def spaced(points: Floats) -> Floats:
        wide: Floats = np.full((*points.shape[:2], 2 * points.shape[2]), np.nan, np.float32)
        wide[..., ::2] = points
        return wide[..., ::2]

    maps = scene.maps
    other = maps._replace(lane_points=spaced(maps.lane_points), edge_points=spaced(maps.edge_points))
    np.testing.assert_allclose(scene._replace(maps=other).rows(), scene.rows(), atol=1e-6)


def moved(scene: Scene, turn: complex, mirrors: bool, shift: complex) -> Scene:
    """Mirror the whole scene at the x axis, turn it about the origin and shift it, with its grid."""

    def to(x: Any, y: Any, by: complex) -> tuple[Any, Any]:
        # Quarter turns of float32 are exact, and so are sums of whole and 1/128 m.
        z = (np.asarray(x, np.float64) + 1j * (-1 if mirrors else 1) * np.asarray(y, np.float64)) * turn + by
        return z.real, z.imag

    def tables(points: Floats) -> Floats:
        copy = entry_major(points.shape)
        copy[...] = points
        copy[:, 0], copy[:, 1] = to(points[:, 0], points[:, 1], shift)
        copy[:, 2], copy[:, 3] = to(points[:, 2], points[:, 3], 0)
        return copy

    def lines(given: Floats) -> Floats:
        copy = given.copy()
        copy[:, 0], copy[:, 1] = to(given[:, 0], given[:, 1], shift)
        copy[:, 2], copy[:, 3] = to(given[:, 2], given[:, 3], 0)
        return copy

    maps, worlds = scene.maps, scene.worlds
    columns, rows = (int(size) for size in maps.sizes[0, :2])
    corners = [to(*(maps.origins[0] + 5 * np.array(corner) * (columns, rows)), shift) for corner in np.ndindex(2, 2)]
    cells = maps.cell_lists[0, : columns * rows].reshape(rows, columns)
    if mirrors:
        cells = cells[::-1]
    # Turning the plane to the left turns an array with rows from south to north to the right.
    cells = np.rot90(cells, -{1: 0, 1j: 1, -1: 2, -1j: 3}[turn])
    sizes = maps.sizes.copy()
    sizes[0, :2] = cells.shape[::-1]
    agents = worlds.agents.copy()
    agents[0, state.X], agents[0, state.Y] = to(agents[0, state.X], agents[0, state.Y], shift)
    agents[0, state.COS], agents[0, state.SIN] = to(agents[0, state.COS], agents[0, state.SIN], 0)
    for k in range(GOALS, agents.shape[1], 2):
        agents[0, k], agents[0, k + 1] = to(agents[0, k], agents[0, k + 1], shift)
    if mirrors:
        agents[0, [state.LATERAL, state.STEERING, state.LANE_OFFSET, state.LANE_SIN]] *= -1
    return Scene(
        worlds._replace(agents=agents),
        maps._replace(
            sizes=sizes,
            origins=np.min(corners, axis=0)[None].astype(np.float32),
            cell_lists=np.ascontiguousarray(cells.reshape(1, -1)),
            lane_points=tables(maps.lane_points),
            edge_points=tables(maps.edge_points),
            signs=lines(maps.signs),
        ),
        scene.scenarios._replace(lights=lines(scene.scenarios.lights)),
    )


def mirrored_columns(plan: ObservationLayout) -> NDArray[np.bool_]:
    """Return which numbers of a row change their sign in a mirror."""
    ego = ("ego.lateral_acceleration", "ego.steering", "ego.lane_offset", "ego.lane_sin")
    names = [name.split("[")[0] for name in plan.columns()]
    return np.array([name in ego or name.split(".")[1] in ("y", "second_y", "sin") for name in names])


@settings(max_examples=20)
@given(
    st.integers(0, 2**32), st.sampled_from([1, 1j, -1, -1j]), st.booleans(), st.integers(-40, 40), st.integers(-40, 40)
)
def test_shifted_turned_and_mirrored_worlds_look_the_same(
    seed: int, turn: complex, mirrors: bool, east: int, north: int
) -> None:
    scene = random_scene(seed)
    rows = scene.rows()
    if mirrors:
        rows[:, mirrored_columns(LAYOUT)] *= -1
    seen = moved(scene, turn, mirrors, 5 * (east + 1j * north)).rows()
    if turn in (1, -1) and not mirrors:
        assert np.array_equal(seen, rows)
    np.testing.assert_allclose(seen, rows, atol=2e-5)


def disturbed(**given: Any) -> SimConfig:
    return replace(CONFIG, disturb=DisturbConfig(**given))


@pytest.mark.row("SIM-9")
def test_dropout_hides_the_configured_share_of_entries_and_changes_nothing_else() -> None:
    scene = random_scene(7)
    hidden = filled = 0
    for step in range(20):
        rows, clean = scene.rows(disturbed(dropout=0.3), step), scene.rows(step=step)
        for name in ("partners", "lanes", "edges", "lights"):
            seen, true = (LAYOUT[name].of(r) for r in (rows, clean))
            is_hidden = ~seen.any(axis=1) & true.any(axis=1)
            assert np.array_equal(seen, np.where(is_hidden[:, None], 0, true))
            hidden, filled = hidden + is_hidden.sum(), filled + true.any(axis=1).sum()
        for name in ("ego", "goal", "conditioning", "counts"):
            assert np.array_equal(rows[:, LAYOUT[name].slice], clean[:, LAYOUT[name].slice])
    # Unknown lights away from the agent's position still show where they are, so every filled entry counts.
    assert hidden / filled == pytest.approx(0.3, abs=5 * np.sqrt(0.3 * 0.7 / filled))
    assert filled > 100_000


@pytest.mark.row("SIM-9")
def test_dropout_depends_on_seed_agent_and_step_alone() -> None:
    scene, config = random_scene(7), disturbed(dropout=0.5)
    first = scene.rows(config, step=3, seed=9)
    assert np.array_equal(first, scene.rows(config, step=3, seed=9))
    lanes = [LAYOUT["lanes"].of(scene.rows(config, step, seed)).any(axis=1) for step, seed in ((3, 9), (4, 9), (3, 8))]
    assert np.mean(lanes[0] == lanes[1]) == pytest.approx(0.5, abs=0.05)
    assert np.mean(lanes[0] == lanes[2]) == pytest.approx(0.5, abs=0.05)
    assert np.mean(lanes[0][:-1] == lanes[0][1:]) == pytest.approx(0.5, abs=0.05)
    assert not scene.rows(disturbed(dropout=1.0))[:, LAYOUT["lanes"].slice].any()


@pytest.mark.row("SIM-9")
def test_blind_agents_see_no_partners_for_the_time_that_is_set() -> None:
    scene = random_scene(7)
    scene.worlds.agent_flags[0, state.IS_PRESENT] = 1
    config, clean = disturbed(blind_rate=0.5, blind_s=0.7), scene.rows()
    count = LAYOUT["counts"].column("partners")
    seeds = np.random.default_rng(2).integers(2**62, size=20)
    rows = np.stack([[scene.rows(config, step, seed) for step in range(FRAMES)] for seed in seeds])
    is_blind = rows[..., count] == 0  # (seeds, steps, agents)
    assert not rows[is_blind][:, LAYOUT["partners"].slice].any()
    plain = np.broadcast_to(clean, rows.shape)
    partners = LAYOUT["partners"].slice
    assert np.array_equal(rows[~is_blind][:, partners], plain[~is_blind][:, partners])
    # After some steps, an agent is blind if an onset is in one of the last seven steps.
    assert is_blind[:, 7:].mean() == pytest.approx(1 - 0.95**7, abs=0.02)
    assert is_blind[:, 0].mean() == pytest.approx(0.05, abs=0.03)
    starts = ~is_blind[:, 1:-7] & is_blind[:, 2:-6]
    for later in range(7):
        assert is_blind[:, 2 + later : is_blind.shape[1] - 6 + later][starts].all()


@pytest.mark.row("SIM-9")
def test_clean_turns_the_disturbances_of_observations_off() -> None:
    scene = random_scene(7)
    assert np.array_equal(scene.rows(disturbed(dropout=0.9, blind_rate=9.0, clean=True)), scene.rows())


@pytest.mark.row("SIM-8")
@pytest.mark.parametrize("config", [CONFIG, SMALL, NOTHING], ids=["default", "small", "nothing"])
def test_the_blocks_of_a_layout_cover_the_row_exactly_once(config: SimConfig) -> None:
    plan = layout(config)
    covered = np.zeros(plan.size, int)
    for block in plan.blocks:
        covered[block.slice] += 1
        for feature in block.features:
            for place in range(block.entries):
                column = block.column(feature.name, place)
                assert plan.columns()[column].split("[")[0] == f"{block.name}.{feature.name}"
    assert (covered == 1).all()
    assert len(set(plan.columns())) == plan.size
    assert [b.name for b in plan.blocks] == "ego goal partners lanes edges lights conditioning counts".split()


def test_the_default_layout_is_compact_and_can_be_printed_and_stored() -> None:
    assert 1120 <= LAYOUT.size <= 1140
    assert LAYOUT["partners"].entries == 31
    plain = json.loads(json.dumps(LAYOUT.plain()))
    assert plain["size"] == LAYOUT.size
    assert [block["stop"] for block in plain["blocks"][:-1]] == [block["start"] for block in plain["blocks"][1:]]
    assert all(block.name in str(LAYOUT) for block in LAYOUT.blocks)
    rows = np.arange(2 * LAYOUT.size).reshape(2, -1)
    assert LAYOUT["lanes"].of(rows)[1, 2, 5] == rows[1, LAYOUT["lanes"].column("cos", 5)]


def test_a_layout_names_its_blocks_when_asked_for_an_unknown_one() -> None:
    with pytest.raises(UsageError, match=r"no block 'cars'; they have: ego, goal, partners"):
        LAYOUT["cars"]
    with pytest.raises(UsageError, match=r"no feature 'color'; it has: x, y"):
        LAYOUT["lanes"].column("color")
    with pytest.raises(UsageError, match=r"no entry 64; it has 64"):
        LAYOUT["lanes"].column("x", 64)
