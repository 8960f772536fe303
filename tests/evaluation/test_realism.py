"""The `realism` evaluator: rollouts are what the simulator did, recorded motion is the most realistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.config import Layer
from roadworthy.errors import UsageError
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.evaluators.realism import FIXED, Realism
from roadworthy.evaluation.explain import explain
from roadworthy.evaluation.ledger import Ledger
from roadworthy.evaluation.recorded import open_run
from roadworthy.evaluation.rescore import rescore
from roadworthy.evaluation.sections import Section, read_sections
from roadworthy.metrics.realism import CHALLENGE_2024, FIGURES, score_rollouts, task_agents
from roadworthy.metrics.realism.traced import traced_rollouts
from roadworthy.policy import protocol
from roadworthy.policy.load import load_policy
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, FeatureKind, Scenario
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import HEADING, SOURCE, X, Y
from tests.plugin_package import install_own
from tests.sim.scenes import DT, Actor, pack_of, road, scene

STEPS, START = 31, 10
FUTURE = STEPS - 1 - START
SUITE = f"""
[eval.worlds]
scenarios = "{{pack}}"
replicates = 3
worlds = 4
episode.trial_steps = {FUTURE}
env.control.rows = 8
env.actions = "continuous"

[eval.rollouts]
type = "realism"
inherits = "worlds"
"""


def weaving(number: int) -> Scenario:
    """A car that slows down in a bend, one behind it, a pedestrian, one that comes late, and one that leaves early."""
    still = scene(
        Actor(10.0 + number, speed=8.0),
        Actor(-6.0 + number, speed=8.0),
        Actor(30.0, y=3.0, speed=1.2, kind=AgentType.PEDESTRIAN),
        Actor(60.0, y=1.75, speed=9.0, first=20),
        Actor(80.0, y=1.75, speed=7.0, last=22),
        id=f"weaving-{number}",
        steps=STEPS,
        predict=(1, 2, 4),
        road_map=replace(road(), origin=np.array([1000.0, -2000.0, 40.0])),
    )
    time = DT * np.arange(STEPS)
    heading = 0.12 * np.sin(1.5 * time).astype(np.float32)
    speed = 8.0 - (1.0 + 0.1 * number) * time
    moves = DT * speed[:, None] * np.column_stack([np.cos(heading), np.sin(heading)])
    positions, headings, velocities = still.positions.copy(), still.headings.copy(), still.velocities.copy()
    for agent in (0, 1):
        positions[agent, 1:, :2] = positions[agent, 0, :2] + np.cumsum(moves[:-1], axis=0)
        headings[agent], velocities[agent] = heading, moves / DT
    positions[still.valid, 2] = 0.75
    ids = 7 * np.arange(len(still.agent_ids)) + 30
    return replace(still, positions=positions, headings=headings, velocities=velocities, agent_ids=ids)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return pack_of(tmp_path_factory.mktemp("scenes") / "scenes.pack", *map(weaving, range(3)))


@pytest.fixture(autouse=True)
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_own(tmp_path / "site", monkeypatch)


def sections(folder: Path, pack: Pack, *overrides: str, training: Layer | None = None) -> tuple[Section, ...]:
    file = folder / "suite.toml"
    file.write_text(SUITE.format(pack=pack.path))
    return read_sections(file, training=training, overrides=overrides)


def rolled_out(folder: Path, pack: Pack, policy: str, *overrides: str) -> Run:
    """A run of the policy."""
    (outcome,) = evaluate_sections(sections(folder, pack, *overrides)[1:], policy, folder / "runs")
    if outcome.error is not None:
        raise outcome.error
    assert outcome.run is not None
    return outcome.run


def metrics_of(run: Run) -> dict[str, Any]:
    assert run.metrics is not None
    return run.metrics


def figures_of(run: Run) -> dict[str, Any]:
    return {figure["name"]: figure for figure in metrics_of(run)["figures"]}


def episodes_of(run: Run, scenario_id: str) -> Sequence[Any]:
    return [planned for planned in Ledger.from_table(run.ledger) if planned.scenario_id == scenario_id]


@pytest.mark.row("EVAL-2")
def test_rollouts_are_what_the_simulator_did(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "random")
    scenario = scenes[1]
    planned = episodes_of(run, scenario.id)
    rollouts = traced_rollouts(scenario, [run.trace(episode.episode_id) for episode in planned])
    agents, _ = task_agents(scenario)
    np.testing.assert_array_equal(rollouts.agent_ids, scenario.agent_ids[agents])
    for place, episode in enumerate(planned):
        env = DriveEnv(run.pack, 1, open_run(run).env, sampling=False)
        env.reset()
        env.assign(0, episode.scenario, episode.seed)
        policy, seeds = load_policy("random"), np.full(env.row_count, episode.seed, np.uint64)
        protocol.start(policy, PolicyInfo.of_drive_env(env))
        for step in range(FUTURE):
            steps = np.full(env.row_count, step)
            watched: list[Any] = []
            env.set_pre_reset_callback(lambda env=env, watched=watched: watched.append(env.agents[0].copy()))  # type: ignore[misc]
            sources = env.agent_flags[0, SOURCE].tolist()
            columns = [sources.index(agent) for agent in agents.tolist()]
            env.step(policy.act(drive_batch(env, seeds, steps)))
            x, y, heading = (watched[0][line, columns] for line in (X, Y, HEADING))
            np.testing.assert_array_equal(rollouts.x[place, :, step], np.float32(x + np.float64(1000.0)))
            np.testing.assert_array_equal(rollouts.y[place, :, step], np.float32(y - np.float64(2000.0)))
            np.testing.assert_array_equal(rollouts.heading[place, :, step], heading)
    np.testing.assert_allclose(rollouts.z, 40.75)


@pytest.mark.row("EVAL-2")
def test_recorded_motion_is_the_most_realistic(tmp_path: Path, scenes: Pack) -> None:
    found = {policy: figures_of(rolled_out(tmp_path, scenes, policy)) for policy in ("expert:log", "zero", "random")}
    assert max(found, key=lambda policy: found[policy]["realism"]["value"]) == "expert:log"
    assert min(found, key=lambda policy: found[policy]["average_displacement_error"]["value"]) == "expert:log"


@pytest.mark.row("EVAL-2")
def test_figures_are_means_over_scenarios_of_what_scoring_gives(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "random", "challenge='2024'")
    scored = []
    for scenario in scenes:
        traces = [run.trace(episode.episode_id) for episode in episodes_of(run, scenario.id)]
        scored.append(score_rollouts(scenario, traced_rollouts(scenario, traces), CHALLENGE_2024))
    figures, columns = figures_of(run), metrics_of(run)["by_scenario"]
    assert columns["scenario_id"] == [scenario.id for scenario in scenes]
    for name in FIGURES:
        told = "realism" if name == "metametric" else name
        values = [getattr(one, name) for one in scored]
        assert columns["figures"][told] == values
        assert figures[told]["value"] == pytest.approx(np.mean(values))
        assert (figures[told]["n"], figures[told]["per"]) == (len(scenes), "scenario")
    assert "score" not in figures, "no goal can be reached, so there is none"
    assert figures["collision_rate"]["n"] == len(scenes) * 3 * 4, "egos: four are there, three times"


@pytest.mark.row("EVAL-2")
def test_every_rollout_has_a_seed_of_its_own(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "random")
    assert len(set(run.ledger["seed"].to_pylist())) == len(run.ledger)
    motions = {run.trace(episode.episode_id).x.tobytes() for episode in episodes_of(run, scenes[0].id)}
    assert len(motions) == 3


@pytest.mark.row("EVAL-2")
def test_all_who_are_there_at_the_start_are_driven_to_the_end_and_nobody_else_comes(
    tmp_path: Path, scenes: Pack
) -> None:
    trace = rolled_out(tmp_path, scenes, "zero").trace(f"{scenes[0].id}-r0")
    late, early = 3, 4
    there = scenes[0].valid[:, START]
    np.testing.assert_array_equal(trace.active[0], there[trace.sources])
    np.testing.assert_array_equal(trace.present, np.broadcast_to(there[trace.sources], trace.present.shape))
    assert late in trace.sources[~trace.present[-1]]
    assert trace.frame_count == FUTURE + 1
    moved = trace.x[-1] - trace.x[0]
    assert moved[trace.sources == early] == pytest.approx(7.0 * DT * FUTURE, rel=1e-4), "its recording ended before"


@pytest.mark.row("REAL-3")
def test_recorded_agents_whose_track_ends_leave_the_world(tmp_path: Path, scenes: Pack) -> None:
    """The car whose track ends at step 22 would stand in the road from there on; no other agent may run into it."""
    scenario, early = scenes[0], 4
    run = rolled_out(tmp_path, scenes, "expert:log")
    traces = [run.trace(episode.episode_id) for episode in episodes_of(run, scenario.id)]
    rollouts = traced_rollouts(scenario, traces, "expert:log")
    column = rollouts.agent_ids.tolist().index(scenario.agent_ids[early])
    last = 21 - (START + 1)  # the last step at which it is recorded, among those that follow the current one
    source = scenario.positions[early, START + 1 : 22, 0] + 1000.0
    np.testing.assert_allclose(rollouts.x[:, column, : last + 1], np.tile(source, (3, 1)), atol=0.05)
    assert (rollouts.x[:, column, last + 1 :] > 90_000.0).all(), "it is where no other agent and no road is"
    others = np.delete(rollouts.x, column, axis=1)
    assert (np.abs(others) < 2000.0).all()
    scored = score_rollouts(scenario, rollouts).plain()
    row = metrics_of(run)["by_scenario"]
    place = row["scenario_id"].index(scenario.id)
    assert row["figures"]["simulated_collision_rate"][place] == scored["simulated_collision_rate"]
    assert row["figures"]["realism"][place] == scored["metametric"]


@pytest.mark.row("REAL-3")
def test_policies_drive_agents_on_where_their_tracks_end(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "zero")
    traces = [run.trace(episode.episode_id) for episode in episodes_of(run, scenes[0].id)]
    assert (np.abs(traced_rollouts(scenes[0], traces, "zero").x) < 2000.0).all()


@pytest.mark.row("REAL-3")
def test_rows_name_the_tracks_of_agents(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "zero")
    for episode in episodes_of(run, scenes[1].id):
        trace = run.trace(episode.episode_id)
        rows = [row for row in run.agents().to_pylist() if row["episode_id"] == episode.episode_id]
        assert len(rows) == 4
        for row in rows:
            assert row["track_id"] == scenes[1].agent_ids[trace.sources[row["agent"]]]
        assert {row["track_id"] for row in rows} == set(scenes[1].agent_ids[[0, 1, 2, 4]].tolist())


def test_constant_velocity_is_that_of_all_types(tmp_path: Path, scenes: Pack) -> None:
    trace = rolled_out(tmp_path, scenes, "zero").trace(f"{scenes[0].id}-r0")
    driven = trace.active[0]
    assert set(trace.kinds[driven].tolist()) == {AgentType.VEHICLE, AgentType.PEDESTRIAN}
    np.testing.assert_array_equal(trace.speed[:, driven], np.broadcast_to(trace.speed[0, driven], (FUTURE + 1, 4)))
    np.testing.assert_array_equal(trace.heading[:, driven], np.broadcast_to(trace.heading[0, driven], (FUTURE + 1, 4)))


def test_who_stands_where_its_recording_ends_stays_there_and_the_rollout_is_whole(tmp_path: Path) -> None:
    parked = scene(Actor(10.0, speed=0.0), Actor(30.0, speed=0.0), id="parked", steps=STEPS)
    run = rolled_out(tmp_path, pack_of(tmp_path / "parked.pack", parked), "zero")
    trace = run.trace("parked-r0")
    assert trace.frame_count < FUTURE + 1, "nobody is left who drives"
    rollouts = traced_rollouts(parked, [trace])
    np.testing.assert_array_equal(rollouts.x[0], np.repeat([[10.0], [30.0]], FUTURE, axis=1))
    assert metrics_of(run)["realism"]["unscored"] == []


@pytest.mark.row("EVAL-2")
def test_scenarios_that_cant_be_scored_are_named_with_the_reason(tmp_path: Path, scenes: Pack) -> None:
    fine, bare, long, other = scenes[0], weaving(7), weaving(8), weaving(9)
    kinds = bare.map.kinds.copy()
    kinds[kinds == FeatureKind.ROAD_EDGE] = FeatureKind.ROAD_LINE
    order = np.argsort(kinds, kind="stable")
    points = np.concatenate([bare.map.polyline(feature) for feature in order])
    sizes = np.diff(bare.map.starts)[order]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    bare_map = replace(bare.map, kinds=kinds[order], types=bare.map.types[order], points=points, starts=starts)
    longer = scene(Actor(10.0), id="longer", steps=STEPS + 5)
    pack = pack_of(
        tmp_path / "mixed.pack",
        fine,
        replace(bare, id="bare", map=bare_map),
        longer,
        replace(other, id="later", current_step=START + 2),
        replace(long, id="nobody", sdc=-1, predict=np.zeros(0, np.int32)),
        scene(Actor(10.0), id="short", steps=START),
    )
    run = rolled_out(tmp_path, pack, "zero")
    assert run.status == "completed"
    metrics = metrics_of(run)
    reasons = {entry["scenario_id"]: entry["reason"] for entry in metrics["realism"]["unscored"]}
    assert set(reasons) == {"bare", "longer", "later", "nobody", "short"}
    assert "road edge" in reasons["bare"]
    assert f"set episode.trial_steps to {FUTURE + 5}" in reasons["longer"]
    assert f"set env.init_steps to {START + 2}" in reasons["later"]
    assert "no agent to evaluate" in reasons["nobody"]
    assert reasons["short"] == "3 of its 3 rollouts failed"
    assert figures_of(run)["realism"]["n"] == 1
    columns = metrics["by_scenario"]
    known = [value is not None for value in columns["figures"]["realism"]]
    assert [id for id, is_known in zip(columns["scenario_id"], known, strict=True) if is_known] == [fine.id]


@pytest.mark.row("EVAL-2")
def test_a_scenario_that_lost_a_rollout_is_not_scored_from_the_rest(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "zero")
    before = metrics_of(run)["realism"]["unscored"]
    lost = run.folder / "traces" / f"{scenes[2].id}-r1.trace"
    lost.unlink()
    after = Realism().metrics(Run(run.folder))["realism"]["unscored"]
    assert before == []
    assert [entry["scenario_id"] for entry in after] == [scenes[2].id]
    assert "has no trace" in after[0]["reason"]


@pytest.mark.row("EVAL-2")
def test_rescoring_agrees(tmp_path: Path, scenes: Pack) -> None:
    run = rolled_out(tmp_path, scenes, "random")
    again = rescore(open_run(run))
    assert (again.agrees, again.episodes, again.moved) == (True, 9, ())
    assert again.metrics["realism"] == metrics_of(run)["realism"]


def test_histograms_count_each_recorded_step_once(tmp_path: Path, scenes: Pack) -> None:
    parts = {part["name"]: part for part in metrics_of(rolled_out(tmp_path, scenes, "random"))["realism"]["parts"]}
    steps = sum(int(s.valid[np.append(s.predict, s.sdc), START + 1 :].sum()) for s in scenes)
    for part in (parts["distance_to_nearest_object"], parts["distance_to_road_edge"]):
        assert sum(part["log"]) == steps
        assert sum(part["simulated"]) == pytest.approx(steps, abs=0.01)
        assert len(part["edges"]) == len(part["log"]) + 1
    collision = parts["collision_indication"]
    assert collision["edges"] is None
    assert collision["log"] == [4.0 * len(scenes), 0.0]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("env.control.others='idm'", "others is 'idm', but the evaluator 'realism' always has 'static'"),
        ("env.control.who='sdc'", "env.control.who is 'sdc', but the evaluator 'realism' always has 'agents'"),
        ("env.infraction.collision='stop'", "env.infraction.collision is 'stop'"),
        ("env.goal.radius_m=2.0", "env.goal.radius_m is 2.0"),
        ("episode.trials=2", "episode.trials is 2"),
        ("challenge='2023'", "challenge is '2023' (text), expected one of 2025, 2024"),
        ("coplayers=['zero']", "the policy drives all agents"),
    ],
)
def test_settings_that_would_make_other_worlds_are_faults(
    tmp_path: Path, scenes: Pack, override: str, told: str
) -> None:
    _, section = sections(tmp_path, scenes, override)
    assert section.error is not None
    assert told in str(section.error)


def test_what_the_evaluator_stands_for_lies_above_the_training_and_is_explained(tmp_path: Path, scenes: Pack) -> None:
    env = {"mode": "open", "goal": {"radius_m": 9.0}, "control": {"who": "sdc"}}
    _, section = sections(tmp_path, scenes, training=Layer("policy.json", {"env": env, "episode": {"trials": 4}}))
    told = {setting.key: setting for setting in explain(section)}
    assert (told["env.mode"].value, told["env.mode"].source) == ("replay", "evaluator realism")
    assert told["env.mode"].overridden == (("policy.json (training)", "open"),)
    assert told["env.goal.radius_m"].value == FIXED["env"]["goal"]["radius_m"]
    assert told["episode.trials"].value == 1
    assert told["summary.figure"].value == "realism"


def test_too_few_rows_are_an_error_that_says_how_many_it_takes(tmp_path: Path, scenes: Pack) -> None:
    with pytest.raises(UsageError, match=r"rows is 3, but scenario 'weaving-0' \(and 2 more\) has 4 agents.*to 4"):
        rolled_out(tmp_path, scenes, "zero", "env.control.rows=3")


def test_a_sample_is_the_same_in_all_sections(scenes: Pack, tmp_path: Path) -> None:
    _, section = sections(tmp_path, scenes, "episodes=1")
    chosen = {tuple(Realism().choose(scenes, name, section.config)) for name in ("one", "another", "third", "fourth")}
    assert len(chosen) == 1
