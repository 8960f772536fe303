"""Run every rule in all combinations of mode, goal behavior and infraction behavior: `python -m tests.sim.bounds PACK`.

With NUMBA_BOUNDSCHECK=1 an index beyond an array is an error. All settings are data, so the kernels compile once.
The last line is JSON: how many combinations ran, and the most goals that an agent has reached.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    DisturbConfig,
    EpisodeConfig,
    GoalConfig,
    InfractionConfig,
    Mode,
    Model,
    ObserveConfig,
    OnInfraction,
    OpenConfig,
    Others,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import GOALS_REACHED

WORLDS, STEPS = 2, 24


def combinations() -> Iterator[SimConfig]:
    """All modes, goal behaviors and infraction behaviors; models, actions, traffic and trials take turns."""
    words = itertools.product(Mode, AtGoal, OnInfraction)
    for number, (mode, at_goal, on_infraction) in enumerate(words):
        yield SimConfig(
            mode=mode,
            model=list(Model)[number % 2],
            actions=list(Actions)[number // 2 % 2],
            episode=EpisodeConfig(1 if at_goal is AtGoal.RESPAWN else 2, STEPS // 2 - number % 3),
            control=ControlConfig(Control.AGENTS, list(Others)[number % 3], rows=5, ego_share=0.7),
            open=OpenConfig(agents=5, traffic=3, goals=1 + number % 3, goal_spacing_m=3.0),
            goal=GoalConfig(at_goal, 4.0),
            infraction=InfractionConfig(on_infraction, on_infraction, on_infraction),
            observe=ObserveConfig(final=True),
            disturb=DisturbConfig(False, 0.5, 0.5, 0.5, 0.5, 4.0, 0.1, 0.1),
        )


def run(pack: Pack, config: SimConfig, rng: np.random.Generator) -> int:
    """A few episodes, in which some drive straight on and others anywhere; returns the most goals reached."""
    env = DriveEnv(pack, WORLDS, config, seed=int(rng.integers(1000)))
    env.reset()
    most = 0
    for _ in range(2 * STEPS):
        actions = np.tile(np.asarray(env.idle_action, np.float32), (env.row_count, 1))
        wild = rng.random(env.row_count) < 0.3
        choices = (1, 1) if env.action_choices is None else env.action_choices
        actions[wild] = np.floor(rng.random((int(wild.sum()), 2)) * choices)
        env.step(actions)
        most = max(most, int(env.agent_flags[:, GOALS_REACHED].max()))
    env.ended_episodes()
    env.close()
    return most


def main(path: str) -> None:
    """Run all combinations, in turn."""
    pack, rng, counts = Pack(Path(path)), np.random.default_rng(0), []
    for config in combinations():
        try:
            counts.append(run(pack, config, rng))
        except (IndexError, SystemError) as error:  # of a parallel loop Numba reports a SystemError
            where = f"{config.mode}, {config.goal.at_goal}, {config.infraction.collision}"
            raise SystemExit(f"{where}: {error}, from {error.__cause__!r}") from error
    sys.stdout.write(json.dumps({"combinations": len(counts), "goals": max(counts)}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
