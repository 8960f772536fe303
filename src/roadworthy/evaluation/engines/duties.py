"""Hands out owed episodes, and decides what becomes of those whose process was lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.ledger import EpisodeSpec

LEAST_LOSSES = 3  # so many in a row are put up with in any case


class Duties:
    """The episodes of a run that are still to be handed out.

    A batch that was lost does not tell which of its episodes is to blame. So each of them is tried again alone; one
    that is lost alone more often than `retries` has failed. A policy that does not work at all must not be tried with
    every episode: when more in a row were lost alone than were ever completed, it is given up. Then these stay owed:
    they are called failed only once it is known that the policy works elsewhere.
    """

    def __init__(
        self,
        owed: Iterable[EpisodeSpec],
        retries: int,
        on_failed: Callable[[EpisodeSpec, str], None],
        completed: int = 0,
        lost: int = 0,
    ) -> None:
        """Owe these episodes.

        completed: how many of the run were completed before.
        lost: processes that were lost with this policy just now.
        """
        self._fresh = deque(owed)
        self._suspects: deque[EpisodeSpec] = deque()
        self._losses: Counter[str] = Counter()  # how often each suspect was lost alone; 0 after a loss in company
        self._retries, self._on_failed = retries, on_failed
        self._failed: list[tuple[EpisodeSpec, str]] = []  # since an episode was last completed
        self._completed, self._lost_in_a_row = completed, lost

    @property
    def is_waiting(self) -> bool:
        """Whether some episode is to be handed out."""
        return bool(self._fresh or self._suspects)

    def next(self, running: Collection[EpisodeSpec]) -> EpisodeSpec | None:
        """The next episode for a process in which these are under way; None: nothing for now."""
        if any(owed.episode_id in self._losses for owed in running):
            return None  # it has to be alone
        if self._suspects and not running:
            return self._suspects.popleft()
        return self._fresh.popleft() if self._fresh else None

    def complete(self) -> None:
        """An episode was completed."""
        self._completed += 1
        self._lost_in_a_row = 0
        self.settle()

    def settle(self) -> None:
        """Hand over the episodes that have failed."""
        failed, self._failed = self._failed, []
        for owed, reason in failed:
            self._on_failed(owed, reason)

    def lose(self, running: Collection[EpisodeSpec], reason: str) -> None:
        """The process in which these were under way was lost; without any, while it got ready."""
        is_alone = len(running) <= 1
        self._lost_in_a_row += is_alone
        for owed in running:
            self._losses[owed.episode_id] += is_alone
            if self._losses[owed.episode_id] > self._retries:
                self._failed.append((owed, reason))
            else:
                self._suspects.append(owed)
        if self._lost_in_a_row > max(self._completed, LEAST_LOSSES - 1):
            raise RoadworthyError(
                f"given up after {self._lost_in_a_row} losses in a row, with {self._completed} episodes completed; "
                f"the last: {reason}"
            )
