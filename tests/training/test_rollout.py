"""Segments of a collector, compared with the signals of its env."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from roadworthy.policy.config import ConditioningConfig
from roadworthy.scenario.pack import Pack
from roadworthy.training.loop import Trainer
from roadworthy.training.segment import RolloutBatch, Segment
from tests.policy.networks import CORES
from tests.training.journal import Journal
from tests.training.small import config, copied, network, sim, trainer

GOAL_REWARD = 1.0  # what a goal is worth; no other term comes near it


def collect(made: Trainer, count: int) -> list[RolloutBatch]:
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
    segments = [batch.segment for batch in collect(made, 4)]
    names = ("observations", "actions", "active", "loss_mask", "rewards", "ended", "trial_ended", "not_done")
    told = zip(*(columns(segments, name) for name in names), journal.steps, strict=True)
    for observations, actions, active, loss_mask, rewards, ended, trial_ended, not_done, seen in told:
        assert torch.equal(observations, seen.observations)
        assert torch.equal(made.policy.head.to_env(actions), seen.actions)
        assert torch.equal(active, seen.active)
        assert torch.equal(loss_mask, seen.active & seen.is_ego)
        assert torch.equal(rewards, seen.rewards)
        assert torch.equal(ended, seen.episode_ended)
        assert torch.equal(trial_ended, seen.trial_ended)
        # The chain stops at the episode's end, at the trial's, and where the next observation is inactive.
        assert torch.equal(not_done, seen.active_after & ~seen.episode_ended & ~seen.trial_ended)
    both = torch.cat([s.loss_mask for s in segments]), torch.cat([s.active & ~s.loss_mask for s in segments])
    assert all(mask.any() for mask in both)


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("trials", [1, 3])
def test_the_step_that_reaches_the_goal_keeps_its_reward(trials: int, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(env=sim(trials)), pack, tmp_path)
    segments = [batch.segment for batch in collect(made, 4)]
    reached = [s.rewards[:, :-1] > 0.9 * GOAL_REWARD for s in segments]
    left = [~s.active[:, 1:] for s in segments]
    count = 0
    for segment, at_goal, is_away in zip(segments, reached, left, strict=True):
        last_steps = at_goal & is_away
        assert segment.loss_mask[:, :-1][last_steps].all()
        assert not segment.not_done[:, :-1][last_steps].any()
        count += int(last_steps.sum())
    assert count > 0


@pytest.mark.row("PPO-2")
@pytest.mark.row("TRIAL-6")
@pytest.mark.parametrize("core", CORES)
def test_memory_is_cleared_where_an_episode_ends_and_kept_where_a_trial_does(
    core: str, pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(core, env=sim(2), horizon=1), pack, tmp_path)
    fresh = made.policy.memory(1)
    cleared = kept = 0
    for _ in range(30):
        segment, before, was_reset = made.collector.collect()
        memory, ended = made.collector.memory, segment.ended[:, 0]
        assert not before.length[was_reset].any()
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
    made = trainer(config("lstm", env=sim(3), horizon=5, worlds=6), pack, tmp_path)
    journal = Journal(made)
    batches = collect(made, 6)
    for number, batch in enumerate(batches):
        expected = journal.begun_before.get(5 * number, torch.zeros_like(batch.was_reset))
        assert torch.equal(batch.was_reset, expected)
        assert not batch.memory.length[batch.was_reset].any()
        assert not batch.memory.hidden[batch.was_reset].any()
    assert [int(batch.was_reset.sum()) for batch in batches] == [0, 8, 4, 4, 0, 0]
    assert batches[1].memory.length[~batches[1].was_reset].any()


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize(("horizon", "begun"), [(14, [0, 12, 0]), (21, [0, 0, 0])])
def test_worlds_get_out_of_step_where_an_episode_is_longer_than_a_segment(
    horizon: int, begun: list[int], pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(env=sim(3), horizon=horizon, worlds=6), pack, tmp_path)
    assert [int(batch.was_reset.sum()) for batch in collect(made, 3)] == begun


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("trials", [1, 3])
def test_where_the_time_was_up_the_value_of_the_last_observation_may_count(
    trials: int, pack: Pack, tmp_path: Path
) -> None:
    made = trainer(config(env=sim(trials), bootstrap_timeouts=True), pack, tmp_path)
    journal = Journal(made)
    segments = [batch.segment for batch in collect(made, 4)]
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
    segments = [batch.segment for batch in collect(made, 4)]
    assert any(seen.timed_out.any() for seen in journal.steps)
    assert not any(segment.final_values.any() for segment in segments)


@pytest.mark.row("PPO-2")
@pytest.mark.parametrize("core", CORES)
def test_the_value_behind_the_cut_is_that_of_the_next_segment(core: str, pack: Pack, tmp_path: Path) -> None:
    made = trainer(config(core, env=sim(2)), pack, tmp_path)
    batches = collect(made, 4)
    for before, after in pairwise(batches):
        not_done = before.segment.not_done[:, -1] & ~after.was_reset
        assert not_done.any()
        following = after.segment.values[:, 0]
        torch.testing.assert_close(before.segment.last_values[not_done], following[not_done], rtol=1e-5, atol=1e-5)


@pytest.mark.row("PPO-3")
def test_conditioning_is_drawn_for_each_episode_and_stays_for_its_length(pack: Pack, tmp_path: Path) -> None:
    policy = network(conditioning=ConditioningConfig(ent_coef=(0.0, 0.1), gamma=(0.9, 0.99)))
    made = trainer(config(env=sim(2), policy=policy), pack, tmp_path)
    collect(made, 2)  # in which worlds get out of step
    batches = collect(made, 5)
    assert not any(batch.was_reset.any() for batch in batches)
    segments = [batch.segment for batch in batches]
    ended = torch.cat([s.ended for s in segments], 1)[:, :-1]
    conditioning = torch.cat([s.conditioning for s in segments], 1)
    is_same = (conditioning[:, 1:] == conditioning[:, :-1]).all(-1)
    assert torch.equal(is_same, ~ended)
    assert conditioning.min() >= 0.0
    assert conditioning.max() < 1.0
    assert conditioning[:, 0].unique().numel() == conditioning[:, 0].numel()
