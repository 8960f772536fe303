"""Metrics of a user: named in a section, loaded from a file, computed and reported beside the built-in ones."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roadworthy.errors import ConfigError, RoadworthyError
from roadworthy.metrics import Kind, Metric
from roadworthy.metrics.closed_loop.metrics import CLOSED_LOOP_METRICS
from roadworthy.metrics.driving import driving_metrics
from roadworthy.metrics.exams import EXAM_METRICS
from roadworthy.metrics.extensions import NamedTraceFigures, named_metrics
from roadworthy.plugins import known
from tests.metrics.driven import by_name, episode, run_of

FILE = '''
from roadworthy.metrics import Kind, Metric, TraceMetrics

def near_misses(trace, scenario, agent, trial):
    """Other agents that passed within 1 m."""
    if trial == 1:
        return None
    return trace.near + agent

def fails(trace, scenario, agent, trial):
    return 1 / 0

harsh = Metric("harsh_rate", Kind.RATE, "harsh_brakes", "share", "trial", "braked harshly")
per_agent = Metric("speed", Kind.MEAN, "mean_speed", "m/s", "agent", "mean speed")
two = TraceMetrics(
    (Metric("a_rate", Kind.RATE, "a", "share", "trial", "a"), Metric("b", Kind.MEAN, "b", "m", "trial", "b")),
    lambda trace, scenario, agent, trial: {"a": 1.0, "b": 2.5},
)
text = "text"
'''
TRACE: Any = SimpleNamespace(near=2.0, episode_id="town-r0")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "my_metrics.py"
    path.write_text(FILE)
    return str(path)


def test_a_function_in_a_file_is_a_column_and_its_mean(file: str) -> None:
    name = f"{file}:near_misses"
    assert named_metrics([name]) == (
        Metric("near_misses", Kind.MEAN, "near_misses", "1", "trial", "Other agents that passed within 1 m."),
    )
    compute = pickle.loads(pickle.dumps(NamedTraceFigures((name,))))
    assert compute(TRACE, None, 3, 0) == {"near_misses": 5.0}
    assert math.isnan(compute(TRACE, None, 3, 1)["near_misses"])


def test_one_function_may_compute_the_columns_of_several_metrics(file: str) -> None:
    names = (f"{file}:two", f"{file}:harsh", f"{file}:near_misses")
    assert [metric.name for metric in named_metrics(names)] == ["a_rate", "b", "harsh_rate", "near_misses"]
    assert NamedTraceFigures(names)(TRACE, None, 0, 0) == {"a": 1.0, "b": 2.5, "near_misses": 2.0}


def test_named_metrics_are_figures_of_the_run_with_rows_of_trials_or_agents(file: str, tmp_path: Path) -> None:
    run = run_of(
        tmp_path / "runs",
        [episode(f"s{k}", [[{"harsh_brakes": float(k), "mean_speed": 4.0 * k}]]) for k in range(4)],
    )
    figures = by_name(driving_metrics(run, named_metrics([f"{file}:harsh", f"{file}:per_agent"])))
    assert figures["harsh_rate"]["value"] == 0.75
    assert figures["harsh_rate"]["method"] == "Wilson"
    assert (figures["speed"]["value"], figures["speed"]["per"], figures["speed"]["unit"]) == (6.0, "agent", "m/s")


def test_naming_a_built_in_set_twice_reports_its_figures_once(tmp_path: Path) -> None:
    run = run_of(tmp_path, [episode("s", [[{"passed": 1.0}]])])
    assert by_name(driving_metrics(run, named_metrics(["exams"]))) == by_name(driving_metrics(run))


def test_built_in_sets_are_entry_points() -> None:
    assert set(known("roadworthy.metrics")) >= {"closed_loop", "exams"}
    assert named_metrics(["exams", "closed_loop"]) == (*EXAM_METRICS, *CLOSED_LOOP_METRICS)


def test_a_value_that_is_not_a_metric_is_refused(file: str) -> None:
    with pytest.raises(ConfigError, match=r"text' is a str, expected a Metric, a TraceMetrics or a function"):
        named_metrics([f"{file}:text"])
    with pytest.raises(ConfigError, match=r"unknown metric 'exam'; did you mean exams\?"):
        named_metrics(["exam"])


def test_an_error_in_a_metric_names_the_metric_and_the_episode(file: str) -> None:
    with pytest.raises(RoadworthyError, match=r"fails' failed in episode 'town-r0', agent 0, trial 0: ZeroDivision"):
        NamedTraceFigures((f"{file}:fails",))(TRACE, None, 0, 0)  # type: ignore[arg-type]
