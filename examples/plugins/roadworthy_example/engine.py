"""Engine `shuffled`: runs episodes in this process, in another order each time. The rows do not depend on the order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import OnResult, RunnerSpec


class ShuffledEngine(InlineEngine):
    """The inline engine with a random order."""

    def run(
        self, spec: RunnerSpec, episodes: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0
    ) -> None:
        """Call `on_result` once for each of these episodes."""
        super().run(spec, random.sample(episodes, len(episodes)), on_result, completed=completed)
