"""The ledger: the planned episodes of a run, fixed before the first step."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from roadworthy.errors import UsageError
from roadworthy.record.shared_maps import shared_maps

if TYPE_CHECKING:
    from roadworthy.scenario.pack import Pack

Factor = float | str

_SCHEMA = pa.schema(
    [
        ("episode_id", pa.string()),
        ("scenario", pa.int32()),
        ("scenario_id", pa.string()),
        ("seed", pa.uint64()),
        ("replicate", pa.int32()),
        ("factors", pa.string()),  # a JSON object
        ("cluster", pa.string()),  # what several scenarios share; null: nothing
    ]
)


@dataclass(frozen=True)
class EpisodeSpec:
    """One planned episode: everything that decides its result."""

    episode_id: str
    scenario: int
    # Its number in the run's pack.
    scenario_id: str
    seed: int
    # Of all draws in it, below 2**64.
    replicate: int
    factors: Mapping[str, Factor] = field(default_factory=dict)
    # Factors of a sweep. Worlds of the simulator draw theirs by the seed and do not accept any.
    cluster: str | None = None
    # What it shares with other scenarios, such as their map; None: nothing. It decides intervals, not results.


@dataclass(frozen=True)
class Ledger:
    """The episodes of a run, in the order in which they start; the order does not change any result."""

    episodes: tuple[EpisodeSpec, ...]

    def __post_init__(self) -> None:
        name, times = next(iter(Counter(episode.episode_id for episode in self.episodes).most_common(1)), ("", 1))
        if times > 1:
            raise UsageError(f"the episode {name!r} is planned {times} times; every episode of a run needs its own id")

    def __len__(self) -> int:
        return len(self.episodes)

    def __iter__(self) -> Iterator[EpisodeSpec]:
        return iter(self.episodes)

    def __getitem__(self, episode_id: str) -> EpisodeSpec:
        try:
            return self._by_id[episode_id]
        except KeyError:
            some = ", ".join(list(self._by_id)[:3])
            raise UsageError(f"the run has no episode {episode_id!r}; it has {len(self)}, such as {some}") from None

    @cached_property
    def _by_id(self) -> dict[str, EpisodeSpec]:
        return {episode.episode_id: episode for episode in self.episodes}

    @cached_property
    def hash(self) -> str:
        """A hash that is equal for ledgers with the same episodes in any order."""
        lines = sorted(
            json.dumps([e.episode_id, e.scenario_id, e.seed, e.replicate, dict(e.factors)], sort_keys=True)
            for e in self.episodes
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def table(self) -> pa.Table:
        """Return the ledger as the run folder stores it."""
        rows = [{**vars(e), "factors": json.dumps(dict(e.factors), sort_keys=True)} for e in self.episodes]
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> Ledger:
        """Return the ledger that a run folder stores."""
        known = [name for name in _SCHEMA.names if name in table.column_names]  # before 1.2, there is no cluster
        rows: list[dict[str, Any]] = table.select(known).to_pylist()
        return cls(tuple(EpisodeSpec(**{**row, "factors": json.loads(row["factors"])}) for row in rows))


def plan_ledger(pack: Pack, scenarios: Sequence[int], replicates: int, seed: int) -> Ledger:
    """Plan each of these scenarios `replicates` times; scenario k of the run's pack is the k-th of them.

    The first replicate of every scenario comes before the second of any, so that a run that stops early is balanced.
    """
    names = [pack.ids[number] for number in scenarios]
    maps = shared_maps(pack, scenarios)
    return Ledger(
        tuple(
            EpisodeSpec(
                f"{name}-r{replicate}",
                place,
                name,
                episode_seed(seed, name, replicate),
                replicate,
                cluster=maps[place],
            )
            for replicate in range(replicates)
            for place, name in enumerate(names)
        )
    )


def episode_seed(run_seed: int, scenario_id: str, replicate: int) -> int:
    """Return the seed of an episode, which does not depend on the position of the scenario or on other episodes."""
    key = json.dumps([run_seed, scenario_id, replicate]).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
