"""Order and stopping bias: what the estimate owes to which episodes happened to finish first.

Parallel environments run episodes one after another. Where successes are shorter than failures, the first episodes to
finish are mostly successes, and an evaluation that stops after a number of finished episodes, or at a time, counts too
many of them: the long ones are still running. The first k episodes of every environment are free of that bias, because
an episode is among them whatever its length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from roadworthy.results.episodes import Episodes
from roadworthy.results.findings import Estimate, Finding, Severity
from roadworthy.statistics import Clusters, Interval, mean, rate

SIGNIFICANT = 0.01
_LEAST_EFFECT = 0.1  # of the chance that a success is the shorter one, from one half


def place_in_environment(environment: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each episode among those of its environment, from 0, (n,)."""
    order = np.argsort(environment, kind="stable")
    ordered = environment[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(np.append(starts, len(ordered)))
    found = np.empty(len(environment), np.int64)
    found[order] = np.arange(len(environment)) - np.repeat(starts, counts)
    return found


def estimate(episodes: Episodes, rows: NDArray[np.bool_] | None = None) -> Interval:
    """Return the rate or mean of some of the episodes, clustered as the figures of the run are.

    In a log that is no run, episodes with equal scenario, seed and factors are a cluster.
    """
    is_binary = episodes.is_binary
    if rows is not None:
        episodes = episodes.where(rows)
    value = episodes.value
    clusters = Clusters.of(episodes.key if episodes.cluster is None else episodes.cluster)
    units = None if episodes.unit is None else Clusters.of(episodes.unit)
    if is_binary:
        return rate(value, clusters, units=units)
    return mean(value, clusters, is_share=_is_share(value), units=units)


def _is_share(value: NDArray[np.float64]) -> bool:
    known = value[~np.isnan(value)]
    return bool(len(known)) and bool(((known >= 0.0) & (known <= 1.0)).all())


def length_finding(episodes: Episodes) -> Finding | None:
    """Compare the lengths of successes and failures, with the Mann-Whitney test."""
    known = ~np.isnan(episodes.value) & ~np.isnan(episodes.length)
    if not episodes.is_binary or not known.any():
        return None
    value, length = episodes.value[known] > 0.0, episodes.length[known]
    won, lost = length[value], length[~value]
    if not len(won) or not len(lost):
        return None
    found = stats.mannwhitneyu(won, lost, method="asymptotic" if len(length) > 40 else "auto")
    shorter = 1.0 - float(found.statistic) / (len(won) * len(lost))
    numbers = {
        "mean_length_success": float(won.mean()),
        "mean_length_failure": float(lost.mean()),
        "p_value": float(found.pvalue),
        "chance_success_is_shorter": shorter,
    }
    unit = "steps" if episodes.length_unit == "steps" else "s"
    text = (
        f"Successes last {won.mean():,.0f} {unit} on average, failures {lost.mean():,.0f}: a random success is shorter "
        f"than a random failure in {shorter:.0%} of pairs ({_p(found.pvalue)})."
    )
    if found.pvalue >= SIGNIFICANT or abs(shorter - 0.5) < _LEAST_EFFECT:
        return Finding("length", Severity.OK, "length does not depend on the outcome", text, numbers=numbers)
    favored = "successes" if shorter > 0.5 else "failures"
    text += " An evaluation that stops after a number of finished episodes, or at a time, therefore counts too many "
    text += favored
    if episodes.has_plan:
        text += "; this one has a fixed number of episodes, so it is not affected."
        return Finding("length", Severity.NOTE, "length depends on the outcome", text, numbers=numbers)
    return Finding(
        *("length", Severity.WARNING, "length depends on the outcome", f"{text}."),
        "Fix the number of episodes of every environment in advance, and wait for all of them.",
        numbers,
    )


def environment_findings(episodes: Episodes, is_length_bound: bool) -> tuple[list[Estimate], list[Finding]]:
    """Compare the first episodes to finish with the first episodes of every environment.

    Args:
        episodes: The episodes in the order in which they finished.
        is_length_bound: Whether their length depends on the outcome, or is not known.
    """
    used = episodes.environment >= 0
    if not used.all():
        return [], []
    names, counts = np.unique(episodes.environment, return_counts=True)
    environments, fewest, most = len(names), int(counts.min()), int(counts.max())
    if environments < 2 or len(episodes) < 2 * environments:
        return [], []
    place = place_in_environment(episodes.environment)
    findings, estimates = [], []
    first_done = np.arange(len(episodes)) < environments
    first_each, first_k = place < 1, place < fewest
    early, each = estimate(episodes, first_done), estimate(episodes, first_each)
    balanced, everything = estimate(episodes, first_k), estimate(episodes)
    if episodes.has_order:
        estimates.append(Estimate("first_finished", f"the first {environments} episodes to finish", early))
    estimates.append(Estimate("first_of_each", f"the first episode of each of {environments} environments", each))
    if fewest > 1:
        which = f"the first {fewest} episodes of each environment"
        estimates.append(Estimate("first_k_of_each", which, balanced))
    finding = _first_finding(episodes, first_done, early, each, everything, is_length_bound)
    if finding is not None:
        findings.append(finding)
    findings.append(_uneven_finding(episodes, fewest, most, environments, balanced, everything, is_length_bound))
    drift = _drift_finding(episodes, place)
    return estimates, findings + ([drift] if drift is not None else [])


def _first_finding(
    episodes: Episodes,
    first: NDArray[np.bool_],
    early: Interval,
    each: Interval,
    everything: Interval,
    is_length_bound: bool,
) -> Finding | None:
    """Test whether the first episodes to finish succeed more or less often than the others, with Fisher's test."""
    known = ~np.isnan(episodes.value)
    count = int(first.sum())
    if not (episodes.has_order and episodes.is_binary) or None in (early.value, each.value, everything.value):
        return None
    assert early.value is not None
    assert each.value is not None
    assert everything.value is not None
    value = episodes.value > 0.0
    table = [[int((value & known & part).sum()), int((~value & known & part).sum())] for part in (first, ~first)]
    p_value = float(stats.fisher_exact(table)[1])
    ranks = stats.spearmanr(np.arange(len(episodes))[known], episodes.value[known])
    numbers = {
        "first_finished": early.value,
        "first_of_each": each.value,
        "all": everything.value,
        "environments": count,
        "p_value": p_value,
        "rank_correlation": None if np.isnan(ranks.statistic) else float(ranks.statistic),
    }
    text = (
        f"The first {count} episodes to finish give {early.value:.2f}, the first episode of each of the {count} "
        f"environments {each.value:.2f}, all {len(episodes)} episodes {_digits(everything.value)} "
        f"(first to finish against the rest: {_p(p_value)}, Fisher)."
    )
    gap = early.value - each.value
    if p_value >= SIGNIFICANT and (abs(gap) < 0.05 or not is_length_bound):
        return Finding("first_finished", Severity.OK, "early episodes are like the others", text, numbers=numbers)
    if p_value >= SIGNIFICANT:
        text += f" {count} episodes alone prove little, but the lengths say why:"
    text += " the first to finish are the quick episodes, not a sample of all"
    text += f", so their rate is too {'high' if gap > 0.0 else 'low'}." if gap else "."
    if episodes.has_plan:
        return Finding("first_finished", Severity.NOTE, "the first to finish mislead", text, numbers=numbers)
    advice = "Never report the first N to finish; use the first k episodes of each environment."
    return Finding("first_finished", Severity.WARNING, "the first to finish mislead", text, advice, numbers)


def _uneven_finding(
    episodes: Episodes,
    fewest: int,
    most: int,
    environments: int,
    balanced: Interval,
    everything: Interval,
    is_length_bound: bool,
) -> Finding:
    """Say whether all environments have the same number of episodes, and what the first k of each give."""
    numbers: dict[str, float] = {"environments": environments, "fewest": fewest, "most": most}
    if most - fewest <= 1 or balanced.value is None or everything.value is None:
        text = f"Each of {environments} environments has {fewest} to {most} episodes."
        return Finding("environments", Severity.OK, "environments have equal numbers", text, numbers=numbers)
    kept = fewest * environments
    numbers |= {"first_k_of_each": balanced.value, "all": everything.value, "episodes_used": kept}
    text = (
        f"The {environments} environments have {fewest} to {most} episodes, as when an evaluation stops after a number "
        f"of finished episodes. The first {fewest} of each environment give {_with_interval(balanced)}, all "
        f"{len(episodes)} give {_with_interval(everything)}."
    )
    if is_length_bound:
        text += " Environments with short episodes have more of them, and the long ones at the end are cut off."
    if episodes.has_plan or not is_length_bound:
        return Finding("environments", Severity.NOTE, "environments differ in number", text, numbers=numbers)
    advice = f"Report the first {fewest} of each environment ({kept} of {len(episodes)} episodes)."
    return Finding("environments", Severity.WARNING, "environments differ in number", text, advice, numbers)


def _drift_finding(episodes: Episodes, place: NDArray[np.int64]) -> Finding | None:
    """Test within environments whether later episodes succeed more or less often: something may carry over."""
    known = ~np.isnan(episodes.value)
    if place.max() < 4:
        return None
    # The first k of each environment alone: which later ones exist depends on their lengths.
    fewest = int(np.bincount(np.unique(episodes.environment, return_inverse=True)[1]).min())
    rows = known & (place < fewest)
    if fewest < 3 or len(np.unique(episodes.value[rows])) < 2:
        return None
    found = stats.spearmanr(place[rows], episodes.value[rows])
    if found.pvalue >= SIGNIFICANT:
        return None
    way = "rises" if found.statistic > 0.0 else "falls"
    numbers = {"rank_correlation": float(found.statistic), "p_value": float(found.pvalue)}
    text = (
        f"{episodes.outcome.capitalize()} {way} from episode to episode of an environment (rank correlation "
        f"{found.statistic:.2f}, {_p(found.pvalue)}): something carries over from one episode to the next."
    )
    advice = "Check that the policy's memory and the environment are reset between episodes."
    return Finding("drift", Severity.WARNING, "later episodes differ from earlier ones", text, advice, numbers)


def _with_interval(found: Interval) -> str:
    assert found.value is not None
    if found.low is None or found.high is None:
        return _digits(found.value)
    return f"{_digits(found.value)} ({found.low:.2f} to {found.high:.2f})"


def _digits(value: float) -> str:
    """Return a value with two digits, or three where the third is not 0."""
    text = f"{value:.3f}"
    return text[:-1] if text.endswith("0") else text


def _p(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"
