"""Check the results in a log or a run for order and stopping bias, repeated and missing episodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from roadworthy.record.readers.log import Role
from roadworthy.record.run import RUN, Run
from roadworthy.results.episodes import Episodes, episodes_of_run, episodes_of_scan
from roadworthy.results.findings import Estimate, Finding, Report, Severity
from roadworthy.results.import_results import understand
from roadworthy.results.order import environment_findings, estimate, length_finding

_MOST_AT_LIMIT = 0.05  # share of episodes at the greatest length from which on it is taken for the limit


def check_results(
    path: str | Path,
    format: str = "auto",
    roles: dict[str, Role] | None = None,
    *,
    outcome: str | None = None,
    skip_damaged: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Report]:
    """Return a report for each job and policy of a log, or for a run folder.

    Args:
        path: A log, or a run folder.
        format: The format of the log; see `import_results`.
        roles: Roles of the columns of the log that replace the guessed ones.
        outcome: The outcome of a run folder to check. None: success, or the first of its headline figures.
        skip_damaged: Leave out damaged rows of text files.
        progress: Called with the number of episodes that were read, and their total.
    """
    path = Path(path)
    if (path / RUN).is_file():
        return [check(episodes_of_run(Run(path), outcome))]
    understood = understand(path, format, roles, skip_damaged=skip_damaged, progress=progress)
    return [check(episodes) for episodes in episodes_of_scan(understood.scan)]


def check(episodes: Episodes) -> Report:
    """Check the episodes of one evaluation of one policy."""
    length = length_finding(episodes)
    findings = [_missing(episodes), _constant(episodes), length, _limit(episodes)]
    findings += [_identical(episodes), _repeated(episodes)]
    # Without lengths, or with one outcome, nothing shows that they do not matter.
    is_length_bound = not np.isfinite(episodes.length).any() or (length is not None and length.severity > Severity.OK)
    estimates, more = environment_findings(episodes, is_length_bound)
    everything = Estimate("all", f"all {len(episodes)} episodes", estimate(episodes))
    known = [finding for finding in [*findings, *more] if finding is not None]
    known.sort(key=lambda finding: -finding.severity)
    return Report(episodes.name, episodes.outcome, len(episodes), (everything, *estimates), tuple(known))


def _missing(episodes: Episodes) -> Finding:
    """Count the episodes without data, and how far they could move the estimate."""
    known = ~np.isnan(episodes.value)
    never = episodes.planned - len(episodes)
    missing = int((~known).sum()) + never
    total = len(episodes) + never
    crashed = int(episodes.has_crashed.sum())
    numbers: dict[str, float] = {"planned": total, "missing": missing, "crashed": crashed, "never_ran": never}
    if not missing:
        return Finding(
            "missing", Severity.OK, "no episode is missing", f"All {total} episodes have data.", numbers=numbers
        )
    text = f"{missing} of {total} episodes ({missing / total:.1%}) have no data: {crashed} crashed, {never} never ran"
    text += f", {missing - crashed - never} have no value."
    if episodes.is_binary:
        won = float(np.nansum(episodes.value))
        numbers |= {"worst_low": won / total, "worst_high": (won + missing) / total}
        text += (
            f" If all of them failed, the rate is {won / total:.3f}; if all succeeded, {(won + missing) / total:.3f}."
        )
    advice = "Find out why they are missing: episodes that crash are often the hard ones."
    return Finding("missing", Severity.WARNING, "episodes are missing", text, advice, numbers)


def _constant(episodes: Episodes) -> Finding | None:
    """Say so if every episode has the same outcome."""
    known = episodes.value[~np.isnan(episodes.value)]
    if not len(known):
        return Finding("constant", Severity.WARNING, "no episode has an outcome", "There is nothing to estimate.")
    if len(known) < 2 or not (known == known[0]).all():
        return None
    found = estimate(episodes)
    text = f"All {len(known)} episodes have {episodes.outcome} = {known[0]:g}."
    if found.low is not None and found.high is not None:
        text += f" The true rate can still be anywhere from {found.low:.3f} to {found.high:.3f}."
    advice = "Check that success is recorded at all; then use harder or easier episodes, which tell policies apart."
    return Finding(
        *("constant", Severity.WARNING, "every episode has the same outcome", text, advice),
        {"value": float(known[0]), "low": found.low, "high": found.high},
    )


def _limit(episodes: Episodes) -> Finding | None:
    """Find episodes that were cut at the greatest length."""
    length = episodes.length
    known = ~np.isnan(length) & ~np.isnan(episodes.value)
    if known.sum() < 10:
        return None
    limit = float(length[known].max())
    cut = known & (length == limit)
    share = float(cut.sum() / known.sum())
    if share < _MOST_AT_LIMIT or length[known].min() == limit:
        return None
    unit = "steps" if episodes.length_unit == "steps" else "s"
    numbers = {"limit": limit, "episodes": int(cut.sum()), "share": share}
    text = (
        f"{int(cut.sum())} of {int(known.sum())} episodes ({share:.0%}) end at exactly {limit:,.0f} {unit}, the longest"
    )
    if episodes.is_binary:
        failures = int((episodes.value[cut] == 0.0).sum())
        numbers |= {"failures": failures}
        if not failures:
            return None  # the limit ended no attempt that had not succeeded
        whole = "all of them failures" if failures == cut.sum() else f"{failures} of them failures"
        text += f", {whole}: the time limit decides them."
        text += " Some might have succeeded with more time, so the rate belongs to this limit."
    else:
        text += ": the time limit."
    advice = "Report the limit with the rate, and compare policies at the same limit only."
    return Finding("limit", Severity.NOTE, "many episodes end at the time limit", text, advice, numbers)


def _identical(episodes: Episodes) -> Finding | None:
    """Find rows that are equal in everything but the time."""
    copies = len(episodes) - len(np.unique(episodes.row))
    if not copies:
        return None
    text = f"{copies} of {len(episodes)} rows are copies of others, in everything but the time: they count twice."
    advice = "Check whether a file was appended to itself, or a worker wrote its results twice; remove the copies."
    return Finding("copies", Severity.WARNING, "rows occur twice", text, advice, {"copies": copies})


def _repeated(episodes: Episodes) -> Finding | None:
    """Find episodes with the same scenario, seed and factors, which need not be independent."""
    seeds = episodes.seed[~np.isnan(episodes.seed)]
    if len(seeds) > 1 and (seeds == seeds[0]).all():
        text = (
            f"All {len(episodes)} rows have the seed {seeds[0]:.0f}: it is the seed of the whole evaluation, not of an "
            "episode, so no single episode can be repeated from this log."
        )
        one_seed = Finding("seeds", Severity.NOTE, "one seed for all episodes", text, numbers={"seed": float(seeds[0])})
    else:
        one_seed = None
    _, codes, counts = np.unique(episodes.key, return_inverse=True, return_counts=True)
    repeats = len(episodes) - len(counts)
    if not repeats:
        return one_seed
    groups = int((counts > 1).sum())
    known = ~np.isnan(episodes.value)
    sums = np.bincount(codes[known], episodes.value[known], len(counts))
    squares = np.bincount(codes[known], episodes.value[known] ** 2, len(counts))
    sizes = np.maximum(np.bincount(codes[known], minlength=len(counts)), 1)
    equal = int(((counts > 1) & (squares / sizes - (sums / sizes) ** 2 < 1e-12)).sum())
    what = "scenario, seed and factors" if len(seeds) else "scenario and factors"
    text = (
        f"{groups} episodes occur more than once with the same {what} ({repeats} repetitions); in {equal} of them all "
        "repetitions have the same outcome."
    )
    numbers = {"groups": groups, "repetitions": repeats, "equal_outcomes": equal, "distinct": len(counts)}
    if groups >= 5 and equal == groups:
        text += (
            f" If the policy and the environment are deterministic, there are {len(counts)} episodes, not "
            f"{len(episodes)}."
        )
        advice = "Give every episode its own seed; the interval counts repetitions as one cluster."
        return Finding("repetitions", Severity.WARNING, "repetitions add nothing", text, advice, numbers)
    text += " Intervals count them as one cluster."
    return Finding("repetitions", Severity.NOTE, "episodes are repeated", text, numbers=numbers)
