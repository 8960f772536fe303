"""The loop that carries out owed episodes: the one for all engines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from roadworthy.evaluation.capture import on_host
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.task import Task
from roadworthy.evaluation.underway import NextSpec, OnResult, UnderWay
from roadworthy.policy import protocol
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.sim.env import DriveEnv


def carry_out(
    task: Task,
    env: DriveEnv,
    next_owed: NextSpec,
    on_result: OnResult,
    *,
    slot: int = 0,
) -> None:
    """Drive until nothing is owed any more; a world whose episode ends takes the next one at once.

    env: of the task; what runs there is cut short.
    slot: the number of the process that does it, for the rows.
    """
    policy = task.make_policy()
    env.reset()
    protocol.start(policy, PolicyInfo.of_drive_env(env))
    under_way = UnderWay(env, task.evaluator, slot, task.keeps_traces, task.trace_figures)
    with _one_thread():
        protocol.reset(policy, under_way.fill(next_owed, on_result))
        while under_way:
            env.step(policy.act(drive_batch(env, under_way.seeds, under_way.steps)))
            ended = on_host(env.signals.trial_ended if task.forgets_trials else env.signals.episode_ended).copy()
            under_way.after_step(on_result)
            # Memory goes at each agent's own end; worlds that begin may use rows that had no agent before.
            forgotten = ended | under_way.fill(next_owed, on_result)
            if forgotten.any():
                protocol.reset(policy, forgotten)
    env.set_pre_reset_callback(None)
    protocol.close(policy)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let networks use one core: sums over several would depend on how many there are."""
    torch = sys.modules.get("torch")  # whoever has a network has imported it
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def one_by_one(owed: Iterable[EpisodeSpec]) -> NextSpec:
    """Hand out episodes in their order."""
    waiting = iter(owed)
    return lambda _: next(waiting, None)
