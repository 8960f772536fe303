"""Run episodes in worlds of the simulator: the loop for all engines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import NextSpec, OnResult
from roadworthy.evaluation.runners.driving.in_flight import InFlight
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.policy import protocol
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.sim.env import DriveEnv, on_host


class DrivingRunner:
    """Runs episodes in worlds of one env."""

    def __init__(self, spec: DrivingSpec, env: DriveEnv, process: int = 0) -> None:
        self._spec, self._env, self._process = spec, env, process

    def run(self, next_spec: NextSpec, on_result: OnResult) -> None:
        """Run episodes until there are none; a world whose episode ends takes the next one at once."""
        try:
            run_episodes(self._spec, self._env, next_spec, on_result, process=self._process)
        finally:
            self._env.set_pre_reset_callback(None)

    def close(self) -> None:
        """Release the worlds."""
        self._env.close()


def run_episodes(
    spec: DrivingSpec, env: DriveEnv, next_spec: NextSpec, on_result: OnResult, *, process: int = 0
) -> None:
    """Run episodes until there are none.

    Args:
        spec: The run.
        env: Its worlds; episodes that run there are cut off.
        next_spec: Gives the next episode.
        on_result: Called with the result of each episode.
        process: The number of the process, for the rows.
    """
    policy = spec.make_policy()
    env.reset()
    protocol.start(policy, PolicyInfo.of_drive_env(env))
    in_flight = InFlight(env, spec, process)
    with _one_thread():
        protocol.reset(policy, in_flight.fill(next_spec, on_result))
        while in_flight:
            env.step(policy.act(drive_batch(env, in_flight.seeds, in_flight.steps)))
            ended = on_host(env.signals.trial_ended if spec.forgets_trials else env.signals.episode_ended).copy()
            in_flight.after_step(on_result)
            # An agent's memory is cleared at its own end; worlds that start may use rows that had no agent before.
            cleared = ended | in_flight.fill(next_spec, on_result)
            if cleared.any():
                protocol.reset(policy, cleared)
    env.set_pre_reset_callback(None)
    protocol.close(policy)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let networks use one core: sums over several cores would depend on their number."""
    torch = sys.modules.get("torch")  # a policy with a network has imported it
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def one_by_one(episodes: Iterable[EpisodeSpec]) -> NextSpec:
    """Return a function that hands out episodes in their order."""
    waiting = iter(episodes)
    return lambda share=None: next(waiting, None)
