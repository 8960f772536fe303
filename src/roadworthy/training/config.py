"""What a training run is: every setting, its default and what it means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from roadworthy.errors import ConfigError
from roadworthy.policy.config import PolicyConfig
from roadworthy.sim.config import SimConfig
from roadworthy.sources import expanded


class Precision(Enum):
    """Numbers that networks are computed with; weights and what is learned from are float32 always."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Compile(Enum):
    """Whether networks are compiled by torch before the first step."""

    AUTO = "auto"  # on a GPU
    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class PpoConfig:
    """How the policy learns."""

    horizon: int = 64
    # Steps of each row that are learned from at once.
    minibatches: int = 8
    # Parts that the rows are dealt into; one update of the weights for each.
    shards: int = 1
    # Equal parts of the rows, of each of which a minibatch takes the same share; at least one per process. Two
    # processes learn the same as one with two shards.
    passes: int = 1
    # How often all of them are gone through.
    learning_rate: float = 3e-4
    # At the start ...
    final_learning_rate: float = 0.0
    # ... and at the end, in a half cosine.
    discount: float = 0.98
    # What a reward one step later is worth.
    trace_decay: float = 0.95
    # Lambda of the advantage estimate.
    clip: float = 0.2
    # How far the probability of an action may move in one update before its gain is cut off.
    value_clip: float = 0.2
    # The same for values.
    value_weight: float = 1.0
    # Of the value's error in the loss.
    entropy: float = 0.01
    # Weight of the entropy in the objective; a policy with the trait `entropy` has its own.
    max_gradient: float = 0.5
    # Longer gradients are shortened to this norm.
    ratio_clip: float = 1.0
    # Importance ratios above this count as this in an advantage ...
    trace_clip: float = 1.0
    # ... and in its trace (V-trace's rho and c).
    priority: float = 0.0
    # Rows are drawn by the sum of their advantages' sizes to this power; 0 takes each row once.
    bootstrap_timeouts: bool = False
    # Where the time was up, the value of the last observation stands for what would have come.
    precision: Precision = Precision.FLOAT32
    # Of the networks' arithmetic.
    compile: Compile = Compile.AUTO
    # Whether networks are compiled.

    def __post_init__(self) -> None:
        for name in ("horizon", "minibatches", "shards", "passes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("discount", "trace_decay"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected 0 to 1")
        for name in ("learning_rate", "clip", "value_clip", "max_gradient", "ratio_clip", "trace_clip"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected above 0")
        for name in ("final_learning_rate", "value_weight", "entropy", "priority"):
            if not getattr(self, name) >= 0.0:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 0")


@dataclass(frozen=True)
class CoplayerConfig:
    """Who drives the agents that are not egos (env.control.ego_share says how many those are)."""

    checkpoints: tuple[str, ...] = ()
    # Partners, as folders or "baseline:NAME": each world has one of them in each episode. Without any, all drive as
    # the policy in training does. A folder that has the name of a built-in policy is given as "./zero".
    reread_interval: int = 20
    # Every so many updates, checkpoints whose files were replaced are read again.

    def __post_init__(self) -> None:
        if self.reread_interval < 1:
            raise ConfigError(f"reread_interval is {self.reread_interval}, expected at least 1")
        places = tuple(expanded(str(place), "coplayers.checkpoints") for place in self.checkpoints)
        object.__setattr__(self, "checkpoints", places)


@dataclass(frozen=True)
class TrialsStage:
    """From a share of the training on, episodes have so many trials."""

    start: float
    trials: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.start < 1.0:
            raise ConfigError(f"start is {self.start}, expected a share of the training, from 0 up to 1")
        if self.trials < 1:
            raise ConfigError(f"trials is {self.trials}, expected at least 1")


@dataclass(frozen=True)
class TrainConfig:
    """A training run."""

    scenarios: str = "generate:town?count=256&seed=1"
    # The pack to drive in, or what to generate; see docs/evaluation-config.md.
    worlds: int = 64
    # Worlds stepped together.
    steps: int = 10_000_000
    # Agent-steps to learn from: steps of egos that were active.
    seed: int = 1
    # Of all draws.
    device: str = "cpu"
    # "cpu", or "cuda" for a GPU.
    threads: int = 0
    # Cores for the simulator and the networks; 0 takes all.
    checkpoint_interval: int = 50
    # Updates between checkpoints.
    keep: int = 5
    # Newest checkpoints that are kept.
    trials: tuple[TrialsStage, ...] = ()
    # A curriculum: how the number of trials rises. Without one it is env.episode.trials throughout.
    env: SimConfig = field(default_factory=SimConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    coplayers: CoplayerConfig = field(default_factory=CoplayerConfig)

    def __post_init__(self) -> None:
        for name in ("worlds", "steps", "checkpoint_interval", "keep"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
        if self.threads < 0:
            raise ConfigError(f"threads is {self.threads}, expected at least 0, which takes all cores")
        starts = [stage.start for stage in self.trials]
        if starts and (starts[0] != 0.0 or starts != sorted(set(starts))):
            raise ConfigError(f"trials start at {starts}, expected ascending shares of the training from 0 on")
        for stage in self.trials:  # what an env can't do is found out now, not when the stage is reached
            replace(self.env, episode=replace(self.env.episode, trials=stage.trials))
        if self.coplayers.checkpoints and self.env.control.ego_share == 1.0:
            raise ConfigError(
                "coplayers.checkpoints are given, but env.control.ego_share is 1: there is nobody for them to drive; "
                "set it below 1"
            )
        if self.ppo.bootstrap_timeouts and not self.env.observe.final:
            raise ConfigError("ppo.bootstrap_timeouts needs the last observations; set env.observe.final = true")
