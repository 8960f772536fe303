"""Small training runs for tests: four worlds of four cars, some of which reach their goals early."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from roadworthy.config import plain
from roadworthy.policy.config import ConditioningConfig, PolicyConfig, TransformerConfig
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    AtGoal,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    InfractionConfig,
    LogConfig,
    ObserveConfig,
    OnInfraction,
    RewardConfig,
    SimConfig,
)
from roadworthy.training.config import PpoConfig, TrainConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.segment import RolloutBatch
from tests.policy.networks import strengthened
from tests.sim.scenes import Actor, pack_of, scene

HORIZON = 8
TRIAL_STEPS = 7  # episodes are cut by segments, here and there


def streets(path: Path) -> Pack:
    """Scenes of three or four cars; goals are 4 to 16 m ahead, so that some leave early and some never get there."""
    scenes = []
    for k in range(5):
        cars = [
            Actor(10.0 + 16.0 * a, y=-1.75 if a % 2 else 1.75, speed=8.0 + 0.5 * k, last=16 + 4 * ((a + k) % 4))
            for a in range(3 + k % 2)
        ]
        scenes.append(scene(*cars, id=f"street-{k}", steps=41))
    return pack_of(path, *scenes)


def sim(trials: int = 1, ego_share: float = 1.0, **keys: Any) -> SimConfig:
    """Agents leave at the goal, and are removed when they leave the road or collide."""
    return replace(
        SimConfig(
            episode=EpisodeConfig(trials, TRIAL_STEPS),
            control=ControlConfig(rows=4, ego_share=ego_share),
            goal=GoalConfig(AtGoal.LEAVE, radius_m=3.0),
            infraction=InfractionConfig(OnInfraction.REMOVE, OnInfraction.REMOVE),
            observe=ObserveConfig(partners=3, lanes=4, edges=4, lights=1, final=True),
            reward=RewardConfig(progress=0.1),
            log=LogConfig(report_interval=HORIZON),
        ),
        **keys,
    )


def network(
    core: str = "transformer", context: int = 5, conditioning: ConditioningConfig | None = None
) -> PolicyConfig:
    """A network whose memory, where it is a transformer's, is shorter than an episode."""
    shape = TransformerConfig(layers=2, heads=2, context=context)
    return PolicyConfig(
        core=core, encoder=8, hidden=16, transformer=shape, conditioning=conditioning or ConditioningConfig()
    )


def config(
    core: str = "mlp", *, env: SimConfig | None = None, policy: PolicyConfig | None = None, **keys: Any
) -> TrainConfig:
    """A run of some updates; keys of PpoConfig go there, all others to TrainConfig."""
    of_ppo = {name: keys.pop(name) for name in list(keys) if name in PpoConfig.__dataclass_fields__}
    ppo = PpoConfig(**{"horizon": HORIZON, "num_minibatches": 2, "learning_rate": 3e-3, **of_ppo})
    settings = {"worlds": 4, "steps": 400, "threads": 1, "checkpoint_interval": 2, **keys}
    return TrainConfig(env=env or sim(), policy=policy or network(core), ppo=ppo, **settings)


def trainer(settings: TrainConfig, pack: Pack | Path, folder: Path, *, is_strong: bool = True) -> Trainer:
    """Make a trainer; by default its policy has weights large enough for every input to show in the outputs."""
    made = Trainer(settings, pack, folder)
    if is_strong:
        strengthened(made.policy)
    return made


def copied(batch: RolloutBatch) -> RolloutBatch:
    """A segment that the next one does not overwrite."""
    segment, memory = (type(part)(*(x.clone() for x in part)) for part in (batch.segment, batch.memory))
    return RolloutBatch(segment, memory, batch.was_reset)


def checkpoints_in(folder: Path) -> list[Path]:
    """The checkpoints of a training folder, the oldest first."""
    return sorted((folder / "checkpoints").glob("step_*"))


def command_of(settings: TrainConfig, folder: Path) -> list[str]:
    """Arguments of Python that train with these settings, which name a pack."""
    path = folder / "config.toml"
    path.write_text(as_toml(settings))
    return ["-m", "roadworthy", "train", str(path)]


def as_toml(settings: TrainConfig) -> str:
    """The settings as a file that `roadworthy train` reads."""
    return "\n".join(f"{key} = {_value(value)}" for key, value in plain(settings).items()) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)
