"""The order in which bad episodes are shown."""

from __future__ import annotations

import pyarrow as pa

from roadworthy.record.worst import sorted_worst_first


def test_episodes_are_sorted_by_outcome_infractions_goals_and_id() -> None:
    rows = [
        ("none", None, 9.0, 0.0),
        ("good", 1.0, 0.0, 1.0),
        ("b", 0.0, 1.0, 0.5),
        ("a", 0.0, 1.0, 0.5),
        ("far", 0.0, 1.0, 0.0),
        ("wild", 0.0, 2.0, 1.0),
    ]
    names = ("episode_id", "outcomes.score", "outcomes.infractions", "outcomes.goal_rate")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    ordered = sorted_worst_first(table, "score")["episode_id"].to_pylist()
    assert ordered == ["wild", "far", "a", "b", "good", "none"]


def test_without_any_of_these_outcomes_the_order_stays() -> None:
    table = pa.table({"episode_id": ["b", "a"], "outcomes.return": [1.0, 0.0]})
    assert sorted_worst_first(table, None)["episode_id"].to_pylist() == ["b", "a"]
    assert sorted_worst_first(table, "return")["episode_id"].to_pylist() == ["a", "b"]
