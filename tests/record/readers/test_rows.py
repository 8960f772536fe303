"""Plain tables: the roles that are guessed, and the rows that other analyses read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.record.readers import find_reader, open_log
from roadworthy.record.readers.guess import Column, guess_roles, plain
from roadworthy.record.readers.log import Role
from roadworthy.record.readers.mapping import ColumnMapping
from roadworthy.sensitivity.sources import load_rows
from tests.results import made_up_logs as logs


def columns(**values: list[object]) -> dict[str, Column]:
    found = {name: Column(name) for name in values}
    for name, column in found.items():
        for value in values[name]:
            column.add(value)
    return found


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("success", [True, False], Role.SUCCESS),
        ("isSuccess", ["yes", "no"], Role.SUCCESS),
        ("Task Success", [1, 0], Role.SUCCESS),
        ("metrics.success", [True, False], Role.SUCCESS),
        ("episode_seed", [1, 2], Role.SEED),
        ("num_steps", ["5", "6"], Role.LENGTH),
        ("env_idx", [0, 1], Role.ENVIRONMENT),
        ("checkpoint", ["a", "b"], Role.POLICY),
        ("scene", ["a", "b"], Role.SCENARIO),
        ("task_name", ["a", "b"], Role.CLUSTER),
        ("finished_at", ["2026-07-06", "2026-07-07"], Role.ORDER),
        ("variations.light", [0.5, 0.7], Role.FACTOR),
        ("surface", ["dry", "wet", "dry", "wet"], Role.FACTOR),
        ("reward", [0.5, 7.0], Role.OUTCOME),
        ("version", [3, 3], Role.IGNORE),
        ("instruction", [f"say {word}" for word in range(30)], Role.IGNORE),
    ],
)
def test_a_role_is_guessed_from_the_name_and_the_values(name: str, values: list[object], role: Role) -> None:
    assert guess_roles(columns(**{name: values}), {}) == {name: role}


def test_a_column_whose_values_do_not_fit_its_name_is_something_else() -> None:
    found = guess_roles(columns(success=["red", "green"], score=[0.5, 1.0], seed=["a", "b"]), {})
    assert found["score"] is Role.SUCCESS
    assert found["success"] is not Role.SUCCESS
    assert found["seed"] is not Role.SEED


def test_a_given_role_covers_a_table_and_a_vector() -> None:
    given = {"settings.*": Role.FACTOR, "pose": Role.IGNORE}
    found = guess_roles(columns(**{"settings.a.b": [1, 2], "pose[0]": [1.0, 2.0]}), given)
    assert found == {"settings.a.b": Role.FACTOR, "pose[0]": Role.IGNORE}


@pytest.mark.parametrize(
    ("name", "expected"), [("isSuccess", "is_success"), ("Task Success", "task_success"), ("a.b", "a_b")]
)
def test_names_are_compared_in_lower_case_with_underscores(name: str, expected: str) -> None:
    assert plain(name) == expected


def test_a_table_of_text_is_detected_and_read_for_analyses(tmp_path: Path) -> None:
    rows = load_rows(logs.csv(tmp_path))
    assert rows[1]["factors"] == {"surface": "ice"}
    assert rows[1]["outcomes"] == {"success": 0.0, "steps": 41.0, "light": 0.1}
    assert (rows[1]["seed"], rows[1]["scenario_id"], rows[1]["steps"]) == (1, "seed-1", 41)
    assert find_reader(logs.json_lines(tmp_path)) is None, "JSON lines are read as before"


@pytest.mark.parametrize("name", ["lerobot", "lerobot_tasks", "vla_eval", "inspect_eval", "inspect_json"])
def test_other_logs_are_detected_and_read_for_analyses(name: str, tmp_path: Path) -> None:
    path = logs.ALL[name](tmp_path)
    rows = load_rows(path)
    assert len(rows) == sum(1 for _ in open_log(path).records())
    assert rows[0]["outcomes"]["success"] == 1.0
    assert len({row["episode_id"] for row in rows}) == len(rows)


def test_a_column_that_only_later_records_have_gets_a_role(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"seed": k, "success": True} for k in range(2100)] + [{"seed": 5000, "success": False, "factors": {"x": 1}}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    episodes = [episode for _, episode in ColumnMapping.of(open_log(path)).episodes()]
    assert episodes[-1].factors == {"x": 1.0}
