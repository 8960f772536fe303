"""Charts: positions match values."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.report.charts import (
    BAR_PX,
    Cell,
    Line,
    Scale,
    bar_scale,
    filled_bars,
    histogram,
    interval_bar,
    scenario_strip,
    trial_chart,
)
from tests.report.made_up import Page


def figure(value: float | None, low: float | None = None, high: float | None = None, **changes: Any) -> dict[str, Any]:
    known = {"name": "score", "value": value, "low": low, "high": high, "unit": "share", "note": "not enough data"}
    return {**known, "per": "agent", "n": 10, **changes}


def shapes(text: str, name: str, class_: str) -> list[dict[str, str]]:
    """The attributes of all shapes of a kind and class."""
    found = [attributes for tag, attributes in Page(text).elements if tag == name]
    return [{k: v or "" for k, v in a.items()} for a in found if class_ in (a.get("class") or "").split()]


def test_a_figure_is_a_dot_on_its_interval() -> None:
    told = figure(0.25, 0.1, 0.5)
    scale = bar_scale([told])
    assert (scale.low, scale.high) == (0.0, 1.0)
    bar = interval_bar(told, scale)
    (dot,), (line,) = shapes(bar, "circle", "dot"), shapes(bar, "line", "range")
    assert float(dot["cx"]) == pytest.approx(scale(0.25), abs=0.01)
    assert [float(line[end]) for end in ("x1", "x2")] == pytest.approx([scale(0.1), scale(0.5)], abs=0.01)


def test_without_an_interval_the_dot_is_hollow_and_without_data_there_is_none() -> None:
    bare, nothing = interval_bar(figure(0.25), bar_scale([])), interval_bar(figure(None), bar_scale([]))
    assert shapes(bare, "circle", "hollow")
    assert not shapes(bare, "circle", "dot")
    assert not shapes(bare, "line", "range")
    assert "<circle" not in nothing


@pytest.mark.row("STAT-4")
def test_missing_data_are_a_lighter_bar_around_the_interval() -> None:
    bounded = figure(0.25, 0.1, 0.5, missing=0.1, worst_low=0.05, worst_high=0.7)
    scale = bar_scale([bounded])
    bar = interval_bar(bounded, scale)
    (wide,) = shapes(bar, "line", "worst")
    assert [float(wide[end]) for end in ("x1", "x2")] == pytest.approx([scale(0.05), scale(0.7)], abs=0.01)
    assert bar.index('class="worst"') < bar.index('class="range"')  # the interval is drawn over it
    assert "10.0% missing: 5.0 to 70.0%" in bar
    whole = figure(0.25, 0.1, 0.5, missing=0.0, worst_low=0.1, worst_high=0.5)
    assert not shapes(interval_bar(whole, scale), "line", "worst")


def test_gains_have_zero_in_the_middle_and_others_start_at_zero() -> None:
    gains = bar_scale([figure(0.1, -0.3, 0.5)])
    assert gains(0.0) == pytest.approx(BAR_PX[0] / 2.0)
    others = bar_scale([figure(3.0, 2.0, 4.0, unit="1/km"), figure(0.0, unit="1/km")])
    assert (others.low, others.high) == (0.0, 4.0)
    nothing = bar_scale([figure(0.0, unit="1/km")])
    assert nothing.high > nothing.low


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(20.0, 1000.0))
def test_ticks_lie_on_the_scale_evenly_spread(low: float, size: float, length_px: float) -> None:
    if low + size <= low + abs(low) * 1e-6:
        return  # too short for its place to have numbers of its own
    scale = Scale(low, low + size, 0.0, length_px)
    ticks = scale.ticks()
    assert len(ticks) <= max(length_px / 20.0, 3.0)
    slack = 1e-6 * max(abs(low), size)
    assert all(low - slack <= tick <= low + size + slack for tick in ticks)
    gaps = [b - a for a, b in pairwise(ticks)]
    assert all(math.isclose(gap, gaps[0], rel_tol=1e-3, abs_tol=slack) for gap in gaps)


def test_a_curve_has_a_point_for_each_trial_with_data() -> None:
    figures = [figure(0.2, 0.1, 0.4), figure(None), figure(0.6)]
    chart = trial_chart([Line("score", figures, "c0")], "Success")
    (curve,) = shapes(chart, "polyline", "curve")
    points = [tuple(map(float, point.split(","))) for point in curve["points"].split()]
    assert len(points) == 2
    assert points[0][0] < points[1][0]
    assert points[0][1] > points[1][1], "more is higher up"
    assert len(shapes(chart, "line", "range")) == 1
    assert len(shapes(chart, "circle", "hollow")) == 1


def test_a_strip_shades_every_scenario_and_leads_to_its_episode() -> None:
    cells = [Cell("a", "#a", {"score": 1.0, "off": 0.0}), Cell("b", None, {"score": 0.5, "off": None})]
    strip = scenario_strip(cells, {"score": "score", "off": "off road"})
    assert [box["class"] for _, box in [e for e in Page(strip).elements if e[0] == "rect"]] == [
        "b5",
        "b0",
        "b2",
        "none",
    ]
    assert Page(strip).attributes("href") == ["#a"]


def test_filled_bars_end_at_their_values_and_those_without_data_are_left_out() -> None:
    figures = {"one": figure(0.75, 0.5, 0.9), "none": None, "unknown": figure(None), "bare": figure(0.25)}
    scale = bar_scale([figure(1.0, unit="likelihood")])
    assert (scale.low, scale.high) == (0.0, 1.0)
    drawn = filled_bars(figures, scale)
    boxes, (whisker,) = shapes(drawn, "rect", "filled"), shapes(drawn, "line", "whisker")
    ends = [float(box["x"]) + float(box["width"]) for box in boxes]
    assert ends == pytest.approx([scale(0.75), scale(0.25)], abs=0.02)
    assert [float(whisker[end]) for end in ("x1", "x2")] == pytest.approx([scale(0.5), scale(0.9)], abs=0.01)
    assert len({box["y"] for box in boxes}) == 2


def test_a_histogram_shows_shares_of_each_side_by_itself() -> None:
    drawn = histogram("speed", [0.0, 10.0, 20.0], [1.0, 3.0], [50.0, 50.0])
    boxes, (line,) = shapes(drawn, "rect", "filled"), shapes(drawn, "polyline", "recorded")
    heights = [float(box["height"]) for box in boxes]
    assert heights[0] == pytest.approx(heights[1])
    levels = [float(point.split(",")[1]) for point in line["points"].split()]
    bottom = float(boxes[0]["y"]) + heights[0]
    assert (bottom - levels[0]) / (bottom - levels[2]) == pytest.approx(1.0 / 3.0, abs=0.01)
    assert "0 to 10: recorded 25.0%, simulated 50.0%" in drawn
    assert "NaN" not in histogram("nothing", [0.0, 1.0], [0.0], [0.0])
