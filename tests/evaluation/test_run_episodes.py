"""Carrying out episodes: what is recorded of them, and when policies forget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.evaluation.ledger import plan_ledger
from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
from roadworthy.policy.coplayers import CoplayerPolicy
from roadworthy.policy.protocol import Batch, PolicyInfo
from roadworthy.record.episodes import EpisodeResult
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    AtGoal,
    Control,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    HiddenConfig,
    Mode,
    OpenConfig,
    Others,
    SimConfig,
)
from roadworthy.sim.state import COPLAYER, EGO, EVENT_COLLISION, EVENT_GOAL, HEADING, IS_PRESENT, SPEED, X, Y
from tests.evaluation.actors import BRAKE, COAST, SPEED_UP, Coin, Cruise, Wander
from tests.evaluation.rows import SHORT, Results, spec_of
from tests.sim.scenes import Actor, pack_of, scene


def run(
    pack: Pack,
    actor: Any,
    env: SimConfig,
    worlds: int,
    scenarios: int | None = None,
    forgets_trials: bool = False,
) -> Results:
    """Carry out an episode of each scenario."""
    results = Results()
    ledger = plan_ledger(pack, range(scenarios or len(pack)), 1, seed=2)
    spec = replace(spec_of(pack, lambda: actor, worlds, env), forgets_trials=forgets_trials)
    run_episodes(spec, spec.make_env(threads=1), one_by_one(ledger), results.append)
    assert results.cover(ledger)
    return results


class Watched(Wander):
    """Notes what the env holds before and after every step, for one world."""

    def __init__(self) -> None:
        self.frames: list[NDArray[np.float32]] = []
        self.starts: list[NDArray[np.float32]] = []

    def act(self, batch: Batch) -> Any:
        self.starts.append(self.env.agents[0, [X, Y, HEADING, SPEED]].copy())
        self.present = self.env.agent_flags[0, IS_PRESENT].copy()
        return super().act(batch)


@pytest.mark.row("TRIAL-7")
@pytest.mark.row("REC-2")
def test_a_trace_holds_every_step_of_every_trial_from_its_start_to_its_end(streets: Pack) -> None:
    env = replace(SHORT, episode=EpisodeConfig(3, 15))
    actor = Watched()
    (result,) = run(streets, actor, env, worlds=1, scenarios=1)
    trace = result.trace
    assert trace is not None
    assert trace.trial_count == 3
    assert trace.frame_count == result.episode.steps + 3, "each trial has its start too"
    # The state before a step is the frame before it: the start of a trial, or what the step before led to.
    before = [frame for trial in range(3) for frame in range(*trace.trial(trial).indices(10**6))[:-1]]
    seen = np.stack(actor.starts)[:, :, : trace.agent_count]
    traced = np.stack([trace.x, trace.y, trace.heading, trace.speed], axis=1)[before]
    driving = trace.active[before] & trace.active[np.array(before) + 1]
    assert driving.any()
    for line in range(3):
        assert (seen[:, line][driving] == traced[:, line][driving]).all()
    starts = traced[[0, trace.trial_starts[1] - 1, trace.trial_starts[2] - 2]]
    assert (starts == starts[0]).all(), "trials begin alike"
    assert not trace.actions[trace.trial_starts[:-1]].any()


def test_the_last_frame_shows_an_agent_at_its_goal(coins: Pack) -> None:
    results = run(coins, Coin(), SHORT, worlds=8, scenarios=8)
    arrived = [result for result in results if result.episode.outcomes["score"] == 1.0]
    assert len(arrived) == 4
    for result in arrived:
        trace = result.trace
        assert trace is not None
        assert trace.events[-1, 0] & EVENT_GOAL
        assert trace.present[-1, 0]
        goal = trace.goals[0, 0]
        assert np.hypot(trace.x[-1, 0] - goal[0], trace.y[-1, 0] - goal[1]) <= SHORT.goal.radius_m


def test_a_trace_holds_an_event_in_the_step_in_which_it_happened_and_in_no_other(streets: Pack) -> None:
    env = replace(SHORT, control=ControlConfig(rows=4), episode=EpisodeConfig(2, 40))
    stopped = 0
    for result in run(streets, Wander(), env, worlds=4):
        trace = result.trace
        assert trace is not None
        for row in result.trials:
            frames = trace.trial(row.trial)
            events = trace.events[frames, row.agent]
            for name, bit in (("goals_reached", EVENT_GOAL), ("collisions", EVENT_COLLISION)):
                assert row.figures[name] == ((events & bit) != 0).sum()
            assert not events[~trace.active[frames, row.agent]].any()
            stopped += int(not trace.active[frames.stop - 1, row.agent])
    assert stopped, "somebody stopped before the trial was over"


def test_a_world_draws_its_own_factors_and_an_episode_that_asks_for_others_fails(streets: Pack) -> None:
    results = Results()
    (planned,) = plan_ledger(streets, [0], 1, seed=2)
    asked = replace(planned, factors={"grip": 0.5})
    spec = spec_of(streets, Wander, worlds=1)
    run_episodes(spec, spec.make_env(threads=1), one_by_one([asked]), results.append)
    (result,) = results
    assert result.episode.status == "failed"
    assert "the ledger sets factors (grip)" in str(result.episode.error)


def test_rows_are_made_for_egos_alone_and_outcomes_are_their_means(streets: Pack) -> None:
    env = replace(SHORT, control=ControlConfig(rows=4, ego_share=0.5))
    for result in run(streets, Wander(), env, worlds=5):
        assert result.trace is not None
        egos = np.flatnonzero(result.trace.roles == 0).tolist()
        assert [row.agent for row in result.agents] == egos
        assert [(row.agent, row.trial) for row in result.trials] == [(agent, 0) for agent in egos]
        for name in ("score", "distance_m"):
            values = [row.figures[name] for row in result.agents]
            assert result.episode.outcomes[name] == pytest.approx(np.mean([v for v in values if v is not None]))


@pytest.mark.row("TRIAL-9")
def test_hidden_factors_are_recorded_where_they_vary(streets: Pack) -> None:
    hidden = HiddenConfig(grip=(0.5, 0.9), brake_gain=(0.7, 0.7), partners=3)
    results = run(streets, Cruise(), replace(SHORT, hidden=hidden), worlds=4)
    factors = [result.episode.factors for result in results]
    assert all(set(told) == {"grip", "brake_gain", "partner"} for told in factors)
    assert len({told["grip"] for told in factors}) == len(results)
    assert all(0.5 <= float(told["grip"]) <= 0.9 for told in factors)
    assert {told["partner"] for told in factors} <= {0.0, 1.0, 2.0}
    assert all(not result.episode.factors for result in run(streets, Cruise(), SHORT, worlds=4, scenarios=2))


class Forgetful(Wander):
    """Counts, row by row, the steps since it was told to forget."""

    def __init__(self) -> None:
        self.ages: list[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]] = []

    def start(self, info: PolicyInfo) -> None:
        super().start(info)
        self.age = np.full(self.env.row_count, -100)

    def act(self, batch: Batch) -> Any:
        self.ages.append((np.array(batch.active), self.age.copy(), batch.steps.copy()))
        self.age += 1
        return super().act(batch)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        super().reset(rows)
        self.age[rows] = 0


@pytest.mark.row("EVAL-8")
@pytest.mark.parametrize("trials", [1, 2])
def test_memory_begins_with_each_episode_and_lasts_over_its_trials(streets: Pack, trials: int) -> None:
    actor = Forgetful()
    run(streets, actor, replace(SHORT, episode=EpisodeConfig(trials, 20)), worlds=5)
    for active, age, steps in actor.ages:
        assert (age[active] == steps[active]).all()
    assert max(int(steps[active].max()) for active, _, steps in actor.ages if active.any()) > 20 * (trials - 1)


@pytest.mark.row("EVAL-8")
def test_memory_is_cleared_after_each_trial_where_that_is_asked_for(streets: Pack) -> None:
    actor = Forgetful()
    run(streets, actor, replace(SHORT, episode=EpisodeConfig(2, 20)), worlds=5, forgets_trials=True)
    ages = np.concatenate([age[active] for active, age, _ in actor.ages])
    steps = np.concatenate([steps[active] for active, _, steps in actor.ages])
    assert (ages[steps < 20] <= steps[steps < 20]).all()
    assert ages.max() < 20 <= steps.max()
    assert (ages >= 0).all()


@pytest.mark.row("EVAL-8")
def test_an_agent_that_starts_anew_in_a_running_world_has_forgotten(tmp_path_factory: pytest.TempPathFactory) -> None:
    scenes = [scene(Actor(5.0, speed=10.0), Actor(80.0, y=1.75, speed=4.0), id=f"s{k}", steps=21) for k in range(2)]
    pack = pack_of(tmp_path_factory.mktemp("respawn") / "respawn.pack", *scenes)
    actor = Forgetful()

    def straight_on(batch: Batch) -> Any:
        Forgetful.act(actor, batch)
        return np.tile(np.float32((4, 6)), (len(batch), 1))

    actor.act = straight_on  # type: ignore[method-assign]
    env = SimConfig(
        episode=EpisodeConfig(1, 40),
        control=ControlConfig(rows=2),
        goal=GoalConfig(at_goal=AtGoal.RESPAWN),
        open=OpenConfig(agents=2),
    )
    results = run(pack, actor, env, worlds=1)
    for result in results:
        attempts = [row.attempt for row in result.agents if row.agent == 0]
        assert attempts == list(range(len(attempts)))
        assert len(attempts) > 2
        firsts = [row.first_step for row in result.agents if row.agent == 0]
        assert firsts == sorted(set(firsts))
    young = [(int(age[0]), int(steps[0])) for active, age, steps in actor.ages if active[0]]
    assert any(age < step for age, step in young)
    assert all(age <= step for age, step in young)


@pytest.mark.row("EVAL-7")
def test_agents_that_find_no_place_are_counted(tmp_path_factory: pytest.TempPathFactory) -> None:
    pack = pack_of(tmp_path_factory.mktemp("full") / "full.pack", scene(Actor(5.0), id="full"))
    env = SimConfig(
        mode=Mode.OPEN,
        episode=EpisodeConfig(1, 5),
        control=ControlConfig(rows=64),
        open=OpenConfig(agents=64, goals=1, goal_spacing_m=5.0, spawn_gap_m=12.0),
    )
    (result,) = run(pack, Cruise(), env, worlds=1)
    missing = result.episode.outcomes["failed_spawns"]
    assert missing is not None
    assert missing > 0
    assert len(result.agents) == 64 - missing


def test_a_scenario_that_nobody_can_drive_is_a_failed_row(tmp_path_factory: pytest.TempPathFactory) -> None:
    scenes = [scene(Actor(5.0, first=50), id="empty"), scene(Actor(5.0), id="fine")]
    pack = pack_of(tmp_path_factory.mktemp("odd") / "odd.pack", *scenes)
    env = replace(SHORT, control=ControlConfig(who=Control.SDC, others=Others.REPLAY, rows=4))
    results = run(pack, Cruise(), env, worlds=2)
    statuses = {result.episode.scenario_id: result.episode for result in results}
    assert statuses["fine"].status == "completed"
    assert statuses["empty"].status == "failed"
    assert "empty" in (statuses["empty"].error or "")


def test_wall_seconds_and_places_are_told(streets: Pack) -> None:
    results = run(streets, Cruise(), SHORT, worlds=3)
    rows: list[EpisodeResult] = list(results)
    assert {result.episode.world for result in rows} == {0, 1, 2}
    for result in rows:
        assert result.episode.wall_s > 0.0
        assert result.episode.last_step - result.episode.first_step + 1 == result.episode.steps


class Brakes(Cruise):
    """Stops."""

    def act(self, batch: Batch) -> Any:
        return np.tile(np.float32(BRAKE), (len(batch), 1))


class Hurries(Cruise):
    """Speeds up."""

    def act(self, batch: Batch) -> Any:
        return np.tile(np.float32(SPEED_UP), (len(batch), 1))


@pytest.mark.row("TRIAL-9")
def test_the_partner_that_an_episode_has_drawn_drives_its_coplayers(streets: Pack) -> None:
    env = replace(SHORT, control=ControlConfig(rows=4, ego_share=0.5), hidden=HiddenConfig(partners=2))
    partners: set[float | str] = set()
    for result in run(streets, CoplayerPolicy(Cruise, [Brakes, Hurries]), env, worlds=4):
        trace, partner = result.trace, result.episode.factors["partner"]
        assert trace is not None
        partners.add(partner)
        acted = trace.active.copy()
        acted[trace.trial_starts[:-1]] = False
        for agent in np.flatnonzero(trace.roles <= COPLAYER):
            chosen = {tuple(action) for action in trace.actions[acted[:, agent], agent].tolist()}
            assert chosen == {COAST if trace.roles[agent] == EGO else (BRAKE, SPEED_UP)[int(partner)]}
    assert partners == {0.0, 1.0}
