"""What changes in the course of training: the learning rate, and the number of trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roadworthy.errors import ConfigError
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import AtGoal, GoalConfig
from roadworthy.training.config import PpoConfig, TrialsStage
from roadworthy.training.progress import Progress
from roadworthy.training.schedule import env_config, learning_rate, trials_at
from tests.training.small import config, sim, trainer

STAGES = (TrialsStage(0.0, 1), TrialsStage(0.3, 2), TrialsStage(0.6, 3))


def test_the_learning_rate_follows_half_a_cosine() -> None:
    ppo = PpoConfig(learning_rate=1e-2, final_learning_rate=1e-3)
    rates = [learning_rate(ppo, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0, 1.2)]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[2], rates[4], rates[5]) == pytest.approx((1e-2, 5.5e-3, 1e-3, 1e-3))
    assert rates[0] - rates[1] < rates[1] - rates[2]


def test_trials_are_those_of_the_last_stage_that_has_begun() -> None:
    settings = config(env=sim(4), trials=STAGES)
    assert [trials_at(settings, share) for share in (0.0, 0.29, 0.3, 0.59, 0.6, 1.0)] == [1, 1, 2, 2, 3, 3]
    assert trials_at(config(env=sim(4)), 0.5) == 4
    assert env_config(settings, 2).episode == replace(settings.env.episode, trials=2)


@pytest.mark.row("TRIAL-10")
@pytest.mark.row("TRIAL-8")
def test_a_curriculum_raises_the_number_of_trials_and_figures_of_trials_appear(pack: Pack, tmp_path: Path) -> None:
    told: list[Progress] = []
    made = trainer(config(trials=STAGES, steps=1500), pack, tmp_path)
    clocks: list[int] = []

    def report(progress: Progress) -> None:
        told.append(progress)
        clocks.append(int(made.collector.clock))

    made.run(report)
    trials = [progress.trials for progress in told]
    assert trials == sorted(trials)
    assert set(trials) == {1, 2, 3}
    for progress in told:
        # A stage holds for the steps that were to be made when its update began.
        learned = 0 if progress.update == 1 else told[progress.update - 2].step
        assert progress.trials == trials_at(made.config, learned / made.config.steps)
    assert not any("trial_0_score" in progress.figures for progress in told if progress.trials == 1)
    last = [progress.figures for progress in told if progress.trials == 3][-1]
    deltas = [last["ada_delta_trial_1_minus_0"], last["ada_delta_trial_2_minus_0"]]
    scores = [last[f"trial_{k}_score"] for k in range(3)]
    assert deltas == pytest.approx([scores[1] - scores[0], scores[2] - scores[0]], abs=1e-5)
    assert {"n_trials_completed", "n_trials_goal_reached", "n_trials_timed_out", "trial_mean_length"} <= last.keys()
    # The draws continue over the change of stage: none is repeated.
    assert clocks == [made.config.ppo.horizon * (k + 1) for k in range(len(told))]


def test_a_stage_that_the_env_cannot_run_is_an_error_before_training() -> None:
    env = sim(goal=GoalConfig(AtGoal.RESPAWN))
    with pytest.raises(ConfigError, match=r"at_goal is 'respawn' with episode\.trials = 3"):
        config(env=env, trials=(TrialsStage(0.0, 1), TrialsStage(0.9, 3)))


@pytest.mark.parametrize("stages", [((0.1, 1),), ((0.0, 1), (0.5, 2), (0.5, 3)), ((0.0, 1), (0.6, 2), (0.3, 3))])
def test_stages_out_of_order_are_an_error(stages: tuple[tuple[float, int], ...]) -> None:
    with pytest.raises(ConfigError, match="expected ascending shares of the training, the first one 0"):
        config(trials=tuple(TrialsStage(*stage) for stage in stages))
