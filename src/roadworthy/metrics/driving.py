"""Figures of a driving run: how the egos drove, per trial, per agent, per kilometer, per scenario and per class.

Rates count trials, or egos where an episode has one trial. Shares and means count each ego once, however long it drove.
Figures per kilometer are a sum over a sum. All others are reported a second time per scenario, so that a scenario with
many egos weighs no more than one with few. An episode that crashed, timed out or never ran counts as failed in score
and completion_rate, and is in no other denominator; beside each figure stand worst-case bounds.

Egos that start at their goal (free successes) are counted, and left out of score, completion_rate, goal_rate and
timed_out_rate. Pedestrians and cyclists are left out of figures that do not apply to them (see docs/simulator.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from roadworthy.metrics.adaptation import SCORE_VERSION, adaptation_figures, by_trial
from roadworthy.metrics.closed_loop.metrics import CLOSED_LOOP_METRICS, closed_loop_counts
from roadworthy.metrics.exams import EXAM_METRICS
from roadworthy.metrics.metric import Better, Kind, Metric, Rows, figure
from roadworthy.metrics.run_rows import RunRows
from roadworthy.record import Run

_SUCCESS = "reached the required share of its goals, without a counted collision and without leaving the road"


def _shares(kind: Kind, per: str, *rows: tuple[str, str, int, Better, str]) -> tuple[Metric, ...]:
    """Return metrics from 0 to 1, declared as (name, column, version, better, what)."""
    return tuple(
        Metric(
            name,
            kind,
            column,
            "share",
            per,
            what,
            version=version,
            better=better,
            failed=0.0 if name in ("score", "completion_rate") else None,
        )
        for name, column, version, better, what in rows
    )


TRIAL_METRICS = _shares(
    Kind.RATE,
    "trial",
    ("score", "score", SCORE_VERSION, "higher", _SUCCESS),
    ("completion_rate", "goal_reached", 3, "higher", "reached all its goals"),
    ("at_fault_collision_rate", "at_fault_collisions", 1, "lower", "touched another agent and was at fault for it"),
    ("collision_rate", "collisions", 1, "lower", "touched another agent, at fault or not"),
    ("off_road_rate", "departures", 2, "lower", "left the road"),
    ("red_light_rate", "red_lights", 2, "lower", "ran a red light"),
    ("stop_sign_rate", "stop_signs", 2, "lower", "passed a stop sign without stopping"),
    ("timed_out_rate", "timed_out", 2, "lower", "had a goal left when the time was up"),
)
AGENT_METRICS = (
    *_shares(
        Kind.SHARE,
        "agent",
        ("goal_rate", "goal_rate", 2, "higher", "share of its goals that it reached"),
        ("comfort", "comfort", 1, "higher", "share of its steps within the limits of comfort"),
        ("lane_aligned", "lane_aligned", 2, "higher", "share of its steps on a lane and along it"),
        ("lane_centred", "lane_centred", 2, "higher", "share of its steps near the center of a lane"),
        ("wrong_way", "wrong_way", 2, "lower", "share of its steps on a lane and against it"),
    ),
    Metric("distance_m", Kind.MEAN, "distance_m", "m", "agent", "distance driven"),
    Metric("length", Kind.MEAN, "length", "steps", "agent", "steps driven"),
    Metric("return", Kind.MEAN, "return", "1", "agent", "sum of rewards", better="higher"),
)
# Figures that are computed from traces (see trace_figures). A run has those whose columns its rows have.
TRACE_METRICS: tuple[Metric, ...] = (*EXAM_METRICS, *CLOSED_LOOP_METRICS)
_KM = 1e-3
RATIO_METRICS = (
    Metric(
        "distance_per_infraction_m",
        Kind.RATIO,
        "infractions",
        "m",
        "infraction",
        "distance driven per at-fault collision, departure from the road or red light run",
        "distance_m",
        is_inverse=True,
        version=2,
        better="higher",
    ),
    *(
        Metric(
            f"{column}_per_km",
            Kind.RATIO,
            column,
            "1/km",
            "kilometre",
            what,
            "distance_m",
            _KM,
            version=version,
            better="lower",
        )
        for column, version, what in (
            ("infractions", 2, "at-fault collisions, departures from the road and red lights run"),
            ("at_fault_collisions", 1, "other agents touched, at fault for it"),
            ("collisions", 1, "contacts with another agent that started, at fault or not"),
            ("departures", 2, "departures from the road"),
            ("red_lights", 2, "red lights run"),
            ("stop_signs", 2, "stop signs passed without stopping"),
        )
    ),
)


def driving_metrics(run: Run, more: Sequence[Metric] = ()) -> dict[str, Any]:
    """Return the content of metrics.json for a run whose episodes have all ended.

    Args:
        run: The run; its tables must be complete.
        more: Metrics beyond the built-in ones, over columns of trials (`per="trial"`) or of agents (any other).
    """
    rows = RunRows(run)
    names = {metric.name for metric in TRACE_METRICS}
    more = [metric for metric in more if metric.name not in names]
    trial_metrics = [
        *rate_metrics(rows.trial_count),
        *trace_metrics(rows),
        *(_per_ego(metric, rows.trial_count) for metric in more if metric.per == "trial"),
    ]
    agent_metrics = [*AGENT_METRICS, *RATIO_METRICS, *(metric for metric in more if metric.per != "trial")]
    main = _figures(trial_metrics, rows.trials) + _figures(agent_metrics, rows.agents)
    figures = main + [
        figure(metric, part, per_scenario=True)
        for metrics, part in ((trial_metrics, rows.trials), (agent_metrics, rows.agents))
        for metric in metrics
        if not metric.is_per_scenario and metric.kind is not Kind.RATIO
    ]
    if rows.trial_count > 1:
        figures += adaptation_figures(rows)

    def of_class(name: str) -> dict[str, Any]:
        trials, agents = rows.of_class(name)
        is_whole_run = trials is rows.trials and agents is rows.agents
        own = main if is_whole_run else _figures(trial_metrics, trials) + _figures(agent_metrics, agents)
        return {**rows.counts_of_class(name), "figures": own}

    return {
        "num_episodes": rows.episode_count,
        "num_failed_episodes": rows.episode_count - int(rows.is_completed.sum()),
        "num_scenarios": rows.scenario_count,
        "num_clusters": rows.cluster_count,
        "num_agents_evaluated": len(rows.agents),
        "num_failed_spawns": rows.failed_spawns,
        "num_free_successes": rows.free_successes,
        "eval_seconds": eval_seconds(run),
        "gaps": rows.gaps(),
        "figures": figures,
        "closed_loop": closed_loop_counts(rows.trials),
        "by_class": {name: of_class(name) for name in rows.classes},
        "by_trial": by_trial(rows, trial_metrics) if rows.trial_count > 1 else [],
        "by_scenario": rows.by_scenario(trial_metrics, AGENT_METRICS[:1]),
        "by_cluster": rows.by_cluster(trial_metrics, agent_metrics),
    }


def rate_metrics(trial_count: int) -> Sequence[Metric]:
    """Return the rates, which count trials, or egos where an episode has one trial."""
    return [_per_ego(metric, trial_count) for metric in TRIAL_METRICS]


def trace_metrics(rows: RunRows) -> Sequence[Metric]:
    """Return the metrics of figures from traces that the rows have."""
    return [_per_ego(metric, rows.trial_count) for metric in TRACE_METRICS if rows.trials.has(metric.column)]


def _per_ego(metric: Metric, trial_count: int) -> Metric:
    """Return a metric of trials as one of egos where an episode has one trial, so that both are the same."""
    return replace(metric, per="agent") if metric.per == "trial" and trial_count <= 1 else metric


def _figures(metrics: Sequence[Metric], rows: Rows) -> list[dict[str, Any]]:
    return [figure(metric, rows) for metric in metrics]


def eval_seconds(run: Run) -> float:
    """Return the seconds that the sessions of a run took together; a session that still runs counts until now."""
    seconds = 0.0
    for session in run.header["sessions"]:
        ended = datetime.now(UTC) if session["ended"] is None else datetime.fromisoformat(session["ended"])
        seconds += max((ended - datetime.fromisoformat(session["started"])).total_seconds(), 0.0)
    return round(seconds, 3)
