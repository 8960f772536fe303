"""Hand out episodes, and decide what happens to those whose process was lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import RunError

LEAST_LOSSES = 3  # consecutive losses before a run is stopped


class RetryQueue:
    """The episodes of a run that are still to be handed out.

    A lost process does not show which of its episodes caused the loss. So each is retried alone; an episode that is
    lost alone more often than `retries` has failed. A policy that does not work at all must not be tried with every
    episode: the run stops when more episodes in a row were lost alone than were ever completed. These episodes
    then stay in the ledger as not run: they are recorded as failed only once the policy is known to work elsewhere.
    """

    def __init__(
        self,
        episodes: Iterable[EpisodeSpec],
        retries: int,
        on_failed: Callable[[EpisodeSpec, str], None],
        completed: int = 0,
        lost: int = 0,
    ) -> None:
        """Queue episodes.

        Args:
            episodes: The episodes, in the order in which they are handed out.
            retries: How often an episode is retried that was lost alone.
            on_failed: Called with an episode that has failed, and the reason.
            completed: The number of episodes of the run that were completed before.
            lost: The number of processes that this policy has just lost.
        """
        self._fresh = deque(episodes)
        self._places = {episode.episode_id: place for place, episode in enumerate(self._fresh)}
        self._suspects: deque[EpisodeSpec] = deque()
        self._losses: Counter[str] = Counter()  # how often each suspect was lost alone; 0 after a loss in company
        self._retries, self._on_failed = retries, on_failed
        self._failed: list[tuple[EpisodeSpec, str]] = []  # since an episode was last completed
        self._completed, self._lost_in_a_row = completed, lost
        self.returned = 0  # how often episodes were queued again

    @property
    def has_suspects(self) -> bool:
        """Whether there are episodes that have to be retried alone."""
        return bool(self._suspects)

    @property
    def is_waiting(self) -> bool:
        """Whether there are episodes to hand out."""
        return bool(self._fresh or self._suspects)

    def next(self, running: Collection[EpisodeSpec], share: tuple[int, int] | None = None) -> EpisodeSpec | None:
        """Return the next episode for a process, or None for now.

        running: the episodes that run in the process.
        share: see `NextSpec`.
        """
        if any(episode.episode_id in self._losses for episode in running):
            return None  # it has to be alone
        if self._suspects and not running:
            return self._suspects.popleft()
        if share is None:
            return self._fresh.popleft() if self._fresh else None
        number, count = share
        for episode in self._fresh:
            if self._places[episode.episode_id] % count == number:
                self._fresh.remove(episode)
                return episode
        return None

    def complete(self) -> None:
        """Note that an episode was completed."""
        self._completed += 1
        self._lost_in_a_row = 0
        self.settle()

    def settle(self) -> None:
        """Report the episodes that have failed."""
        failed, self._failed = self._failed, []
        for episode, reason in failed:
            self._on_failed(episode, reason)

    def put_back(self, running: Collection[EpisodeSpec]) -> None:
        """Queue episodes again that were lost without a fault of theirs."""
        self._fresh.extendleft(reversed(list(running)))
        self.returned += 1

    def lose(self, running: Collection[EpisodeSpec], reason: str, culprits: Collection[str] = ()) -> None:
        """Note that a process was lost.

        Args:
            running: The episodes that ran in it; none if it was lost before the first.
            reason: Why it was lost.
            culprits: Ids of the episodes that are known to be the cause. The others are queued again.
        """
        if culprits:
            self.put_back([episode for episode in running if episode.episode_id not in culprits])
            running = [episode for episode in running if episode.episode_id in culprits]
        is_alone = len(running) <= 1 or bool(culprits)
        self._lost_in_a_row += is_alone
        for episode in running:
            self._losses[episode.episode_id] += is_alone
            if self._losses[episode.episode_id] > self._retries:
                self._failed.append((episode, reason))
            else:
                self._suspects.append(episode)
        if self._lost_in_a_row > max(self._completed, LEAST_LOSSES - 1):
            raise RunError(
                f"stopped after {self._lost_in_a_row} losses in a row, with {self._completed} episodes completed; "
                f"the last: {reason.partition(chr(10))[0]}",
                details=reason,
            )
