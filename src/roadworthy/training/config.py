"""Settings of a training run, with defaults and meanings.

PPO settings have the names of CleanRL, and those of PufferLib for what CleanRL does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from roadworthy.checks import above, at_least, between
from roadworthy.errors import ConfigError
from roadworthy.policy.config import PolicyConfig
from roadworthy.sim.config import SimConfig
from roadworthy.sources import expanded


class Precision(Enum):
    """The dtype of the networks' arithmetic; weights, returns and losses are always float32."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Compile(Enum):
    """Whether torch.compile compiles the networks before the first step."""

    AUTO = "auto"  # on a GPU
    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class PpoConfig:
    """The learner: PPO with V-trace."""

    renamed_keys: ClassVar = {
        "minibatches": "num_minibatches",
        "passes": "update_epochs",
        "discount": "gamma",
        "trace_decay": "gae_lambda",
        "clip": "clip_coef",
        "value_clip": "vf_clip_coef",
        "value_weight": "vf_coef",
        "entropy": "ent_coef",
        "max_gradient": "max_grad_norm",
        "ratio_clip": "vtrace_rho_clip",
        "trace_clip": "vtrace_c_clip",
        "priority": "prio_alpha",
    }

    horizon: int = 64
    # Number of steps that each row contributes to an update.
    num_minibatches: int = 8
    # Number of minibatches that the rows are split into; each one is a gradient step.
    shards: int = 1
    # Number of equal parts of the rows that each minibatch takes equal shares of; two shards learn like two processes.
    update_epochs: int = 1
    # Number of passes over all rows in each update.
    learning_rate: float = 3e-4
    # Learning rate of Adam at the start of training.
    final_learning_rate: float = 0.0
    # Learning rate at the end of training, which a half cosine leads to.
    gamma: float = 0.98
    # Discount factor of rewards per step.
    gae_lambda: float = 0.95
    # Lambda of generalized advantage estimation.
    clip_coef: float = 0.2
    # Surrogate clipping coefficient: how far the probability ratio may move from 1 before its gradient is cut.
    vf_clip_coef: float = 0.2
    # Clipping coefficient of the value loss: how far a value may move from its old one before its gradient is cut.
    vf_coef: float = 1.0
    # Coefficient of the value loss.
    ent_coef: float = 0.01
    # Coefficient of the entropy bonus, unless the policy is conditioned on it with `policy.conditioning.ent_coef`.
    max_grad_norm: float = 0.5
    # Maximum norm of gradients; longer ones are scaled down to it.
    vtrace_rho_clip: float = 1.0
    # Upper limit of the importance ratio of a step in its own advantage (V-trace's rho).
    vtrace_c_clip: float = 1.0
    # Upper limit of the importance ratio with which later steps enter an advantage (V-trace's c).
    prio_alpha: float = 0.0
    # Exponent of prioritized sampling of rows by the sum of their absolute advantages; 0 takes each row once.
    bootstrap_timeouts: bool = False
    # Whether the value of the last observation replaces the missing future where an episode ends by its time limit.
    precision: Precision = Precision.FLOAT32
    # The dtype of the networks' arithmetic.
    compile: Compile = Compile.AUTO
    # Whether torch.compile compiles the networks; auto does so on a GPU.

    def __post_init__(self) -> None:
        at_least(self, 1, "horizon", "num_minibatches", "shards", "update_epochs")
        between(self, 0, 1, "gamma", "gae_lambda")
        above(
            self, 0, "learning_rate", "clip_coef", "vf_clip_coef", "max_grad_norm", "vtrace_rho_clip", "vtrace_c_clip"
        )
        at_least(self, 0, "final_learning_rate", "vf_coef", "ent_coef", "prio_alpha")


@dataclass(frozen=True)
class CoplayerConfig:
    """The policies of agents that are not egos; env.control.ego_share sets how many agents those are."""

    checkpoints: tuple[str, ...] = ()
    # Checkpoints that control co-players, as folders or "baseline:NAME"; each world draws one per episode. Without any,
    # the policy in training controls co-players too.
    reread_interval: int = 20
    # Number of updates after which checkpoints whose files were replaced are read again.

    def __post_init__(self) -> None:
        at_least(self, 1, "reread_interval")
        places = tuple(expanded(str(place), "coplayers.checkpoints") for place in self.checkpoints)
        object.__setattr__(self, "checkpoints", places)


@dataclass(frozen=True)
class TrialsStage:
    """A stage of the curriculum: from a share of the training on, episodes have this many trials."""

    start: float
    trials: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.start < 1.0:
            raise ConfigError(f"start is {self.start}, expected a share of the training: at least 0 and below 1")
        at_least(self, 1, "trials")


@dataclass(frozen=True)
class TrainConfig:
    """A training run."""

    scenarios: str = "generate:town?count=256&seed=1"
    # Scenarios to train in: a pack file, or what to generate; see docs/evaluation-config.md.
    worlds: int = 64
    # Number of worlds that are stepped together.
    steps: int = 10_000_000
    # Number of agent-steps to train for; steps of active egos count.
    seed: int = 1
    # Seed of all random draws.
    device: str = "cpu"
    # Device of the simulator and the networks: "cpu", or "cuda" for a GPU.
    threads: int = 0
    # Number of CPU cores for the simulator and the networks; 0 uses all.
    checkpoint_interval: int = 50
    # Number of updates between checkpoints.
    keep: int = 5
    # Number of newest checkpoints to keep; the best one is kept in addition.
    trials: tuple[TrialsStage, ...] = ()
    # Curriculum of the number of trials per episode; without one, env.episode.trials applies throughout.
    env: SimConfig = field(default_factory=SimConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    coplayers: CoplayerConfig = field(default_factory=CoplayerConfig)

    def __post_init__(self) -> None:
        at_least(self, 1, "worlds", "steps", "checkpoint_interval", "keep")
        if self.threads < 0:
            raise ConfigError(f"threads is {self.threads}, expected at least 0, which uses all cores")
        starts = [stage.start for stage in self.trials]
        if starts and (starts[0] != 0.0 or starts != sorted(set(starts))):
            raise ConfigError(f"trials start at {starts}, expected ascending shares of the training, the first one 0")
        for stage in self.trials:  # a stage that the env cannot run is an error now, not when it is reached
            replace(self.env, episode=replace(self.env.episode, trials=stage.trials))
        if self.coplayers.checkpoints and self.env.control.ego_share == 1.0:
            raise ConfigError(
                "coplayers.checkpoints are given, but env.control.ego_share is 1, so there are no co-players; set it "
                "below 1"
            )
        if self.ppo.bootstrap_timeouts and not self.env.observe.final:
            raise ConfigError("ppo.bootstrap_timeouts needs the last observations; set env.observe.final = true")
