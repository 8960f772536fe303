"""Figures of episodes with several trials: the score of each trial, and the gain of later trials over the first.

A gain compares the same ego in the same episode, so its interval is paired and excludes differences between scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roadworthy.metrics.metric import Array, Kind, Metric, as_figure, extended, figure, with_room
from roadworthy.metrics.run_rows import RunRows
from roadworthy.statistics import Clusters, Interval, paired_rate, with_missing

# The version of the score. Since version 2, only at-fault collisions count, unless score.collisions says otherwise, and
# agents that start at their goal have no score. Since version 3, an episode that crashed or timed out counts as failed.
SCORE_VERSION = 3
REACH_RATE = Metric(
    "trial_goal_reach_rate",
    Kind.RATE,
    "goal_reached",
    "share",
    "trial",
    "reached all its goals",
    version=3,
    better="higher",
    failed=0.0,
)
MEAN_LENGTH = Metric("trial_mean_length", Kind.MEAN, "length", "steps", "trial", "steps driven")
COUNTS = tuple(
    Metric(name, Kind.MEAN, name, "trials", "agent", what, version=2)
    for name, what in (
        ("n_trials_completed", "trials that ended"),
        ("n_trials_goal_reached", "trials in which it reached all its goals"),
        ("n_trials_timed_out", "trials in which it had a goal left when the time was up"),
    )
)


def adaptation_figures(rows: RunRows) -> list[dict[str, Any]]:
    """Return counts of trials, the score of each trial, and the gain of each over the first."""
    trials = rows.trials
    figures = [figure(metric, rows.agents) for metric in COUNTS]
    figures += [figure(MEAN_LENGTH, trials), figure(REACH_RATE, trials)]
    scores = [
        Metric(
            f"trial_{k}_score",
            Kind.RATE,
            "score",
            "share",
            "agent",
            "",
            version=SCORE_VERSION,
            better="higher",
            failed=0.0,
        )
        for k in range(rows.trial_count)
    ]
    figures += [figure(metric, trials.of_trial(k)) for k, metric in enumerate(scores)]
    return figures + _gains(rows)


def by_trial(rows: RunRows, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """Return the rates and the length of each trial, for curves over trials."""
    parts = [rows.trials.of_trial(k) for k in range(rows.trial_count)]
    return [
        {"trial": k, "figures": [figure(metric, part) for metric in (*metrics, MEAN_LENGTH)]}
        for k, part in enumerate(parts)
    ]


def _gains(rows: RunRows) -> list[dict[str, Any]]:
    """Return the score in trial k minus the score in trial 0, over egos that have both."""
    trials = rows.trials
    egos, numbers = rows.pairs(trials)
    count = int(egos.max(initial=-1)) + 1
    scores = np.full((rows.trial_count, count), np.nan)
    scores[numbers, egos] = trials.column("score")
    codes = np.zeros(count, np.int64)
    codes[egos] = trials.clusters.codes
    missing = rows.agents.missing
    clusters = extended(Clusters(codes, trials.clusters.count), missing.clusters)

    def gain(differences: Array) -> Interval:
        after, before = (np.where(np.isnan(differences), np.nan, sign * differences > 0.0) for sign in (1.0, -1.0))
        return paired_rate(after, before, clusters)

    figures = []
    for k in range(1, rows.trial_count):
        name = f"ada_delta_trial_{k}_minus_0"
        metric = Metric(
            name,
            Kind.RATE,
            "score",
            "share",
            "agent",
            "gain over the first",
            version=SCORE_VERSION,
            better="higher",
            bounds=(-1.0, 1.0),
        )
        differences, is_missing = with_room(scores[k] - scores[0], len(missing))
        found = with_missing(gain, differences, is_missing, bounds=metric.bounds)
        figures.append(as_figure(found, metric.name, metric.per, metric))
    return figures
