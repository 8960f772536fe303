"""The learner learns to use in a trial what it observed in the trial before, with memory and not without."""

from __future__ import annotations

import pytest

from roadworthy.policy.config import PolicyConfig, TransformerConfig
from roadworthy.policy.network import PolicyNetwork
from roadworthy.training.config import PpoConfig
from tests.training.doors import learned, won

CHANCE = 0.5


def trained(core: str, *, trial_steps: int, horizon: int, steps: int) -> PolicyNetwork:
    """A small network, after so many steps of each row."""
    shape = TransformerConfig(layers=2, heads=2, context=2 * trial_steps)
    network = PolicyConfig(core=core, encoder=16, encoder_layers=1, hidden=32, transformer=shape)
    ppo = PpoConfig(horizon=horizon, num_minibatches=4, learning_rate=3e-3, gamma=0.9)
    return learned(network, ppo, steps // horizon, trial_steps=trial_steps)


def assert_adapts(policy: PolicyNetwork, trial_steps: int) -> None:
    """The first trial is won by chance. The second is won with memory; with memory cleared, by chance again."""
    first, second = won(policy, trial_steps=trial_steps)
    assert first == pytest.approx(CHANCE, abs=0.1)
    assert second > 0.9
    assert won(policy, trial_steps=trial_steps, forgets=True) == [pytest.approx(CHANCE, abs=0.1)] * 2


@pytest.mark.row("TRIAL-6")
def test_a_transformer_learns_to_use_in_the_second_trial_what_the_first_has_shown() -> None:
    """Segments are as long as trials, so what is shown lies in the segment before: no gradient leads there."""
    assert_adapts(trained("transformer", trial_steps=6, horizon=6, steps=480), 6)


@pytest.mark.long
@pytest.mark.row("TRIAL-6")
@pytest.mark.parametrize(
    ("core", "horizon"),
    # An LSTM has to learn what to keep, and needs both trials in a segment for that; a transformer keeps everything.
    [("transformer", 5), ("transformer", 20), ("transformer", 40), ("lstm", 40)],
)
def test_memory_carries_over_from_trial_to_trial_of_many_steps(core: str, horizon: int) -> None:
    """Shown at the start of a trial of 20 steps, and asked for at the start of the next."""
    assert_adapts(trained(core, trial_steps=20, horizon=horizon, steps=1600), 20)


@pytest.mark.long
def test_without_memory_there_is_nothing_to_gain() -> None:
    policy = trained("mlp", trial_steps=6, horizon=6, steps=480)
    assert won(policy, trial_steps=6) == [pytest.approx(CHANCE, abs=0.1)] * 2
