"""The gate: decide whether a candidate is worse than a baseline, from two runs or by running episodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roadworthy.comparison.gate import BLOCK, GateDecision, decide
from roadworthy.comparison.margins import as_margin
from roadworthy.comparison.sources import find_runs, holds_runs
from roadworthy.errors import CheckpointError, UsageError
from roadworthy.metrics.metric import Better
from roadworthy.policy.checkpoint_files import resolve_checkpoint
from roadworthy.policy.spec import Kind, is_reserved, kind_of
from roadworthy.progress import Showing, show_nothing
from roadworthy.record import Run
from roadworthy.record.run import RUN
from roadworthy.statistics.sequential import ERROR, Verdict


@dataclass(frozen=True, repr=False)
class GateResult:
    """The decision of a gate, and the runs that it is about."""

    decision: GateDecision
    candidate: Run
    baseline: Run
    budget: int | None
    # Episodes that the gate could run; None if it decided from two existing runs.

    @property
    def verdict(self) -> Verdict:
        """Pass, regression or undecided."""
        return self.decision.verdict

    def __repr__(self) -> str:
        from roadworthy.report.words import number

        found = self.decision
        unit = found.metric.unit
        shown = [number(value, unit, signed=True) for value in (found.difference, found.low, found.high)]
        return (
            f"GateResult: {found.verdict.value}, {found.metric.name} {shown[0]} ({shown[1]} to {shown[2]}), margin "
            f"{number(found.margin, unit)}, {found.episodes:,} pairs of episodes\n"
            f"  candidate  {self.candidate.folder}\n  baseline   {self.baseline.folder}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        folders = {"candidate": str(self.candidate.folder), "baseline": str(self.baseline.folder)}
        return {**self.decision.as_json(), **folders, "budget": self.budget}


@dataclass(frozen=True)
class GateRule:
    """What a gate decides, and how often it looks."""

    metric: str | None  # None: score, or success where there is no score
    margin: float
    bounds: tuple[float, float] | None
    better: Better
    error: float
    seed: int
    block: int

    def decide(self, candidate: Run, baseline: Run, first: int | None = None) -> GateDecision:
        """Decide from two run folders; first: how many of the planned episodes of a gate's run count."""
        return decide(
            candidate,
            baseline,
            self.metric,
            self.margin,
            bounds=self.bounds,
            better=self.better,
            error=self.error,
            seed=self.seed,
            block=self.block,
            first=first,
        )


def gate(
    candidate: str | Path | Run,
    baseline: str | Path | Run,
    metric: str | None = None,
    margin: float = 0.02,
    *,
    suite: str | Path | None = None,
    evaluator: str | None = None,
    set: Mapping[str, Any] | Iterable[str] = (),
    budget: int | None = None,
    block: int = BLOCK,
    out: str | Path = "runs",
    seed: int = 0,
    workers: int | None = None,
    bounds: tuple[float, float] | None = None,
    better: Better = "",
    error: float = ERROR,
    trust: bool = False,
    progress: Showing = show_nothing,
    on_look: Callable[[GateDecision], None] = lambda decision: None,
) -> GateResult:
    """Decide whether a candidate is worse than a baseline by more than a margin, however often one looks.

    Two runs are compared as they are. If the candidate is a policy, the gate runs episodes in blocks until it has
    decided or the budget is spent; the same call resumes it, and with a larger budget it continues.

    Args:
        candidate: A run folder, a folder of the runs of one section, of which the newest complete one counts, or a
            policy such as a checkpoint folder.
        baseline: The same; a policy runs on the same episodes as the candidate.
        metric: A metric with bounds: a rate, a share, a closed-loop score, or a mean with `bounds`. By default score,
            or success where the runs have no score.
        margin: The largest acceptable loss, in the unit of the metric.
        suite: A .toml file or the name of a suite. Needed if the baseline is a policy. If it is a run, its episodes
            are run again, by default with its settings.
        evaluator: The section of the suite to run, if it has several.
        set: Settings that replace those of the suite, as in `evaluate`.
        budget: The largest number of episodes to run; by default all that are planned.
        block: The number of episodes between two looks.
        out: The folder for run folders.
        seed: The seed of the order of episodes.
        workers: The number of processes that run episodes.
        bounds: The least and the greatest value of a row, for a metric that does not declare them.
        better: "higher" or "lower", for a metric that does not declare it.
        error: The probability that a decision in one direction is ever wrong.
        trust: Run code that the run folder of the baseline names.
        progress: Called with the name of each phase; returns a context manager for a function of (done, total).
        on_look: Called with the state after each block.

    Returns:
        The decision with its bounds, and both runs.

    Raises:
        UsageError: The runs share no episode, or the metric has no bounds.

    Example:
        >>> import roadworthy as rw
        >>> run = "runs/town/20260101T120000Z-best-1f2e3d4c"
        >>> result = rw.gate(run, run, metric="score", margin=0.5)  # a run is not worse than itself
        >>> result.verdict.value, result.decision.episodes
        ('pass', 12)
    """
    if block < 1:
        raise UsageError(f"block is {block}; a look needs at least 1 episode")
    if budget is not None and budget < 1:
        raise UsageError(f"the budget is {budget} episodes; allowed: at least 1")
    rule = GateRule(metric, as_margin(margin), bounds, better, error, seed, block)
    ours, theirs = _as_run(candidate), _as_run(baseline)
    if ours is None:
        from roadworthy.evaluation.gate_runs import run_gate  # needs the simulator

        return run_gate(
            str(candidate),
            theirs or str(baseline),
            rule,
            suite=suite,
            evaluator=evaluator,
            overrides=set,
            budget=budget,
            out=Path(out),
            workers=workers,
            trust=trust,
            showing=progress,
            on_look=on_look,
        )
    if theirs is None:
        raise UsageError(
            f"the candidate {ours.folder.name} is a run, but the baseline {baseline} is not a run folder; give two "
            "runs, or a policy as the candidate"
        )
    given = {"suite": suite, "evaluator": evaluator, "set": set or None, "budget": budget, "workers": workers}
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        raise UsageError(f"{unused[0]} was given, but both sides are runs, so no episode is run; leave it out")
    return GateResult(rule.decide(ours, theirs), ours, theirs, None)


def _as_run(given: str | Path | Run) -> Run | None:
    """Return the run in a folder, or the newest complete run of a folder of runs; None for a policy."""
    if isinstance(given, Run):
        return given
    path = Path(given).expanduser()
    if (path / RUN).is_file():
        return Run(path)
    if is_reserved(given):
        return None
    if path.name == RUN and path.is_file():
        raise UsageError(f"{given}: is the file of a run; name its folder, {path.parent}")
    kind = kind_of(given)
    if kind is Kind.UNKNOWN and os.sep in str(given):
        raise UsageError(f"{given}: there is no such folder; name a run folder, a folder of runs, or a policy")
    if kind is not Kind.CHECKPOINT or not path.is_dir() or not holds_runs(path) or _is_checkpoint(path):
        return None
    found = find_runs(path)
    if len(found) > 1:
        raise UsageError(
            f"{given} has the runs of {len(found)} sections: {', '.join(found)}; a gate decides about one, so name the "
            "folder of one"
        )
    return next(iter(found.values()))


def _is_checkpoint(path: Path) -> bool:
    """Return whether a folder is a checkpoint or a training folder."""
    try:
        resolve_checkpoint(path)
    except CheckpointError:
        return False
    return True
