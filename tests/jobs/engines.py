"""An engine that is found by its name."""

from __future__ import annotations

from collections.abc import Sequence

from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import OnResult, RunnerSpec


class Backwards(InlineEngine):
    """Runs episodes in reverse order."""

    def run(
        self, spec: RunnerSpec, episodes: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0
    ) -> None:
        """Run the last episode first."""
        super().run(spec, episodes[::-1], on_result, completed=completed)
