"""Analyze which factors decide an outcome, from finished records to a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from roadworthy.errors import UsageError
from roadworthy.plots import FIGURE_SUFFIXES
from roadworthy.record import Run
from roadworthy.record.files import read_json
from roadworthy.sensitivity import analysis
from roadworthy.sensitivity.analysis import Analysis
from roadworthy.sensitivity.difference import difference
from roadworthy.sensitivity.discover import discovered, usual_outcome
from roadworthy.sensitivity.factors import read_factors
from roadworthy.sensitivity.report import write_main_figure, write_report
from roadworthy.sensitivity.rows import make_rows
from roadworthy.sensitivity.sources import RUN, load_rows, runs_in
from roadworthy.sensitivity.surface import SurfaceConfig


def analyze_sensitivity(
    run: Run | str | Path,
    factors: str | Path | None = None,
    outcome: str | None = None,
    *,
    against: Run | str | Path | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    model: Literal["splines", "process"] = "splines",
    neural: bool = False,
    next_episodes: int = 16,
    seed: int = 0,
    report: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """Analyze which factors decide an outcome and how certain that is, and suggest episodes to run next.

    Args:
        run: A run, a folder of a run, of runs or of jobs, or a .jsonl or .parquet file with a row per episode.
        factors: A .yaml or .toml file that names the factors and their ranges. If None, every factor that differs
            between the rows is analyzed, over the range that the rows have; in driving runs also the class of the
            scenario, the number of road users at the start and the speed limit there.
        outcome: The outcome to explain. If None, `success`, or `score` where no row has `success`, as in driving runs.
        against: Another run, in the same forms. The result then also says where in the space of the factors this other
            run is worse or better: in pairs where its episodes have the same scenario, seed, replicate and factors.
        at_least: Count an episode as success if its outcome is at least this value.
        at_most: Count an episode as success if its outcome is at most this value.
        model: The form of the response surface: additive splines, or a Gaussian process.
        neural: Also fit a neural posterior (NPE or MNPE), which needs the extra `sensitivity`.
        next_episodes: The number of episodes to suggest.
        seed: The seed of all random draws.
        report: Write a report (.html) or its main figure (.png, .pdf, .svg) to this file, and all figures beside it as
            .json.
        progress: Called with the number of fits that are done, and the total.

    Returns:
        The importance of each factor with intervals, warnings, and suggested episodes.

    Raises:
        UsageError: The outcome, a factor or the report file makes no sense.

    Example:
        >>> import roadworthy as rw
        >>> found = rw.analyze_sensitivity("episodes.jsonl", factors="factors.yaml", report="report.html")
        >>> [found.importance[number].factor for number in found.ranking]
        ['light', 'friction']
    """
    suffixes = (".html", *FIGURE_SUFFIXES)
    if report is not None and Path(report).suffix.lower() not in suffixes:
        raise UsageError(f"report is {str(report)!r}, expected a file that ends in {' or '.join(suffixes)}")
    source = run.folder if isinstance(run, Run) else Path(run)
    other = None if against is None else against.folder if isinstance(against, Run) else Path(against)
    sources = [source] if other is None else [source, other]
    named = None if factors is None else read_factors(factors)
    tables = [load_rows(path, named) for path in sources]
    every = [row for table in tables for row in table]
    known = discovered(every) if named is None else named
    explained = usual_outcome(every) if outcome is None else outcome
    made = [
        make_rows(table, known, explained, at_least, at_most, source=str(path))
        for path, table in zip(sources, tables, strict=True)
    ]
    rows = made[0]
    settings = analysis.AnalysisConfig(
        SurfaceConfig(model=model, seed=seed), next_episodes=next_episodes, has_neural_posterior=neural
    )
    found = analysis.analyze(rows, settings, progress)
    if other is not None:
        found = replace(found, difference=difference(rows, made[1], names(source, other), seed))
    if report is not None:
        write_files(found, Path(report))
    return found


def names(first: Path, second: Path) -> tuple[str, str]:
    """Return short names that tell two runs apart: of their policies, else the shortest ends of paths that differ."""
    policies = _policy(first), _policy(second)
    if policies[0] and policies[1] and policies[0] != policies[1]:
        return policies[0], policies[1]
    one, two = first.resolve().parts, second.resolve().parts
    for count in range(1, max(len(one), len(two)) + 1):
        ends = "/".join(one[-count:]), "/".join(two[-count:])
        if ends[0] != ends[1]:
            return ends
    raise UsageError(f"both runs are {str(first)!r}; name two different runs")


def _policy(path: Path) -> str | None:
    """Return the name of the policy of a run, or of all runs in a folder; None if there are several or none."""
    headers = [read_json(run / RUN) for run in runs_in(path) if (run / RUN).is_file()] if path.is_dir() else []
    found = {str(header.get("policy") or "") for header in headers}
    return found.pop() or None if len(found) == 1 else None


def write_files(found: Analysis, path: Path) -> list[Path]:
    """Write the report (.html) or its main figure, with all figures as .json beside it. Return all paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write = write_report if path.suffix.lower() == ".html" else write_main_figure
    return write(found, path)
