"""The truth test: what training computes of a segment is what the rollout computed, on the trainer's own buffers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from roadworthy.policy.checkpoint import save_policy
from roadworthy.policy.config import CoreKind, TraitConfig
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Actions, ObserveConfig
from roadworthy.training.config import CoplayerConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.segment import Cut
from tests.policy.networks import small_policy
from tests.training.small import config, copied, network, sim, trainer

TOLERANCE = 1e-5


def computed_anew(made: Trainer, cut: Cut) -> tuple[Tensor, Tensor]:
    """(R, T) importance ratios and values of a segment's steps, all at once as in training."""
    segment, policy = cut.segment, made.policy
    traits = segment.traits if segment.traits.shape[-1] else None
    with torch.no_grad():
        output = policy.sequence(segment.observations, segment.active, segment.ended, cut.memory, traits)
        ratios = (policy.head.log_prob(output.scores, segment.actions) - segment.log_probs).exp()
    return ratios, output.values


def require_truth(made: Trainer, cut: Cut) -> None:
    ratios, values = computed_anew(made, cut)
    active = cut.segment.active
    assert (ratios - 1.0)[active].abs().max() <= TOLERANCE
    torch.testing.assert_close(values[active], cut.segment.values[active], rtol=TOLERANCE, atol=TOLERANCE)


def require_all_kinds_of_boundaries(cuts: list[Cut], trials: int, core: CoreKind) -> None:
    """The segments begin in the middle of episodes and hold ends, absences and returns."""
    assert any(((cut.memory.length > 0) & cut.segment.active[:, 0]).any() for cut in cuts)
    assert any(cut.segment.ended[:, :-1].any() for cut in cuts)
    assert any((cut.segment.active[:, 1:] & ~cut.segment.active[:, :-1]).any() for cut in cuts)
    if trials > 1:
        assert any((cut.segment.trial_ended & ~cut.segment.ended)[:, :-1].any() for cut in cuts)
    if core is CoreKind.TRANSFORMER:
        assert any((cut.memory.length > cut.memory.is_kept.shape[1]).any() for cut in cuts)


@pytest.mark.row("PPO-5")
@pytest.mark.row("TRIAL-6")
@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("core", CoreKind)
def test_before_an_update_every_ratio_is_one_and_every_value_the_stored_one(
    core: CoreKind, trials: int, pack: Pack, tmp_path: Path
) -> None:
    """Segments of 8 steps, trials of 7, a context of 3 or 5, and updates in between: memory goes over every cut."""
    observe = ObserveConfig(partners=2, lanes=3, edges=2, lights=1)
    partner = save_policy(tmp_path / "partner", small_policy(CoreKind.LSTM, observe=observe))
    env = sim(trials, ego_share=0.5)
    settings = config(
        env=env,
        policy=network(core, context=3 if trials == 1 else 5),
        coplayers=CoplayerConfig((partner,)),
        learning_rate=1e-2,
    )
    made = trainer(settings, pack, tmp_path)
    cuts = []
    for number in range(4):
        cut = made.collector.collect()
        require_truth(made, cut)
        cuts.append(copied(cut))
        made.learner.update(cut, number, settings.ppo.learning_rate)
    require_all_kinds_of_boundaries(cuts, trials, core)
    # The test can fail: with weights that have moved, the ratios of the last segment are others.
    assert (computed_anew(made, cuts[-1])[0] - 1.0)[cuts[-1].segment.active].abs().max() > 100 * TOLERANCE


@pytest.mark.row("PPO-5")
@pytest.mark.parametrize("actions", Actions)
def test_ratios_are_one_with_traits_and_any_kind_of_actions(actions: Actions, pack: Pack, tmp_path: Path) -> None:
    traits = TraitConfig(entropy=(0.0, 0.05), discount=(0.8, 0.99))
    settings = config(env=sim(2, actions=actions), policy=network(traits=traits))
    made = trainer(settings, pack, tmp_path)
    for number in range(3):
        cut = made.collector.collect()
        require_truth(made, cut)
        made.learner.update(cut, number, settings.ppo.learning_rate)


@pytest.mark.row("PPO-5")
@pytest.mark.parametrize("core", [CoreKind.LSTM, CoreKind.TRANSFORMER])
def test_the_memory_that_a_segment_began_with_matters(core: CoreKind, pack: Pack, tmp_path: Path) -> None:
    """Without it the ratios are wrong: the truth test looks at what it is about."""
    made = trainer(config(core, env=sim(3)), pack, tmp_path)
    made.collector.collect()
    cut = made.collector.collect()
    require_truth(made, cut)
    begun = cut.memory.length > 0
    forgotten = cut._replace(memory=made.policy.memory(len(begun)))
    ratios, _ = computed_anew(made, forgotten)
    assert (ratios - 1.0)[begun][:, 0][cut.segment.active[begun][:, 0]].abs().max() > 100 * TOLERANCE
