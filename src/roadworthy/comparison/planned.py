"""The planned episodes of a run as columns, and what became of each."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roadworthy.record import Run
from roadworthy.record.run import LEDGER
from roadworthy.record.tables import read_schema, read_table

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
KEY = ("scenario_id", "seed", "replicate", "factors")  # what makes two episodes of different runs the same


class State(IntEnum):
    """What became of a planned episode."""

    NEVER_RAN = 0
    FAILED = 1
    COMPLETED = 2


class Planned:
    """The P planned episodes of a run, in the order of its ledger. Only the columns in use are read."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._names = set(self._ledger_names())

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> pa.Array:
        """Return a column of the ledger, (P,), with encoded words; null if no table has it."""
        if name not in self._columns:
            column = self.plain(name)
            self._columns[name] = column.dictionary_encode() if pa.types.is_string(column.type) else column
        return self._columns[name]

    @cached_property
    def ids(self) -> pa.Array:
        """The ids of the planned episodes, (P,)."""
        return _whole(self._ledger(["episode_id"])["episode_id"])

    @cached_property
    def ended(self) -> Numbers:
        """The planned episode of each row of the table of episodes."""
        ids = _whole(self.run.episodes(["episode_id"])["episode_id"])
        if len(ids) == len(self.ids) and ids.equals(self.ids):
            return np.arange(len(ids), dtype=np.int64)
        return pc.index_in(ids, self.ids).to_numpy(zero_copy_only=False).astype(np.int64)

    @cached_property
    def states(self) -> NDArray[np.int8]:
        """The State of each planned episode, (P,)."""
        is_completed = pc.equal(self.run.episodes(["status"])["status"], "completed").to_numpy()
        states = np.full(len(self.ids), State.NEVER_RAN, np.int8)
        states[self.ended] = np.where(is_completed, State.COMPLETED, State.FAILED)
        return states

    @cached_property
    def clusters(self) -> pa.Array:
        """The name of the cluster of each planned episode, (P,), dictionary-encoded."""
        scenarios = self.column("scenario_id")
        if "cluster" in self._names:
            own = _whole(self._ledger(["cluster"])["cluster"])
            if own.null_count:
                own = pc.coalesce(own, scenarios.dictionary_decode())
            return own.dictionary_encode()
        known = self.run.clusters
        names = [known.get(name, name) for name in scenarios.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(scenarios.indices, pa.array(names, pa.string()))

    def episode_column(self, name: str) -> NDArray[Any]:
        """Return a column of the table of episodes for each planned episode, (P,): NaN or None if it has not ended."""
        column = _whole(self.run.episodes([name])[name])
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if len(values) == len(self.ids) and (self.ended == np.arange(len(values))).all():
            return values
        whole = np.full(len(self.ids), np.nan if values.dtype.kind in "fiu" else None, object)
        whole = whole.astype(np.float64) if values.dtype.kind in "fiu" else whole
        whole[self.ended] = values
        return whole

    @cached_property
    def _columns(self) -> dict[str, pa.Array]:
        return {}

    def plain(self, name: str) -> pa.Array:
        """Return the same column as it is stored; it is read again each time."""
        if name in self._names:
            return _whole(self._ledger([name])[name])
        count = len(self.ids)
        if name not in self.run.column_names("episodes"):
            return pa.nulls(count)
        # Ledgers of other programs may leave out what the rows of the episodes say.
        places = np.full(count, -1)
        places[self.ended] = np.arange(len(self.ended))
        rows = pa.array(places, mask=places < 0)
        return _whole(self.run.episodes([name])[name]).take(rows)

    def _ledger_names(self) -> list[str]:
        path = self.run.folder / LEDGER
        names: list[str] = read_schema(path).names if path.exists() else self.run.ledger.column_names
        return names

    def _ledger(self, columns: list[str]) -> pa.Table:
        path = self.run.folder / LEDGER
        if self.run.decided is not None or not path.exists():
            return self.run.ledger.select(columns)
        return read_table(path, columns)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
