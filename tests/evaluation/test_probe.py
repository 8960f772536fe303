"""Probing policies before a run: each way in which one may depend on more than its own row is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from roadworthy.evaluation.engines import Limits
from roadworthy.evaluation.engines.workers import WorkersEngine
from roadworthy.evaluation.runners.driving.probe import probe
from roadworthy.policy.protocol import Batch
from roadworthy.scenario.pack import Pack
from tests.evaluation.actors import AlwaysHangs, Cruise, Wander
from tests.evaluation.rows import spec_of

Rows = NDArray[np.int64]


class Leaks(Wander):
    """One row's action depends on another row."""

    def act(self, batch: Batch) -> Any:
        beside = np.roll(batch.observations, self.env.rows_per_world, axis=0)
        return np.stack([np.floor(np.abs(beside).sum(axis=1) * 100) % 7, np.full(len(batch), 6)], axis=1)


class Shares(Wander):
    """All rows have one memory."""

    def act(self, batch: Batch) -> Any:
        self._memory[:] = self._memory.sum()
        return super().act(batch)


class Counts(Cruise):
    """Acts by the size of the batch."""

    def act(self, batch: Batch) -> Any:
        return np.full((len(batch), 2), min(len(batch) // 4, 6), np.float32)


class Draws(Cruise):
    """Has a generator of its own."""

    def start(self, env: Any) -> None:
        self.draw = np.random.default_rng()

    def act(self, batch: Batch) -> Any:
        return self.draw.integers(0, (7, 13), (len(batch), 2))


class Remembers(Wander):
    """Never forgets."""

    def reset(self, rows: NDArray[np.bool_]) -> None:
        pass


class Scribbles(Cruise):
    """Writes to what it was shown."""

    def act(self, batch: Batch) -> Any:
        np.multiply(batch.observations, 0.5, out=batch.observations)
        return super().act(batch)


class Flat(Cruise):
    """Gives one number per row."""

    def act(self, batch: Batch) -> Any:
        return np.zeros(len(batch))


class Words(Cruise):
    """Gives no numbers."""

    def act(self, batch: Batch) -> Any:
        return np.full((len(batch), 2), "left")


@pytest.mark.row("EVAL-10")
@pytest.mark.parametrize(
    ("actor", "words"),
    [
        (Leaks, "what runs in other rows"),
        (Shares, "what runs in other rows"),
        (Draws, "a generator of its own"),
        (Counts, "the number of worlds"),
        (Remembers, "reset(rows) has to clear"),
        (Scribbles, "wrote to the observations"),
        (Flat, "two per row"),
        (Words, "expected numbers"),
    ],
)
def test_a_policy_that_depends_on_more_than_its_row_is_found(streets: Pack, actor: type, words: str) -> None:
    (fault,) = probe(spec_of(streets, actor))
    assert words in fault


@pytest.mark.row("EVAL-10")
@pytest.mark.parametrize("actor", [Cruise, Wander])
def test_a_sound_policy_is_not_accused(streets: Pack, actor: type) -> None:
    assert probe(spec_of(streets, actor)) == ()


@pytest.mark.row("EVAL-10")
def test_probing_in_another_process_ends_whatever_the_policy_does(streets: Pack) -> None:
    with WorkersEngine(1, Limits(time_s=3.0)) as engine:
        assert engine.probe(spec_of(streets, AlwaysHangs)) == ()
        (fault,) = engine.probe(spec_of(streets, Counts))
    assert "the number of worlds" in fault
