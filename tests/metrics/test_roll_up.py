"""The summary over several evaluators and its interval."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.metrics.roll_up import Part, part_of, roll_up
from roadworthy.report.words import roll_up_words


def metrics(values: list[float], clusters: list[str], half: float = 0.1, **more: object) -> dict[str, object]:
    mean = float(np.mean(values))
    figure = {"name": "score", "value": mean, "low": mean - half, "high": mean + half, "level": 0.95}
    figure |= {"missing": 0.0, "worst_low": mean - half, "worst_high": mean + half, **more}
    parts = [(value - mean) / len(values) for value in values]
    return {"figures": [figure], "by_cluster": {"cluster": clusters, "figures": {"score": parts}}}


@pytest.mark.row("STAT-1")
def test_sections_on_the_same_maps_are_clustered_jointly() -> None:
    maps = ["a", "b", "c", "d"]
    one = part_of("merge", "score", 1.0, metrics([0.0, 0.2, 0.8, 1.0], maps))
    same = part_of("cut_in", "score", 1.0, metrics([0.0, 0.2, 0.8, 1.0], maps))
    other = part_of("cut_in", "score", 1.0, metrics([0.0, 0.2, 0.8, 1.0], ["e", "f", "g", "h"]))
    shared, apart = roll_up([one, same]), roll_up([one, other])
    assert (shared["low"], shared["high"]) == pytest.approx((0.4, 0.6))
    assert (apart["low"], apart["high"]) == pytest.approx((0.5 - 0.1 / 2**0.5, 0.5 + 0.1 / 2**0.5))
    assert shared["level"] == 0.95


@pytest.mark.row("STAT-4")
def test_a_summary_with_missing_episodes_says_so() -> None:
    whole = part_of("merge", "score", 3.0, metrics([0.5], ["a"]))
    crashed = part_of("cut_in", "score", 1.0, metrics([0.5], ["b"], missing=0.2, worst_low=0.3, worst_high=0.7))
    found = roll_up([whole, crashed])
    assert found["missing_share"] == pytest.approx(0.05)
    assert found["worst_low"] == pytest.approx(found["low"] - 0.25 * 0.1)
    assert found["worst_high"] == pytest.approx(found["high"] + 0.25 * 0.1)
    assert "5.0% of the data missing: 0.3959 to 0.6041 in the worst case" in roll_up_words(found)


def test_a_summary_without_all_intervals_names_the_part_that_lacks_one() -> None:
    known = part_of("merge", "score", 1.0, metrics([0.5], ["a"]))
    found = roll_up([known, Part("exam", "passed", 1.0, 0.25)])
    assert (found["value"], found["low"], found["note"]) == (0.375, None, "not enough data: no interval of exam")
    old = metrics([0.5], ["a"])
    del old["by_cluster"]
    note = roll_up([known, part_of("old", "score", 1.0, old)])["note"]
    assert note == "not enough data: runs of an older version do not name their clusters: old"
    assert roll_up([known, part_of("gone", "score", 1.0, None)])["missing"] == ["gone"]
