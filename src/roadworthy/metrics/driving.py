"""The figures of a driving run: how egos drove, per trial, per agent, per kilometre and per scenario, and by class.

Rates are of trials (with one trial per episode: of egos). Shares and means are of egos, each counting once, however
long it drove. What happens per kilometre is a sum over a sum. All but these are told a second time per scenario, so
that one with many egos weighs no more than one with few. Failed episodes are counted, outside of every denominator.

Egos that start at their goal (free successes) are counted, and left out of score, completion_rate, goal_rate and
timed_out_rate. Pedestrians and cyclists are in no figure that is not for their kind (see docs/simulator.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from roadworthy.metrics.adaptation import SCORE_VERSION, adaptation_figures, by_trial
from roadworthy.metrics.closed_loop.metrics import CLOSED_LOOP_METRICS, closed_loop_counts
from roadworthy.metrics.exams import EXAM_METRICS
from roadworthy.metrics.metric import Kind, Metric, Rows, figure
from roadworthy.metrics.run_rows import RunRows
from roadworthy.record import Run

_SUCCESS = "reached the share of its goals that is asked for, without a collision that counts and never off the road"
TRIAL_METRICS = (
    Metric("score", Kind.RATE, "score", "share", "trial", _SUCCESS, version=SCORE_VERSION),
    Metric("completion_rate", Kind.RATE, "goal_reached", "share", "trial", "reached all its goals", version=2),
    Metric(
        "at_fault_collision_rate",
        Kind.RATE,
        "at_fault_collisions",
        "share",
        "trial",
        "touched another agent and was at fault for it",
    ),
    Metric("collision_rate", Kind.RATE, "collisions", "share", "trial", "touched another agent, whoever was at fault"),
    Metric("off_road_rate", Kind.RATE, "departures", "share", "trial", "left the road", version=2),
    Metric("red_light_rate", Kind.RATE, "red_lights", "share", "trial", "ran a red light", version=2),
    Metric(
        "stop_sign_rate", Kind.RATE, "stop_signs", "share", "trial", "passed a stop sign without stopping", version=2
    ),
    Metric(
        "timed_out_rate", Kind.RATE, "timed_out", "share", "trial", "had a goal left when the time was up", version=2
    ),
)
AGENT_METRICS = (
    Metric("goal_rate", Kind.SHARE, "goal_rate", "share", "agent", "share of its goals that it reached", version=2),
    Metric("comfort", Kind.SHARE, "comfort", "share", "agent", "share of its steps within the limits of comfort"),
    Metric(
        "lane_aligned", Kind.SHARE, "lane_aligned", "share", "agent", "share of its steps on a lane along it", version=2
    ),
    Metric(
        "lane_centred",
        Kind.SHARE,
        "lane_centred",
        "share",
        "agent",
        "share of its steps near a lane's centre",
        version=2,
    ),
    Metric(
        "wrong_way", Kind.SHARE, "wrong_way", "share", "agent", "share of its steps on a lane against it", version=2
    ),
    Metric("distance_m", Kind.MEAN, "distance_m", "m", "agent", "distance driven"),
    Metric("length", Kind.MEAN, "length", "steps", "agent", "steps driven"),
    Metric("return", Kind.MEAN, "return", "1", "agent", "sum of rewards"),
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
    ),
    *(
        Metric(name, Kind.RATIO, column, "1/km", "kilometre", what, "distance_m", _KM, version=version)
        for name, column, what, version in (
            (
                "infractions_per_km",
                "infractions",
                "at-fault collisions, departures from the road and red lights run",
                2,
            ),
            ("at_fault_collisions_per_km", "at_fault_collisions", "other agents touched, at fault for it", 1),
            ("collisions_per_km", "collisions", "contacts with another agent that began, whoever was at fault", 1),
            ("departures_per_km", "departures", "departures from the road", 2),
            ("red_lights_per_km", "red_lights", "red lights run", 2),
            ("stop_signs_per_km", "stop_signs", "stop signs passed without stopping", 2),
        )
    ),
)


def driving_metrics(run: Run) -> dict[str, Any]:
    """What metrics.json holds of a run whose episodes have all ended."""
    rows = RunRows(run)
    per_trial = [*rate_metrics(rows.trial_count), *trace_metrics(rows)]
    main = _figures(per_trial, rows.trials, rows.agents)
    figures = main + [
        figure(metric, part, per_scenario=True)
        for metrics, part in ((per_trial, rows.trials), (AGENT_METRICS, rows.agents))
        for metric in metrics
        if not metric.is_per_scenario
    ]
    if rows.trial_count > 1:
        figures += adaptation_figures(rows)
    return {
        "num_episodes": rows.episode_count,
        "num_failed_episodes": rows.episode_count - int(rows.is_completed.sum()),
        "num_scenarios": rows.scenario_count,
        "num_agents_evaluated": len(rows.agents),
        "num_failed_spawns": rows.failed_spawns,
        "num_free_successes": rows.free_successes,
        "eval_seconds": eval_seconds(run),
        "gaps": rows.gaps(),
        "figures": figures,
        "closed_loop": closed_loop_counts(rows.trials),
        "by_class": {name: _of_class(rows, name, per_trial, main) for name in rows.classes},
        "by_trial": by_trial(rows, per_trial) if rows.trial_count > 1 else [],
        "by_scenario": rows.by_scenario(per_trial, AGENT_METRICS[:1]),
    }


def rate_metrics(trial_count: int) -> Sequence[Metric]:
    """The rates, and whether they count trials or, with one trial per episode, egos."""
    return TRIAL_METRICS if trial_count > 1 else [replace(metric, per="agent") for metric in TRIAL_METRICS]


def trace_metrics(rows: RunRows) -> Sequence[Metric]:
    """Return the metrics of figures from traces that the rows have."""
    per = "trial" if rows.trial_count > 1 else "agent"
    known = [metric for metric in TRACE_METRICS if rows.trials.has(metric.column)]
    return [metric if metric.is_per_scenario else replace(metric, per=per) for metric in known]


def _figures(per_trial: Sequence[Metric], trials: Rows, agents: Rows) -> list[dict[str, Any]]:
    """The figures that whole runs and classes both have."""
    parts = ((per_trial, trials), (AGENT_METRICS, agents), (RATIO_METRICS, agents))
    return [figure(metric, rows) for metrics, rows in parts for metric in metrics]


def _of_class(
    rows: RunRows, name: str, per_trial: Sequence[Metric], of_all: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The figures of the scenarios of a behaviour class; of_all: those of the run, which may be of one class alone."""
    trials, agents = rows.of_class(name)
    is_all = trials is rows.trials and agents is rows.agents
    return {**rows.counts_of_class(name), "figures": of_all if is_all else _figures(per_trial, trials, agents)}


def eval_seconds(run: Run) -> float:
    """How long processes have worked on a run, one after another; the one that is still at it, until now."""
    seconds = 0.0
    for session in run.header["sessions"]:
        ended = datetime.now(UTC) if session["ended"] is None else datetime.fromisoformat(session["ended"])
        seconds += max((ended - datetime.fromisoformat(session["started"])).total_seconds(), 0.0)
    return round(seconds, 3)
