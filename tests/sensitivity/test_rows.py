"""Rows of episodes: every supported form, and the rejection of unusable rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roadworthy.errors import UsageError
from roadworthy.sensitivity.factors import Categorical, Continuous
from roadworthy.sensitivity.rows import Rows, make_rows, read_rows

FACTORS = (Continuous("light", 0.0, 2000.0), Categorical("object", ("box", "can")))


def own(number: int, light: Any = 500.0, kind: Any = "can", **more: Any) -> dict[str, Any]:
    factors = {"light": light, "object": kind}
    return {"episode_id": f"e{number}", "factors": factors, "outcomes": {"success": number % 2 == 0}, **more}


def check(rows: Rows, count: int) -> None:
    assert rows.units.tolist() == [[0.25, 1.0]] * count
    assert rows.outcome.tolist() == [float(number % 2 == 0) for number in range(count)]
    assert rows.is_binary
    assert not rows.rejected


@pytest.mark.row("SENS-1")
def test_a_run_folder_is_read_from_its_sealed_rows_or_its_growing_ones(tmp_path: Path) -> None:
    data = [own(number) for number in range(3)]
    (tmp_path / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    check(read_rows(tmp_path, FACTORS, "success"), 3)
    pq.write_table(pa.Table.from_pylist([own(number) for number in range(4)]), tmp_path / "episodes.parquet")
    check(read_rows(tmp_path, FACTORS, "success"), 4)


@pytest.mark.row("SENS-1")
def test_the_episode_summary_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "episode_summary.jsonl"
    arguments = {"light": 500, "object": "can", "embodiment": "arm"}
    lines = [
        {"job_name": "j", "episode_idx": n, "arena_env_args": arguments, "outcomes": {"success": n % 2 == 0}}
        for n in range(3)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    check(read_rows(path, FACTORS, "success"), 3)


@pytest.mark.parametrize(
    "factors",
    [
        {"factors": json.dumps({"light": 500, "object": "can"})},
        {"factors": [("light", 500), ("object", "can")]},
        {"factors.light": 500, "factors.object": "can"},
        {"arena_env_args": ["lift", "--light", "500", "--object", "can", "--headless"]},
    ],
    ids=["text", "pairs", "columns", "arguments"],
)
def test_factors_may_come_as_text_pairs_columns_or_arguments(factors: dict[str, Any]) -> None:
    check(make_rows([{**factors, "outcomes": {"success": 1}}], FACTORS, "success"), 1)


@pytest.mark.row("SENS-1")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (own(7, light=None), "factor 'light' is missing; the row has light, object"),
        (own(7, light=2500.0), "light is 2500, outside its range 0 to 2000"),
        (own(7, light=float("nan")), "light is nan, expected a number"),
        (own(7, kind="ball"), "object is 'ball', expected one of box, can"),
        ({**own(7), "outcomes": {}, "status": "failed"}, "outcome 'success' is missing (status 'failed')"),
        ({**own(7), "outcomes": {"success": "yes"}}, "outcome 'success' is 'yes', expected true, false or a number"),
        (own(7, density=0.0), "density is 0.0, expected numbers above 0"),
    ],
)
def test_a_row_that_can_not_be_used_is_left_out_by_name(row: dict[str, Any], reason: str) -> None:
    rows = make_rows([own(0), row], FACTORS, "success")
    assert len(rows) == 1
    assert [rejected.name for rejected in rows.rejected] == ["e7"]
    assert reason in rows.rejected[0].reason


def test_a_row_without_an_id_is_called_by_its_job_or_its_place() -> None:
    rows = make_rows([own(0), {"job_name": "sweep", "episode_idx": 3}, {}], FACTORS, "success")
    assert [rejected.name for rejected in rows.rejected] == ["sweep episode 3", "row 2"]


def test_no_usable_row_is_an_error_with_the_commonest_reason() -> None:
    with pytest.raises(UsageError, match="none of 3 rows can be used; 2 of them because outcome 'succes' is missing"):
        make_rows([{}, own(1), own(2)], FACTORS, "succes")


def test_a_truncated_line_is_rejected_by_name(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_text(json.dumps(own(0)) + "\n" + json.dumps(own(1))[:20])
    rows = read_rows(path, FACTORS, "success")
    assert len(rows) == 1
    assert rows.rejected[0].name == "line 2, cut off"


def test_a_broken_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_text("{\n" + json.dumps(own(1)) + "\n")
    with pytest.raises(UsageError, match="line 1: not JSON"):
        read_rows(path, FACTORS, "success")


@pytest.mark.parametrize("name", ["nothing", "nothing.jsonl", "nothing.csv"])
def test_a_path_that_holds_no_rows_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UsageError, match="nothing"):
        read_rows(tmp_path / name, FACTORS, "success")


def test_densities_are_1_where_sampling_was_uniform() -> None:
    even = {"light": 1 / 2000, "object": 1 / 2}
    rows = make_rows([own(0, density=even), own(1, density=even), own(2, density=2 / 4000)], FACTORS, "success")
    assert rows.density is not None
    assert rows.density.tolist() == pytest.approx([1.0, 1.0, 2.0])
    assert rows.weights.tolist() == pytest.approx([1.2, 1.2, 0.6])


def test_densities_count_only_if_every_row_has_one() -> None:
    assert make_rows([own(0, density=1e-3), own(1)], FACTORS, "success").density is None


def test_a_threshold_turns_a_number_into_success() -> None:
    data = [{**own(n), "outcomes": {"time_s": float(n)}} for n in range(5)]
    assert not make_rows(data, FACTORS, "time_s").is_binary
    rows = make_rows(data, FACTORS, "time_s", at_most=2.0)
    assert rows.is_binary
    assert rows.outcome.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert make_rows(data, FACTORS, "time_s", at_least=1.0, at_most=2.0).outcome.sum() == 2.0


def test_chosen_rows_keep_what_belongs_to_them() -> None:
    rows = make_rows([own(n, light=100.0 * n, scenario_id=f"s{n}") for n in range(4)], FACTORS, "success")
    some = rows.chosen(np.array([3, 1]))
    assert some.units[:, 0].tolist() == [0.15, 0.05]
    assert some.scenarios == ("s3", "s1")
