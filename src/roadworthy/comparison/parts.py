"""The parts of a comparison: classes, trials, bins of factors, and the episodes that flipped."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roadworthy.comparison.pairs import Pairs
from roadworthy.comparison.planned import Flags, Numbers, Planned
from roadworthy.metrics.metric import Kind
from roadworthy.record.files import file_inside

BINS = 4  # of a numeric factor, with about equally many episodes each
MOST_LEVELS = 12  # of a categorical factor that are shown
MOST_FLIPS = 200  # that are listed, per direction
VIDEO = "video_"  # prefix of the names of videos among the artifacts


@dataclass(frozen=True)
class Flip:
    """An episode in which the two runs differ most in a metric."""

    episode_id: str  # in the baseline
    candidate_episode_id: str
    scenario_id: str
    candidate: float | None  # the mean over its rows
    baseline: float | None
    gained: int  # rows that changed for the better, or upward where a metric has no direction
    lost: int
    tags: tuple[str, ...] = ()
    is_missing: bool = False  # whether one of the runs has no result for it
    commands: tuple[str, ...] = ()
    videos: Mapping[str, str] = field(default_factory=dict)  # "candidate" or "baseline": path of a video

    @property
    def change(self) -> int:
        """How many more rows changed for the better than for the worse."""
        return self.gained - self.lost


def by_class(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """Yield the pairs of each class, if there are several."""
    classes = pairs.classes
    if len(classes) > 1:
        for name, rows in classes.items():
            if rows.any():
                yield name, pairs.where(rows)


def by_trial(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """Yield the pairs of each trial, if there are several; trials are counted from 1."""
    if pairs.trials is not None and pairs.trials.max(initial=0) > 0:
        for trial in range(int(pairs.trials.max()) + 1):
            yield f"trial {trial + 1}", pairs.where(pairs.trials == trial)


def by_factor(pairs: Pairs) -> Iterator[tuple[str, str, Pairs]]:
    """Yield name, bin and pairs: quantile bins of numeric factors, the levels of others; constant ones are left out."""
    for name, values in pairs.factors.items():
        for label, rows in _bins(values):
            if rows.any():
                yield name, label, pairs.where(rows)


def _bins(values: np.ndarray[Any, Any]) -> Iterator[tuple[str, Flags]]:
    if values.dtype.kind not in "fiub":
        levels, counts = np.unique([str(value) for value in values], return_counts=True)
        if len(levels) > 1:
            for level in levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS]:
                yield str(level), np.array([str(value) == level for value in values])
        return
    known = values[~np.isnan(values)]
    levels = np.unique(known)
    if len(levels) < 2:
        return
    if len(levels) <= BINS:
        for level in levels:
            yield f"{level:.4g}", values == level
        return
    edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, BINS + 1)))
    for place, (low, high) in enumerate(pairwise(edges)):
        is_last = place == len(edges) - 2
        yield f"{low:.3g} to {high:.3g}", (values >= low) & ((values <= high) if is_last else (values < high))


@dataclass(frozen=True)
class Flips:
    """The episodes whose rows changed: how many, and the largest changes of both directions."""

    lost: int = 0  # episodes with more rows that changed for the worse than for the better
    gained: int = 0
    listed: tuple[Flip, ...] = ()  # the largest losses first, the largest gains last


def flips(pairs: Pairs) -> Flips:
    """Return the episodes whose rows changed; other metrics than rates have none."""
    if pairs.metric.kind is not Kind.RATE:
        return Flips()
    shown = pairs.counted()
    sign = -1.0 if pairs.metric.better == "lower" else 1.0
    change = np.nan_to_num(sign * shown.differences)
    count = len(pairs.episodes)
    gained = np.bincount(shown.episode, change > 0.0, count).astype(np.int64)
    lost = np.bincount(shown.episode, change < 0.0, count).astype(np.int64)
    net = gained - lost
    worse, better = np.flatnonzero(net < 0), np.flatnonzero(net > 0)
    largest_losses = worse[np.argsort(net[worse], kind="stable")][:MOST_FLIPS]
    largest_gains = better[np.argsort(-net[better], kind="stable")][:MOST_FLIPS][::-1]
    rows = np.concatenate([largest_losses, largest_gains])
    return Flips(len(worse), len(better), tuple(_flips(pairs, shown, rows, gained, lost)))


def _flips(pairs: Pairs, shown: Pairs, rows: Numbers, gained: Numbers, lost: Numbers) -> Iterator[Flip]:
    """Yield the flips of some episodes."""
    if not rows.size:
        return
    episodes, count = pairs.episodes, len(pairs.episodes)
    means = [_means(values, shown.episode, count)[rows] for values in (shown.candidate, shown.baseline)]
    missing = np.bincount(shown.episode, pairs.missing_candidate | pairs.missing_baseline, count)[rows] > 0
    ids, theirs = episodes.episode_ids(rows), episodes.candidate_ids(rows)
    places = pa.array(episodes.baseline_places[rows])
    scenarios = episodes.baseline.column("scenario_id").dictionary_decode().take(places).to_pylist()
    classes = episodes.classes
    videos = (_videos(episodes.candidate, theirs), _videos(episodes.baseline, ids))
    for k, row in enumerate(rows.tolist()):
        names = {"candidate": str(theirs[k]), "baseline": str(ids[k])}
        found = {side: known.get(names[side]) for side, known in zip(names, videos, strict=True)}
        yield Flip(
            names["baseline"],
            names["candidate"],
            scenarios[k],
            None if math.isnan(means[0][k]) else float(means[0][k]),
            None if math.isnan(means[1][k]) else float(means[1][k]),
            int(gained[row]),
            int(lost[row]),
            tuple(name for name, flags in classes.items() if flags[row]),
            bool(missing[k]),
            commands(pairs, names["baseline"], names["candidate"]),
            {side: path for side, path in found.items() if path},
        )


def commands(pairs: Pairs, baseline_id: str, candidate_id: str) -> tuple[str, ...]:
    """Return commands that film and replay an episode in both runs; none for runs without scenarios to draw."""
    found = []
    for planned, id in ((pairs.episodes.candidate, candidate_id), (pairs.episodes.baseline, baseline_id)):
        if planned.run.pack.exists():
            folder = str(planned.run.folder)
            found.append(shlex.join(["roadworthy", "render", folder, "--episode", id]))
            found.append(shlex.join(["roadworthy", "replay", folder, id]))
    return tuple(found)


def _videos(planned: Planned, ids: Any) -> dict[str, str]:
    """Return the first video of some episodes by id, with its whole path; files outside of the run are left out."""
    names = pa.array(ids.tolist(), pa.string())
    table = planned.run.episodes(["episode_id", "artifacts", "artifact_errors"])
    table = table.filter(pc.is_in(table["episode_id"], names))
    found: dict[str, str] = {}
    for row in table.select(["episode_id", "artifacts"]).to_pylist():
        for name, path in sorted(row["artifacts"] or ()):
            place = file_inside(planned.run.folder, path) if name.startswith(VIDEO) else None
            if place is not None and place.is_file():
                found.setdefault(row["episode_id"], str(place))
    return found


def _means(values: Any, codes: Any, count: int) -> Any:
    """Return the mean of each episode, NaN without data."""
    known = ~np.isnan(values)
    sizes = np.bincount(codes[known], minlength=count)
    with np.errstate(invalid="ignore"):
        return np.bincount(codes[known], values[known], count) / np.where(sizes > 0, sizes, np.nan)
