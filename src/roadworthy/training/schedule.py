"""What changes during a training run: the learning rate, and the number of trials per episode."""

from __future__ import annotations

import math
from dataclasses import replace

from roadworthy.sim.config import SimConfig
from roadworthy.training.config import PpoConfig, TrainConfig


def learning_rate(config: PpoConfig, share: float) -> float:
    """Return the learning rate at a share of the training: a half cosine from the first rate to the final one."""
    falling = 0.5 * (1.0 + math.cos(math.pi * min(max(share, 0.0), 1.0)))
    return config.final_learning_rate + falling * (config.learning_rate - config.final_learning_rate)


def trials_at(config: TrainConfig, share: float) -> int:
    """Return the number of trials per episode at a share of the training."""
    reached = [stage.trials for stage in config.trials if stage.start <= share]
    return reached[-1] if reached else config.env.episode.trials


def env_config(config: TrainConfig, trials: int) -> SimConfig:
    """Return the simulation of a stage of the curriculum."""
    partners = max(len(config.coplayers.checkpoints), 1)
    return replace(
        config.env,
        episode=replace(config.env.episode, trials=trials),
        hidden=replace(config.env.hidden, partners=partners),
    )
