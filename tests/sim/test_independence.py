"""An episode is the same bits alone, in any slot and in any batch, in every trial, whatever happens at the goal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.policy.experts.drive import DriveExpert
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    AtGoal,
    Control,
    ControlConfig,
    DisturbConfig,
    EpisodeConfig,
    GoalConfig,
    InfractionConfig,
    Mode,
    OnInfraction,
    OpenConfig,
    Others,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES
from roadworthy.sim.state import TRIAL_ENDED

STEPS, TRIALS, SCENARIO, SEED = 40, 2, 1, 77


class Seen(NamedTuple):
    """What the rows of one world got, step by step, as bytes; and their figures."""

    steps: list[bytes]  # observations, rewards and signals
    starts: list[bytes]  # observations before the first step, and after each step that ended a trial
    trials: list[int]  # steps that ended a trial
    figures: bytes
    most_goals: int


def settings(at_goal: AtGoal, mode: Mode) -> SimConfig:
    """Goals so near that an agent reaches more of them than there is room for."""
    return SimConfig(
        mode=mode,
        init_steps=60,  # recordings, whose ends are the goals, last 30 more steps
        open=OpenConfig(agents=4, traffic=3, goals=2, goal_spacing_m=5.0),
        goal=GoalConfig(at_goal, 3.0),
        control=ControlConfig(Control.AGENTS, Others.IDM, rows=4),
        episode=EpisodeConfig(1 if at_goal is AtGoal.RESPAWN else TRIALS, STEPS),
        infraction=InfractionConfig(off_road=OnInfraction.REMOVE),
        disturb=DisturbConfig(blind_rate=0.3, phantom_brake_rate=0.2, dropout=0.1, action_noise=0.05),
    )


def actions_of(pack: Pack, config: SimConfig) -> NDArray[np.float32]:
    """(steps, rows, 2) what an expert does in a trial of the episode, but for one agent that steers off the road."""
    env = DriveEnv(pack, 1, config, sampling=False)
    env.assign(0, SCENARIO, SEED)
    env.reset()
    expert, taken = DriveExpert(env), []
    for _ in range(STEPS):
        chosen = expert.act().copy()
        chosen[1] = [6, 12]
        taken.append(chosen)
        env.step(chosen)
    return np.array(taken)


def drive(pack: Pack, config: SimConfig, worlds: int, slot: int, actions: NDArray[np.float32]) -> Seen:
    """Drive the episode in a slot, with other episodes in the others, by the same actions in every trial."""
    env = DriveEnv(pack, worlds, config, sampling=False)
    rng = np.random.default_rng(worlds + 100 * slot)
    for world in range(worlds):
        if world == slot:
            env.assign(world, SCENARIO, SEED)
        else:
            for k in range(6):
                env.assign(world, int(rng.integers(len(pack))), 1000 + k)
    env.reset()
    rows = slice(slot * env.rows_per_world, (slot + 1) * env.rows_per_world)
    width = actions.shape[1]
    everything, starts, ends, now = [], [env.observations[rows].tobytes()], [], 0
    for step in range(STEPS * config.episode.trials):
        chosen = rng.integers(0, env.action_choices, (env.row_count, 2)).astype(np.float32)
        chosen[rows][:width] = actions[now]
        env.step(chosen)
        s = env.signals
        parts = (env.observations, env.rewards, s.active, s.trial_ended, s.episode_ended, s.timed_out)
        everything.append(b"".join(part[rows].tobytes() for part in parts))
        now += 1
        if env.clocks[slot, TRIAL_ENDED] and config.episode.trials > 1:
            ends.append(step)
            starts.append(env.observations[rows].tobytes())
            now = 0
        if slot in env.resting_worlds:
            break
    ended = env.ended_episodes()
    own = (ended.rows >= rows.start) & (ended.rows < rows.stop)
    most = np.nanmax(ended.trials[own][:, :, TRIAL_FIGURES.index("goals_reached")])
    return Seen(everything, starts, ends, ended.figures[own].tobytes() + ended.trials[own].tobytes(), int(most))


@pytest.mark.row("SIM-11")
@pytest.mark.row("TRIAL-4")
@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("at_goal", list(AtGoal), ids=lambda word: word.value)
def test_an_episode_is_the_same_bits_wherever_it_runs(towns: Pack, at_goal: AtGoal, mode: Mode) -> None:
    config = settings(at_goal, mode)
    actions = actions_of(towns, config)
    alone = drive(towns, config, 1, 0, actions)
    goals = config.open.goals if mode is Mode.OPEN else 1
    assert alone.most_goals > goals if at_goal is AtGoal.NEW_GOAL else alone.most_goals == goals
    for worlds, slots in ((3, (0, 1, 2)), (8, (0, 5))):
        for slot in slots:
            among = drive(towns, config, worlds, slot, actions)
            for step, (one, other) in enumerate(zip(alone.steps, among.steps, strict=True)):
                assert one == other, (worlds, slot, step)
            assert alone.figures == among.figures, (worlds, slot)


@pytest.mark.row("TRIAL-4")
@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("at_goal", [word for word in AtGoal if word is not AtGoal.RESPAWN], ids=lambda w: w.value)
def test_every_trial_of_an_episode_is_the_same_bits(towns: Pack, at_goal: AtGoal, mode: Mode) -> None:
    config = settings(at_goal, mode)
    seen = drive(towns, config, 3, 1, actions_of(towns, config))
    assert len(seen.trials) == TRIALS
    length = seen.trials[0] + 1
    assert [end + 1 for end in seen.trials] == [length * (k + 1) for k in range(TRIALS)]
    assert seen.starts[0] == seen.starts[1], "a trial starts as the episode did"
    for step in range(length - 1):
        assert seen.steps[step] == seen.steps[length + step], step
