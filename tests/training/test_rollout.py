"""What a collector writes down, against what its env said."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from roadworthy.policy.config import CoreKind, TraitConfig
from roadworthy.scenario.pack import Pack
from roadworthy.training.loop import Trainer
from roadworthy.training.segment import Cut, Segment
from tests.training.journal import Journal
from tests.training.small import config, copied, network, sim, trainer

GOAL_REWARD = 1.0  # what a goal is worth; no other term comes near it


def collect(made: Trainer, count: int) -> list[Cut]:
    """The next segments, as copies."""
    return [copied(made.collector.collect()) for _ in range(count)]


def columns(segments: list[Segment], name: str) -> Iterator[Tensor]:
    for segment in segments:
        yield from getattr(segment, name).unbind(1)


@pytest.mark.row("PPO-2")
@pytest.mark.row("TRIAL-6")
@pytest.mark.parametrize("trials", [1, 3])
def test_a_segment_holds_what_the_env_said_step_by_step(trials: int, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(env=sim(trials, ego_share=0.5)), pack, tmp_path)
    journal = Journal(made)
    segments = [cut.segment for cut in collect(made, 4)]
    names = ("observations", "actions", "active", "learns", "rewards", "ended", "trial_ended", "goes_on")
    told = zip(*(columns(segments, name) for name in names), journal.steps, strict=True)
    for observations, actions, active, learns, rewards, ended, trial_ended, goes_on, seen in told:
        assert torch.equal(observations, seen.observations)
        assert torch.equal(made.policy.head.to_env(actions), seen.actions)
        assert torch.equal(active, seen.active)
        assert torch.equal(learns, seen.active & seen.is_ego)
        assert torch.equal(rewards, seen.rewards)
        assert torch.equal(ended, seen.episode_ended)
        assert torch.equal(trial_ended, seen.trial_ended)
        # The chain stops at the episode's end, at the trial's, and where the next observation is inactive.
        assert torch.equal(goes_on, seen.active_after & ~seen.episode_ended & ~seen.trial_ended)
    both = torch.cat([s.learns for s in segments]), torch.cat([s.active & ~s.learns for s in segments])
    assert all(mask.any() for mask in both)


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("trials", [1, 3])
def test_the_step_that_reaches_the_goal_keeps_its_reward(trials: int, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(env=sim(trials)), pack, tmp_path)
    segments = [cut.segment for cut in collect(made, 4)]
    reached = [s.rewards[:, :-1] > 0.9 * GOAL_REWARD for s in segments]
    left = [~s.active[:, 1:] for s in segments]
    count = 0
    for segment, at_goal, is_away in zip(segments, reached, left, strict=True):
        last_steps = at_goal & is_away
        assert segment.learns[:, :-1][last_steps].all()
        assert not segment.goes_on[:, :-1][last_steps].any()
        count += int(last_steps.sum())
    assert count > 0


@pytest.mark.row("PPO-2")
@pytest.mark.row("TRIAL-6")
@pytest.mark.parametrize("core", CoreKind)
def test_memory_is_cleared_where_an_episode_ends_and_kept_where_a_trial_does(
    core: CoreKind, pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(core, env=sim(2), horizon=1), pack, tmp_path)
    fresh = made.policy.memory(1)
    cleared = kept = 0
    for _ in range(30):
        segment, before, begun_anew = made.collector.collect()
        memory, ended = made.collector.memory, segment.ended[:, 0]
        assert not before.length[begun_anew].any()
        had_begun = (before.length > 0) | segment.active[:, 0]
        assert torch.equal(memory.length > 0, had_begun & ~ended)
        for row in ended.nonzero().flatten():
            # Of a cache, what is not kept is never looked at: its numbers may stay.
            for name in ("length", "hidden", "cell", "is_kept"):
                if hasattr(memory, name):
                    assert torch.equal(getattr(memory, name)[row], getattr(fresh, name)[0])
        cleared += int(ended.sum())
        kept += int((segment.trial_ended[:, 0] & ~ended).sum())
    assert cleared > 0
    assert kept > 0


@pytest.mark.row("PPO-2")
def test_worlds_get_out_of_step_and_those_that_begin_anew_begin_without_memory(pack: Pack, tmp_path: Path) -> None:
    """An episode of 21 steps is four segments of 5 long: a group of worlds for each but the first, once."""
    made = trainer(config(CoreKind.LSTM, env=sim(3), horizon=5, worlds=6), pack, tmp_path)
    journal = Journal(made)
    cuts = collect(made, 6)
    for number, cut in enumerate(cuts):
        expected = journal.begun_before.get(5 * number, torch.zeros_like(cut.begun_anew))
        assert torch.equal(cut.begun_anew, expected)
        assert not cut.memory.length[cut.begun_anew].any()
        assert not cut.memory.hidden[cut.begun_anew].any()
    assert [int(cut.begun_anew.sum()) for cut in cuts] == [0, 8, 4, 4, 0, 0]
    assert cuts[1].memory.length[~cuts[1].begun_anew].any()


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize(("horizon", "begun"), [(14, [0, 12, 0]), (21, [0, 0, 0])])
def test_worlds_get_out_of_step_where_an_episode_is_longer_than_a_segment(
    horizon: int, begun: list[int], pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(env=sim(3), horizon=horizon, worlds=6), pack, tmp_path)
    assert [int(cut.begun_anew.sum()) for cut in collect(made, 3)] == begun


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("trials", [1, 3])
def test_where_the_time_was_up_the_value_of_the_last_observation_may_count(
    trials: int, pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(env=sim(trials), bootstrap_timeouts=True), pack, tmp_path)
    journal = Journal(made)
    segments = [cut.segment for cut in collect(made, 4)]
    count = 0
    for final_values, seen in zip(columns(segments, "final_values"), journal.steps, strict=True):
        with torch.no_grad():
            memory = made.policy.memory(len(final_values))
            worth = made.policy.step(seen.final_observation, seen.timed_out, memory).values
        torch.testing.assert_close(final_values, torch.where(seen.timed_out, worth, 0.0), rtol=1e-5, atol=1e-5)
        count += int((seen.timed_out & seen.active).sum())
    assert count > 0


@pytest.mark.row("PPO-2")
def test_without_the_setting_a_time_out_is_worth_nothing(pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(env=sim(2)), pack, tmp_path)
    journal = Journal(made)
    segments = [cut.segment for cut in collect(made, 4)]
    assert any(seen.timed_out.any() for seen in journal.steps)
    assert not any(segment.final_values.any() for segment in segments)


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("core", CoreKind)
def test_the_value_behind_the_cut_is_that_of_the_next_segment(core: CoreKind, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(core, env=sim(2)), pack, tmp_path)
    cuts = collect(made, 4)
    for before, after in pairwise(cuts):
        goes_on = before.segment.goes_on[:, -1] & ~after.begun_anew
        assert goes_on.any()
        following = after.segment.values[:, 0]
        torch.testing.assert_close(before.segment.last_values[goes_on], following[goes_on], rtol=1e-5, atol=1e-5)


@pytest.mark.row("PPO-3")
def test_traits_are_drawn_for_each_episode_and_stay_for_its_length(pack: Pack, tmp_path: Path) -> None:
    policy = network(traits=TraitConfig(entropy=(0.0, 0.1), discount=(0.9, 0.99)))
    made = trainer(config(env=sim(2), policy=policy), pack, tmp_path)
    collect(made, 2)  # in which worlds get out of step
    cuts = collect(made, 5)
    assert not any(cut.begun_anew.any() for cut in cuts)
    segments = [cut.segment for cut in cuts]
    ended = torch.cat([s.ended for s in segments], 1)[:, :-1]
    traits = torch.cat([s.traits for s in segments], 1)
    is_same = (traits[:, 1:] == traits[:, :-1]).all(-1)
    assert torch.equal(is_same, ~ended)
    assert traits.min() >= 0.0
    assert traits.max() < 1.0
    assert traits[:, 0].unique().numel() == traits[:, 0].numel()
