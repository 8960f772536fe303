"""The episodes that two runs share: equal scenario, seed, replicate and factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roadworthy.comparison.planned import KEY, Flags, Numbers, Planned
from roadworthy.record import Run
from roadworthy.statistics import Clusters

EXAMPLES = 3  # unmatched episodes that are named
_REPEATED = "has the same scenario, seed, replicate and factors as another of its run"
# Why an episode has no partner, by the first parts of the key that no episode of the other run has together.
_REASONS = (
    (("scenario_id",), "its scenario is not in the other run"),
    (("scenario_id", "replicate"), "the other run has fewer replicates of its scenario"),
    (("scenario_id", "replicate", "seed"), "the other run has another seed"),
    (KEY, "the other run has other factors"),
)


@dataclass(frozen=True)
class Unmatched:
    """The planned episodes of one run without a partner in the other."""

    count: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)  # reason: number of episodes
    examples: tuple[str, ...] = ()  # a few ids

    def __str__(self) -> str:
        """Return one line about them."""
        return "; ".join(f"{number:,}: {reason}" for reason, number in self.reasons.items())


@dataclass(frozen=True)
class Matching:
    """The m planned episodes that two runs share, in the order of the ledger of the baseline."""

    candidate: Planned
    baseline: Planned
    candidate_places: Numbers  # (m,) in the ledger of the candidate
    baseline_places: Numbers  # (m,)
    unmatched_candidate: Unmatched
    unmatched_baseline: Unmatched

    def __len__(self) -> int:
        return len(self.baseline_places)

    @property
    def why_not(self) -> str:
        """Why no episodes are shared."""
        reasons = {**self.unmatched_candidate.reasons, **self.unmatched_baseline.reasons}
        return "; ".join(reasons) if reasons else "a run has no episodes"

    @cached_property
    def clusters(self) -> Clusters:
        """The cluster of each shared episode, (m,)."""
        return clusters_of(self.baseline.clusters, self.baseline_places)

    @cached_property
    def scenarios(self) -> Clusters:
        """The scenario of each shared episode, (m,)."""
        return clusters_of(self.baseline.column("scenario_id"), self.baseline_places)

    @cached_property
    def cluster_names(self) -> list[str]:
        """The names of the clusters by their numbers."""
        return _names(self.baseline.clusters, self.baseline_places)

    def episode_ids(self, rows: Numbers | None = None) -> NDArray[np.object_]:
        """Return the ids of some shared episodes in the baseline, by default of all."""
        places = self.baseline_places if rows is None else self.baseline_places[rows]
        return self.baseline.ids.take(pa.array(places)).to_numpy(zero_copy_only=False)

    def candidate_ids(self, rows: Numbers) -> NDArray[np.object_]:
        """Return the ids of some shared episodes in the candidate, which may have other ids."""
        return self.candidate.ids.take(pa.array(self.candidate_places[rows])).to_numpy(zero_copy_only=False)

    @cached_property
    def classes(self) -> Mapping[str, Flags]:
        """The tags of the shared episodes: whether each episode has it, (m,), by name."""
        found: dict[str, Flags] = {}
        for planned, places in ((self.baseline, self.baseline_places), (self.candidate, self.candidate_places)):
            if "tags" not in planned.run.column_names("episodes"):
                continue
            lists = planned.run.episodes(["tags"])["tags"].combine_chunks()
            tags, parents = pc.list_flatten(lists).dictionary_encode(), pc.list_parent_indices(lists).to_numpy()
            places_of = np.full(len(planned), -1)
            places_of[places] = np.arange(len(places))
            episodes = places_of[planned.ended[parents]]
            codes = tags.indices.to_numpy(zero_copy_only=False)
            for code, name in enumerate(tags.dictionary.to_pylist()):
                flags = found.setdefault(name, np.zeros(len(self), np.bool_))
                chosen = episodes[codes == code]
                flags[chosen[chosen >= 0]] = True
        return dict(sorted(found.items()))

    @cached_property
    def factors(self) -> Mapping[str, NDArray[Any]]:
        """The factors of the shared episodes in the baseline by name, (m,): numbers, or words as objects."""
        names = [n for n in self.baseline.run.column_names("episodes") if n.startswith("factors.")]
        return {
            name.removeprefix("factors."): self.baseline.episode_column(name)[self.baseline_places] for name in names
        }


def match(candidate: Run, baseline: Run) -> Matching:
    """Find the planned episodes that two runs share.

    Episodes match if scenario, seed, replicate and factors are equal. Where a run has several with an equal key, their
    ids must be equal too.
    """
    ours, theirs = Planned(candidate), Planned(baseline)
    if ours.ids.equals(theirs.ids):
        if all(ours.plain(name).equals(theirs.plain(name)) for name in KEY):
            everything = np.arange(len(ours), dtype=np.int64)
            return Matching(ours, theirs, everything, everything, Unmatched(), Unmatched())
    count = len(ours)
    keys = _joint_codes([_joint_column(name, ours, theirs) for name in KEY])
    keys = _told_apart(keys, count, ours, theirs)
    shared, left, right = np.intersect1d(keys[:count], keys[count:], assume_unique=True, return_indices=True)
    order = np.argsort(right)
    return Matching(
        ours,
        theirs,
        left[order].astype(np.int64),
        right[order].astype(np.int64),
        _unmatched(ours, theirs, keys[:count], shared),
        _unmatched(theirs, ours, keys[count:], shared),
    )


def _joint_column(name: str, first: Planned, second: Planned) -> Numbers:
    """Return numbers that are equal where the values of a column are, for the episodes of both runs."""
    columns = [planned.column(name) for planned in (first, second)]
    columns = [c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in columns]
    if columns[0].type != columns[1].type:
        columns = [c.cast(pa.string()) for c in columns]
    codes = pa.concat_arrays(columns).dictionary_encode().indices
    return pc.fill_null(codes, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1


def _joint_codes(columns: list[Numbers]) -> Numbers:
    """Return numbers that are equal where all columns are."""
    codes = columns[0]
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if size > 1:
            codes = np.unique(codes * size + column, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return codes


def _told_apart(keys: Numbers, count: int, ours: Planned, theirs: Planned) -> Numbers:
    """Return keys of which each occurs once per run: those that repeat also contain the id of the episode."""
    size = int(keys.max(initial=0)) + 1
    repeats = (np.bincount(keys[:count], minlength=size) > 1) | (np.bincount(keys[count:], minlength=size) > 1)
    if not repeats.any():
        return keys
    ids = pa.concat_arrays([ours.ids, theirs.ids]).dictionary_encode().indices.to_numpy().astype(np.int64)
    return _joint_codes([keys, np.where(repeats[keys], ids + 1, 0)])


def _unmatched(own: Planned, other: Planned, keys: Numbers, shared: Numbers) -> Unmatched:
    """Count the episodes without a partner by reason."""
    rows = np.flatnonzero(~np.isin(keys, shared))
    if not rows.size:
        return Unmatched()
    reasons: dict[str, int] = {}
    rest = rows
    for parts, reason in _REASONS:
        codes = _joint_codes([_joint_column(name, own, other) for name in parts])
        is_new = ~np.isin(codes[rest], codes[len(own) :])
        if is_new.any():
            reasons[reason] = int(is_new.sum())
        rest = rest[~is_new]
    if rest.size:
        reasons[_REPEATED] = len(rest)
    return Unmatched(len(rows), reasons, tuple(own.ids.take(pa.array(rows[:EXAMPLES])).to_pylist()))


def clusters_of(column: pa.Array, places: Numbers) -> Clusters:
    """Return clusters numbered by sorted name, so that the order of the ledger has no influence on random draws."""
    names, used, codes = _ranked(column, places)
    del names
    return Clusters(codes, len(used))


def _names(column: pa.Array, places: Numbers) -> list[str]:
    names, used, _ = _ranked(column, places)
    chosen: list[str] = names.take(pa.array(used)).to_pylist()
    return chosen


def _ranked(column: pa.Array, places: Numbers) -> tuple[pa.Array, Numbers, Numbers]:
    """Return the sorted distinct names, the numbers of those in use, and the rank among those of each place."""
    names = column.dictionary.dictionary_encode()  # a dictionary may hold a name twice
    order = pc.sort_indices(names.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    codes = ranks[names.indices.to_numpy()][column.indices.to_numpy(zero_copy_only=False)[places]]
    is_used = np.bincount(codes, minlength=len(order)) > 0
    places_of = np.cumsum(is_used) - 1
    return names.dictionary.take(pa.array(order)), np.flatnonzero(is_used), places_of[codes].astype(np.int64)
