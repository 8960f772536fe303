"""The engine that carries out episodes in this process."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from roadworthy.evaluation.carry_out import carry_out
from roadworthy.evaluation.engines.duties import Duties
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.probe import probe
from roadworthy.evaluation.results import failed
from roadworthy.evaluation.task import Task
from roadworthy.evaluation.underway import OnResult
from roadworthy.record.episodes import EpisodeResult
from roadworthy.scenario.pack import Pack


class InlineEngine:
    """Carries out episodes here and now. A policy that never returns is not noticed: other processes can be timed."""

    def __init__(self, *, retries: int = 1, threads: int | None = None) -> None:
        self._retries, self._threads = retries, threads

    def probe(self, task: Task) -> tuple[str, ...]:
        """What is wrong with the policy of a task; one that can't be made to drive shows that in the run."""
        try:
            return probe(task)
        except Exception:
            return ()

    def run(self, task: Task, owed: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0) -> None:
        """Hand over a result for every one of these episodes."""
        running: dict[str, EpisodeSpec] = {}
        with Pack(task.pack) as pack:
            tags = {episode.scenario: pack.tags(episode.scenario) for episode in owed}

        def fail(episode: EpisodeSpec, reason: str) -> None:
            on_result(failed(episode, task.evaluator, reason, tags[episode.scenario]))

        duties = Duties(owed, self._retries, fail, completed)

        def take(_: int) -> EpisodeSpec | None:
            episode = duties.next(running.values())
            if episode is not None:
                running[episode.episode_id] = episode
            return episode

        def hand_over(result: EpisodeResult) -> None:
            del running[result.episode.episode_id]
            try:
                on_result(result)
                duties.complete()
            except Exception as error:  # not the policy's fault: it ends the run
                raise _NotWritten(error) from error

        env = task.make_env(len(owed), self._threads)
        while duties.is_waiting:
            try:
                carry_out(task, env, take, hand_over)
            except _NotWritten as wrapped:
                raise wrapped.error from None
            except Exception as error:
                if not running:
                    raise
                duties.lose(list(running.values()), reason_of(error))
                running.clear()
            finally:
                env.set_pre_reset_callback(None)
        duties.settle()


class _NotWritten(Exception):
    """A result could not be handed over."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def reason_of(error: BaseException) -> str:
    """What was raised, then where."""
    return f"{type(error).__name__}: {error}\n{''.join(traceback.format_exception(error)).strip()}"
