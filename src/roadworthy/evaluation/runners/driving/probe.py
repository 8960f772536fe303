"""Check before a run that the actions of a policy depend only on the episode.

A few short episodes run in several arrangements. Results would depend on the engine if the actions for an agent changed
with its place in the batch, its neighbors, the number of worlds or an earlier episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.evaluation.ledger import episode_seed
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.policy import protocol
from roadworthy.policy.protocol import Batch, Policy, PolicyInfo, drive_batch
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import EpisodeConfig, SimConfig
from roadworthy.sim.env import DriveEnv, on_host

STEPS = 12  # of an episode
_CANDIDATES = 8  # scenarios to try

Taken = NDArray[np.float32]  # (steps, rows of a world, 2) actions; NaN where a row was not active


class _Unfit(Exception):
    """The policy breaks the protocol."""


def probe(spec: DrivingSpec) -> tuple[str, ...]:
    """Return the faults of the policy of a spec. Exceptions of the policy are not caught."""
    with Pack(spec.pack) as pack:
        chosen = _drivable(spec, range(min(len(pack), _CANDIDATES)))
    if not chosen:
        return ()
    one, other = chosen[0], chosen[-1]
    try:
        alone = _drive(spec, [(one, 1)])[0]
        (first,) = _drive(spec, [(one, 1)], rounds=2)
        crowded = _drive(spec, [(other, 2), (one, 1), (other, 3)])[1]
        beside = _drive(spec, [(one, 4), (one, 1), (one, 5)])[1]
    except _Unfit as unfit:
        return (str(unfit),)
    faults = []
    if not _same(crowded, beside):
        faults.append(
            "its actions for an agent change with what runs in other rows: state leaks between rows, or it draws from "
            f"a generator of its own (step {_where(crowded, beside)}); it may use observations, seeds and steps of a "
            "row for that row alone"
        )
    elif not _same(alone, crowded):
        faults.append(
            f"its actions for an agent change with the number of worlds (step {_where(alone, crowded)}); it has to "
            "work in blocks of one size, so that its arithmetic does not depend on the batch"
        )
    if not _same(alone, first) and not faults:
        faults.append(
            f"it acts differently when an episode is run again (step {_where(alone, first)}): reset(rows) has to clear "
            "the memory of these rows"
        )
    return tuple(faults)


def _drivable(spec: DrivingSpec, numbers: Sequence[int]) -> list[int]:
    """Return the two of these scenarios with the most active steps, or fewer if fewer can run.

    An episode of one step, as of a car that starts at its goal, does not test the memory of a policy.
    """
    env = replace(spec, env=_short(spec), worlds=1).make_env()
    idle = np.tile(np.asarray(env.idle_action, np.float32), (env.row_count, 1))
    lasting: dict[int, int] = {}  # steps in which rows were active
    for number in numbers:
        try:
            env.assign(0, number, 0, now=True)
        except ScenarioError:
            continue
        lasting[number] = 0
        while len(env.resting_worlds) == 0 and on_host(env.signals.active).any():
            lasting[number] += int(on_host(env.signals.active).sum())
            env.step(idle)
    return sorted(lasting, key=lambda number: (-lasting[number], number))[:2]


def _short(spec: DrivingSpec) -> SimConfig:
    """Return the settings of the worlds with short episodes of one trial."""
    return replace(spec.env, episode=EpisodeConfig(1, STEPS))


def _drive(spec: DrivingSpec, episodes: Sequence[tuple[int, int]], rounds: int = 1) -> list[Taken]:
    """Return the actions in one world for each (scenario, replicate), in the last of several identical rounds."""
    env = replace(spec, env=_short(spec), worlds=len(episodes)).make_env()
    policy = spec.make_policy()
    protocol.start(policy, PolicyInfo.of_drive_env(env))
    shape = (STEPS, env.world_count, env.rows_per_world, 2)
    seeds = np.array([episode_seed(0, f"probe {scenario}", replicate) for scenario, replicate in episodes], np.uint64)
    seed_of_row = np.repeat(seeds, env.rows_per_world)
    for _ in range(rounds):
        taken = np.full(shape, np.nan, np.float32)
        for world, (scenario, _) in enumerate(episodes):
            env.assign(world, scenario, int(seeds[world]), now=True)
        protocol.reset(policy, np.ones(env.row_count, np.bool_))
        for step in range(STEPS):
            active = on_host(env.signals.active).copy()
            if not active.any():
                break
            actions = _checked(env, policy, drive_batch(env, seed_of_row, np.full(env.row_count, step, np.int64)))
            taken[step].reshape(-1, 2)[active] = actions[active]
            env.step(actions)
            protocol.reset(policy, on_host(env.signals.episode_ended).copy())
    protocol.close(policy)
    return list(taken.transpose(1, 0, 2, 3))


def _checked(env: DriveEnv, policy: Policy, batch: Batch) -> NDArray[Any]:
    """Return the actions of a step, or raise _Unfit."""
    before = on_host(env.observations).copy()
    given = policy.act(batch)
    actions = on_host(given) if not isinstance(given, list | tuple) else np.asarray(given)
    if actions.shape != (env.row_count, 2):
        raise _Unfit(f"act returned an array of shape {actions.shape}, expected {(env.row_count, 2)}: two per row")
    if actions.dtype.kind not in "iuf":
        raise _Unfit(f"act returned an array of type {actions.dtype}, expected numbers")
    if before.tobytes() != on_host(env.observations).tobytes():
        raise _Unfit("act wrote to the observations, which belong to the env; it must copy what it changes")
    return actions


def _same(one: Taken, other: Taken) -> bool:
    return one.tobytes() == other.tobytes()


def _where(one: Taken, other: Taken) -> int:
    """Return the first step in which two differ."""
    differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
    return int(np.flatnonzero(differs.any(axis=(1, 2)))[0])
