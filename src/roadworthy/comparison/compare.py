"""Compare runs: every metric that they share, as differences to a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.comparison import difference as differences_of
from roadworthy.comparison import parts
from roadworthy.comparison.difference import Difference, Verdict, judged
from roadworthy.comparison.margins import Margins, margin_of, margins_by_metric, require_known_margins
from roadworthy.comparison.matching import Matching, match
from roadworthy.comparison.pairs import Pairs, comparable_metrics, pair_rows
from roadworthy.comparison.parts import Flips
from roadworthy.comparison.ranking import Ranking, rank_runs
from roadworthy.comparison.row_values import ValueReader
from roadworthy.comparison.settings import differing_settings, settings_notes
from roadworthy.comparison.sources import find_runs, labels, shared_sections
from roadworthy.comparison.unpaired import unpaired_inputs
from roadworthy.errors import UsageError
from roadworthy.metrics.headlines import HEADLINES
from roadworthy.metrics.metric import Kind, Metric
from roadworthy.plugins import nearest
from roadworthy.record import Run
from roadworthy.statistics import LEVEL
from roadworthy.statistics.multiple import holm

SCHEMA = "1.0"
MOST_DOTS = 400  # clusters in the picture of pairs


@dataclass(frozen=True)
class Dot:
    """A cluster in the picture of pairs: the means of both runs over its rows."""

    name: str
    candidate: float
    baseline: float
    rows: int


@dataclass(frozen=True)
class Versus:
    """One candidate against the reference in one section."""

    section: str
    label: str
    reference_label: str
    run: Run = field(repr=False)
    reference: Run = field(repr=False)
    is_paired: bool
    pairs: int  # shared episodes
    unmatched: tuple[str, str]  # why episodes of the candidate and of the reference have no partner; empty: all have
    why_unpaired: str
    differences: tuple[Difference, ...]  # headline metrics first
    headlines: tuple[str, ...]  # the metrics of the first family
    by_class: tuple[Difference, ...] = ()  # of the main metric
    by_trial: tuple[Difference, ...] = ()
    by_factor: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    flips: Flips = field(default_factory=Flips)
    dots: tuple[Dot, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, repr=False)
    # Those that differ and may change figures, by dotted key: of the reference, and of the run.

    @property
    def main(self) -> Difference:
        """The difference of the first metric."""
        return self.differences[0]

    @property
    def shown(self) -> tuple[Difference, ...]:
        """The differences of the headline metrics."""
        return tuple(found for found in self.differences if found.metric.name in self.headlines)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of a comparison."""

    reference: str  # its label, or its labels where they differ between sections
    versus: tuple[Versus, ...]  # by section, then by candidate
    rankings: tuple[Ranking, ...]  # by section, where there are more than two runs
    left_out: tuple[str, ...]  # sections that only some of the sources have
    level: float
    margin: Mapping[str, float]  # by metric; "" holds for all others

    def __repr__(self) -> str:
        from roadworthy.report.difference_words import conclusion, title

        lines = (f"  {f'{each.section}: ' if each.section else ''}{conclusion(each)}" for each in self.versus)
        return "\n".join((f"Comparison: {title(self)}", *lines))

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Every difference, main metrics first within each section and candidate."""
        return tuple(found for versus in self.versus for found in versus.differences)

    @property
    def flips(self) -> tuple[parts.Flip, ...]:
        """The episodes that changed most in the main metric, for the worse first."""
        return tuple(flip for versus in self.versus for flip in versus.flips.listed)

    @property
    def by_class(self) -> tuple[Difference, ...]:
        """The difference of the main metric in each class."""
        return tuple(found for versus in self.versus for found in versus.by_class)

    @property
    def is_worse(self) -> bool:
        """Whether any headline metric is worse."""
        return any(found.verdict is Verdict.WORSE for versus in self.versus for found in versus.shown)

    @property
    def is_undecided(self) -> bool:
        """Whether the main metric is undecided anywhere."""
        return any(versus.main.verdict is Verdict.UNDECIDED for versus in self.versus)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as `--json` prints it; docs/comparison.md documents the fields."""
        return {
            "schema_version": SCHEMA,
            "reference": self.reference,
            "level": self.level,
            "margin": dict(self.margin),
            "sections": [_versus_dict(versus) for versus in self.versus],
            "rankings": [ranking.to_dict() for ranking in self.rankings],
            "left_out": list(self.left_out),
        }

    def write_html(self, path: str | Path) -> Path:
        """Write a page with pictures, and the data behind them as .json and .csv beside it; return its path."""
        from roadworthy.report.comparison import write_comparison

        return write_comparison(self, Path(path))


def compare(
    a: Run | str | Path | Sequence[Run],
    b: Run | str | Path | Sequence[Run],
    *more: Run | str | Path | Sequence[Run],
    metrics: str | Sequence[str] = (),
    margin: Margins = None,
    reference: int = 0,
    paired: bool = True,
    level: float = LEVEL,
) -> Comparison:
    """Compare runs: how figures differ, and what the data allow to conclude.

    Episodes with equal scenario, seed, replicate and factors are compared in pairs. Runs that share none are compared
    as independent samples. A difference is a run's figure minus that of the reference.

    Args:
        a: A run, the runs of an evaluation, a run folder, or a folder of runs, of which the newest complete one of
            each section counts. It is the reference.
        b: The run, or runs, to compare with it.
        more: Further runs; with them, runs are also ranked.
        metrics: The name of a metric, or names, of which the first one is the main metric. By default all, and the
            main one is the first headline figure of reports.
        margin: How much worse a run may be and still count as not worse: a number for all metrics, or by metric.
        reference: The position of the reference among the runs, from 0.
        paired: If False, the runs are compared as independent samples, even if they share episodes.
        level: The level of intervals; p-values are judged at 1 - level.

    Returns:
        The differences with intervals and verdicts, flipped episodes, and differences by class. `to_dict()` returns
        everything, `write_html(path)` writes a page.

    Raises:
        UsageError: A path names no run, the runs share no metric, or an argument makes no sense.

    Example:
        >>> import roadworthy as rw
        >>> found = rw.compare("runs/before", "runs/after", metrics=["score"], margin=0.02)
        >>> found.differences[0].verdict.value, found.differences[0].interval.value
        ('worse', -0.25)
        >>> [flip.episode_id for flip in found.flips][:2]
        ['street-000-r0', 'street-004-r0']
    """
    margins = margins_by_metric(margin)
    metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    if not 0.0 < level < 1.0:
        raise UsageError(f"level is {level}; allowed: above 0 and below 1, such as {LEVEL}")
    sources = [find_runs(source) for source in (a, b, *more)]
    if not 0 <= reference < len(sources):
        raise UsageError(
            f"reference is {reference}, but there are {len(sources)} runs; allowed: 0 to {len(sources) - 1}"
        )
    sections, left_out = shared_sections(sources)
    found, rankings, references = [], [], []
    for section, runs in sections.items():
        names = labels(runs)
        references.append(names[reference])
        chosen = _metrics(runs, metrics)
        require_known_margins(margins, chosen)
        for place, run in enumerate(runs):
            if place != reference:
                both = names[place], names[reference]
                versus = _Versus(section, both, run, runs[reference], chosen, margins, level, metrics, paired)
                found.append(versus.result())
        if len(runs) > 2:
            rankings.append(rank_runs(section, names, runs, chosen[0], paired=paired, level=level))
    title = ", ".join(dict.fromkeys(references))
    return Comparison(title, tuple(found), tuple(rankings), tuple(left_out), level, margins)


class _Versus:
    """Compares one candidate with the reference in one section."""

    def __init__(
        self,
        section: str,
        labels: tuple[str, str],
        run: Run,
        reference: Run,
        metrics: Sequence[Metric],
        margins: Mapping[str, float],
        level: float,
        named: Sequence[str],
        paired: bool,
    ) -> None:
        self._section, self._run, self._reference = section, run, reference
        self._label, self._reference_label = labels
        self._metrics, self._margins, self._level = metrics, margins, level
        names = [metric.name for metric in metrics]
        self._differing = differing_settings(reference, run, names)
        self._headlines = tuple(named) or tuple(name for name in HEADLINES if name in names) or tuple(names)
        self._matched: Matching = match(run, reference)
        self._readers = ValueReader(self._matched.candidate), ValueReader(self._matched.baseline)
        self._is_paired = paired and len(self._matched) > 0
        self._why = ""
        if not self._is_paired:
            self._why = self._matched.why_not if not len(self._matched) else "this was asked for"

    def result(self) -> Versus:
        """Return every difference of the candidate."""
        main: Pairs | None = None
        found = []
        for metric in self._metrics:
            if self._is_paired:
                pairs = pair_rows(self._matched, metric, self._readers)
                main = pairs if main is None else main
                found.append(differences_of.paired(pairs, "", self._level))
            else:
                found.append(
                    differences_of.unpaired(metric, *unpaired_inputs(metric, self._readers), level=self._level)
                )
        found = self._judged(self._corrected(found))
        broken_down: dict[str, Any] = {} if main is None else self._broken_down(main)
        return Versus(
            self._section,
            self._label,
            self._reference_label,
            self._run,
            self._reference,
            self._is_paired,
            len(self._matched),
            (str(self._matched.unmatched_candidate), str(self._matched.unmatched_baseline)),
            self._why,
            tuple(found),
            self._headlines,
            notes=tuple(self._notes(main)),
            settings=self._differing,
            **broken_down,
        )

    def _corrected(self, found: list[Difference]) -> list[Difference]:
        """Return differences with Holm's correction: headlines as one family, all metrics as another."""
        everything = holm([each.p for each in found])
        is_headline = [each.metric.name in self._headlines for each in found]
        first = holm([each.p if is_in else None for each, is_in in zip(found, is_headline, strict=True)])
        return [replace(each, p_holm=first[k] if is_headline[k] else everything[k]) for k, each in enumerate(found)]

    def _judged(self, found: list[Difference]) -> list[Difference]:
        return [
            replace(
                judged(each, margin_of(self._margins, each.metric.name), 1.0 - self._level),
                run=self._label,
                section=self._section,
            )
            for each in found
        ]

    def _broken_down(self, pairs: Pairs) -> dict[str, Any]:
        """Return the main metric by class, trial and factor, its flips, and a dot for each cluster."""

        def each(found: list[tuple[str, Pairs]]) -> tuple[Difference, ...]:
            made = [differences_of.paired(some, name, self._level) for name, some in found]
            corrected = holm([one.p for one in made])
            return tuple(self._judged([replace(one, p_holm=p) for one, p in zip(made, corrected, strict=True)]))

        factors: dict[str, list[tuple[str, Pairs]]] = {}
        for name, label, some in parts.by_factor(pairs):
            factors.setdefault(name, []).append((label, some))
        return {
            "by_class": each(list(parts.by_class(pairs))),
            "by_trial": each(list(parts.by_trial(pairs))),
            "by_factor": {name: each(found) for name, found in factors.items()},
            "flips": parts.flips(pairs),
            "dots": tuple(_dots(pairs)),
        }

    def _notes(self, pairs: Pairs | None) -> list[str]:
        """Return what to know before believing the differences."""
        notes = []
        if self._run.folder.resolve() == self._reference.folder.resolve():
            notes.append("both are the same run, so every difference is 0")
        for run, name in ((self._run, self._label), (self._reference, "the reference")):
            if not run.is_sealed:
                notes.append(f"{name} is {run.status}: episodes that have not run count as missing")
        versions = [_versions(run) for run in (self._run, self._reference)]
        changed = [n for n in versions[0] if n in versions[1] and versions[0][n] != versions[1][n]]
        chosen = [metric.name for metric in self._metrics if metric.name in changed]
        if chosen:
            notes.append(f"the runs computed these by different versions: {', '.join(chosen)}; use roadworthy rescore")
        alone = self._matched.unmatched_candidate.count + self._matched.unmatched_baseline.count
        if pairs is not None and (lost := pairs.unmatched_candidate + pairs.unmatched_baseline - alone):
            notes.append(f"{lost:,} rows of agents that only one of the runs has are left out")
        notes += settings_notes(self._reference, self._run, self._differing)
        return notes


def _dots(pairs: Pairs) -> list[Dot]:
    """Return the means of both runs for each cluster, or for a random part of them if there are many."""
    if pairs.metric.kind is Kind.RATIO:
        return []
    shown = pairs.counted()
    known = ~np.isnan(shown.differences)
    codes, count = shown.clusters.codes[known], shown.clusters.count
    sizes = np.bincount(codes, minlength=count)
    used = np.flatnonzero(sizes)
    if len(used) > MOST_DOTS:
        used = np.sort(np.random.default_rng(0).choice(used, MOST_DOTS, replace=False))
    sides = [
        np.bincount(codes, values[known], count)[used] / sizes[used] for values in (shown.candidate, shown.baseline)
    ]
    names = pairs.episodes.cluster_names
    places = _cluster_places(pairs)
    return [
        Dot(names[places[k]], float(first), float(second), int(sizes[k]))
        for k, first, second in zip(used.tolist(), *(side.tolist() for side in sides), strict=True)
    ]


def _cluster_places(pairs: Pairs) -> Any:
    """Return the number among the clusters of all shared episodes of each cluster of the rows."""
    places = np.zeros(pairs.clusters.count, np.int64)
    places[pairs.clusters.codes] = pairs.episodes.clusters.codes[pairs.episode]
    return places


def _metrics(runs: Sequence[Run], named: Sequence[str]) -> list[Metric]:
    """Return the metrics that all runs have, those of HEADLINES first, or the named ones."""
    shared = {metric.name: metric for metric in comparable_metrics(runs[0], runs[1])}
    for run in runs[2:]:
        others = {metric.name for metric in comparable_metrics(runs[0], run)}
        shared = {name: metric for name, metric in shared.items() if name in others}
    if not shared:
        listed = ", ".join(run.folder.name for run in runs)
        raise UsageError(f"the runs share no metric that can be compared: {listed}; are they of the same kind?")
    if named:
        for name in named:
            if name not in shared:
                raise UsageError(f"unknown metric {name!r}; {nearest(name, shared)}")
        return [shared[name] for name in named]
    first = [name for name in HEADLINES if name in shared]
    return [shared[name] for name in (*first, *(name for name in shared if name not in first))]


def _versions(run: Run) -> dict[str, Any]:
    return {str(figure["name"]): figure.get("version") for figure in (run.metrics or {}).get("figures", ())}


def _versus_dict(versus: Versus) -> dict[str, Any]:
    return {
        "section": versus.section,
        "candidate": {"label": versus.label, "folder": str(versus.run.folder)},
        "reference": {"label": versus.reference_label, "folder": str(versus.reference.folder)},
        "paired": versus.is_paired,
        "why_unpaired": versus.why_unpaired,
        "shared_episodes": versus.pairs,
        "unmatched": {"candidate": versus.unmatched[0], "reference": versus.unmatched[1]},
        "notes": list(versus.notes),
        "settings": {
            name: {"reference": values[0], "candidate": values[1]} for name, values in versus.settings.items()
        },
        "headlines": list(versus.headlines),
        "differences": [each.to_dict() for each in versus.differences],
        "by_class": [each.to_dict() for each in versus.by_class],
        "by_trial": [each.to_dict() for each in versus.by_trial],
        "by_factor": {name: [each.to_dict() for each in found] for name, found in versus.by_factor.items()},
        "flips": {
            "lost": versus.flips.lost,
            "gained": versus.flips.gained,
            "listed": [{**vars(flip), "videos": dict(flip.videos)} for flip in versus.flips.listed],
        },
    }
