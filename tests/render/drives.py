"""Real episodes for videos: towns with a scripted policy, recorded as in evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import plan_ledger
from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.policy.protocol import Batch, PolicyInfo
from roadworthy.record import EpisodeResult, Run, RunWriter
from roadworthy.render.counts import agent_to_follow
from roadworthy.render.resimulate import light_states
from roadworthy.render.views import EpisodeScene
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Control, ControlConfig, DisturbConfig, EpisodeConfig, Mode, OpenConfig, SimConfig

TRIALS = SimConfig(episode=EpisodeConfig(trials=3, trial_steps=14), control=ControlConfig(who=Control.SDC))
OPEN = SimConfig(
    mode=Mode.OPEN,
    episode=EpisodeConfig(trials=2, trial_steps=25),
    open=OpenConfig(agents=5, traffic=4),
    disturb=DisturbConfig(blind_rate=1.0, dropout=0.2, action_noise=0.1),
)
VEHICLES = SimConfig(episode=EpisodeConfig(trial_steps=40), control=ControlConfig(rows=8))


class Straight:
    """Speeds up and holds the wheel a little to one side, so that it leaves the road sooner or later.

    It keeps what it was given: a list with one entry for each step of (observations, active).
    """

    def __init__(self) -> None:
        self.given: list[tuple[np.ndarray, np.ndarray]] = []

    def start(self, info: PolicyInfo) -> None:
        assert info.env is not None
        self._choices = info.env.action_choices

    def act(self, batch: Batch) -> Any:
        self.given.append((batch.observations.copy(), batch.active.copy()))
        along, across = self._choices
        side = across // 2 + 1 + (batch.steps // 6) % 2
        return np.stack([np.full(len(side), along - 2), side], axis=1).astype(np.float32)


def drive(pack: Pack, config: SimConfig, scenario: int = 0) -> tuple[EpisodeResult, Straight]:
    """One episode and the policy that drove it."""
    policy, results = Straight(), []
    spec = DrivingSpec("towns", pack.path, config, lambda: policy, worlds=1)
    owed = list(plan_ledger(pack, range(len(pack)), 1, 5))[scenario : scenario + 1]
    run_episodes(spec, spec.make_env(threads=1), one_by_one(owed), results.append)
    return results[0], policy


def story_of(pack: Pack, config: SimConfig, scenario: int = 0) -> EpisodeScene:
    """Return the content of a video of such an episode, with the lights of recorded worlds."""
    result, _ = drive(pack, config, scenario)
    trace = result.trace
    assert trace is not None
    lights = light_states(pack[scenario], scenario, result.episode.seed, trace, config, None)
    return EpisodeScene(trace, pack[scenario], lights, agent_to_follow(trace), config.goal.radius_m, "a subtitle")


def record_run(root: Path, pack: Pack, config: SimConfig, replicates: int = 1) -> Run:
    """A sealed run folder with an episode of each scenario."""
    ledger = plan_ledger(pack, range(len(pack)), replicates, 5)
    header = {
        "config": {"type": "multi_scenario", "scenarios": str(pack.path), **_settings(config)},
        "checkpoint": None,
        "epoch": 4,
        "step": 2000,
    }
    with RunWriter.start(
        root, "towns", "straight", header, ledger.table(), pack=pack.path, scenarios=range(len(pack))
    ) as writer:
        spec = DrivingSpec("towns", writer.pack, config, Straight, worlds=2)
        run_episodes(spec, spec.make_env(threads=1), one_by_one(ledger), writer.append)
        writer.seal({"figures": []})
    return Run(writer.folder)


def _settings(config: SimConfig) -> dict[str, Any]:
    from roadworthy.config import plain

    env = plain(config)
    return {"episode": env.pop("episode"), "env": env}
