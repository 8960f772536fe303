"""The engine that runs episodes in this process."""

from __future__ import annotations

from collections.abc import Sequence

from roadworthy.evaluation.engines import Limits
from roadworthy.evaluation.engines.retry_queue import RetryQueue
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import OnResult, RunError, RunnerSpec, reason_of
from roadworthy.evaluation.watch import Watch
from roadworthy.record.episodes import EpisodeResult


class InlineEngine:
    """Runs episodes here and now. It can't enforce limits of time and memory: that needs another process."""

    def __init__(self, workers: int | None = None, limits: Limits | None = None, *, threads: int | None = None) -> None:
        self.limits = limits or Limits()
        self._threads = threads

    def probe(self, spec: RunnerSpec) -> tuple[str, ...]:
        """Return what is wrong with the policy of a run; a policy that can't act at all shows that in the run."""
        try:
            return spec.probe()
        except Exception:
            return ()

    def run(
        self, spec: RunnerSpec, episodes: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0
    ) -> None:
        """Call `on_result` once for each of these episodes."""
        running: dict[str, EpisodeSpec] = {}
        queue = RetryQueue(
            episodes, self.limits.retries, lambda episode, reason: on_result(spec.failed(episode, reason)), completed
        )

        def next_spec(share: tuple[int, int] | None = None) -> EpisodeSpec | None:
            episode = queue.next(running.values(), share)
            if episode is not None:
                running[episode.episode_id] = episode
            return episode

        def hand_over(result: EpisodeResult) -> None:
            del running[result.episode.episode_id]
            try:
                on_result(result)
                queue.complete()
            except Exception as error:  # not a fault of the policy: it ends the run
                raise _NotWritten(error) from error

        runner = spec.open(Watch(spec.watched), most=len(episodes), threads=self._threads)
        try:
            while queue.is_waiting:
                try:
                    runner.run(next_spec, hand_over)
                except _NotWritten as wrapped:
                    raise wrapped.error from None
                except Exception as error:
                    if not running or isinstance(error, RunError):
                        raise
                    queue.lose(list(running.values()), reason_of(error))
                    running.clear()
            queue.settle()
        finally:
            runner.close()

    def close(self) -> None:
        """Do nothing: there are no processes."""


class _NotWritten(Exception):
    """A result could not be handed over."""

    def __init__(self, error: Exception) -> None:
        self.error = error
