"""The results of an evaluation: the outcome of each section, and the runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, overload

from roadworthy.errors import UsageError
from roadworthy.evaluation.config import EvaluatorConfig, SummaryConfig
from roadworthy.metrics.roll_up import Part, part_of, roll_up
from roadworthy.plugins import nearest
from roadworthy.record import Run


@dataclass(frozen=True)
class Outcome:
    """The result of one section: a run, or the error that stopped it."""

    name: str
    config: EvaluatorConfig | None
    run: Run | None = field(repr=False)
    # None if not even the folder of a failed run could be written.
    error: BaseException | None
    references: Sequence[Run] = field(default=(), repr=False)
    # Floors and ceilings on the same ledger.

    @property
    def is_complete(self) -> bool:
        return self.error is None

    @property
    def headline(self) -> str:
        """The name of the figure that sums up the section."""
        return "score" if self.config is None else self.config.summary.figure

    @property
    def reason(self) -> str:
        """The first line of the error."""
        return f"{self.error}".strip().partition("\n")[0] or type(self.error).__name__


class Runs(Sequence[Run]):
    """The complete runs of an evaluation, in the order of their sections.

    Index by position or by section name. Sections that failed are not among the runs: `errors` names them.
    """

    def __init__(self, outcomes: Sequence[Outcome], out: Path, report: Path | None = None) -> None:
        self.outcomes = tuple(outcomes)  # of all sections, with their reference runs
        self.out = out  # the folder that holds the run folders
        self.report = report  # an HTML page about all runs; None if it could not be written
        self._runs = {o.name: o.run for o in outcomes if o.is_complete and o.run is not None}

    @property
    def errors(self) -> dict[str, BaseException]:
        """The error of each section that failed, by section name."""
        return {outcome.name: outcome.error for outcome in self.outcomes if outcome.error is not None}

    @property
    def summary(self) -> dict[str, Any]:
        """One figure over all sections, `eval_summary`: the weighted mean of the figures that their settings name."""
        return eval_summary(self.outcomes)

    def figure(self, name: str = "score") -> dict[str, Mapping[str, Any]]:
        """Return a figure of each run that has it, by section name.

        Args:
            name: The name of a figure in `run.metrics`.

        Returns:
            Tables with `value`, the interval `low` and `high`, and the sample size `n`.

        Raises:
            UsageError: No run has a figure of this name.
        """
        found = {o.name: figure for o in self.outcomes if (figure := figure_of(o, name)) is not None}
        if not found and self._runs:
            known = [figure["name"] for run in self for figure in (run.metrics or {})["figures"]]
            raise UsageError(f"no run has a figure {name!r}; {nearest(name, dict.fromkeys(known))}")
        return found

    @overload
    def __getitem__(self, key: int | str) -> Run: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Run]: ...
    def __getitem__(self, key: int | str | slice) -> Run | Sequence[Run]:
        return self._runs[key] if isinstance(key, str) else list(self._runs.values())[key]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        lines = [f"  {'  '.join(cells)}" for cells in self._rows()]
        return "\n".join([f"Runs in {self.out}: {len(self)} complete, {len(self.errors)} failed", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in self._rows())
        return f"<table><tr><th>evaluator</th><th>figure</th><th>run folder</th></tr>{rows}</table>"

    def _rows(self) -> list[tuple[str, str, str]]:
        """The name, the headline or the error, and the folder of each section."""
        rows = []
        for outcome in self.outcomes:
            figure = figure_of(outcome, outcome.headline)
            if outcome.error is not None:
                shown = f"failed: {outcome.reason}"
            elif figure is None or figure["value"] is None:
                shown = f"{outcome.headline}: no data"
            else:
                between = "" if figure["low"] is None else f" ({figure['low']:.3f} to {figure['high']:.3f})"
                shown = f"{outcome.headline} {figure['value']:.3f}{between}, n {figure['n']:,g}"
            rows.append((outcome.name, shown, str(outcome.run.folder) if outcome.run is not None else ""))
        return rows


def eval_summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return one figure over all sections: the mean of what each names in `summary`, by weight (metrics/roll_up.py)."""
    return roll_up([_part(outcome) for outcome in outcomes])


def _part(outcome: Outcome) -> Part:
    summary = outcome.config.summary if outcome.config is not None else SummaryConfig()
    weight = 1.0 if summary.weight is None else summary.weight
    metrics = outcome.run.metrics if outcome.run is not None and outcome.is_complete else None
    return part_of(outcome.name, summary.figure, weight, metrics)


def figure_of(outcome: Outcome, name: str) -> Mapping[str, Any] | None:
    """Return a figure of a complete run; None if it has none of this name."""
    metrics = outcome.run.metrics if outcome.run is not None and outcome.is_complete else None
    return next((figure for figure in metrics["figures"] if figure["name"] == name), None) if metrics else None
