"""Text of figures, and markup from text."""

from __future__ import annotations

from typing import Any

import pytest

from roadworthy.report.markup import Html, folded, tag
from roadworthy.report.words import counted, duration, interval_of, many, moment, number, plain_name, setting, value_of


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "share", "–"),
        (0.0, "share", "0.0%"),
        (0.9376, "share", "93.8%"),
        (0.0, "1/km", "0.00 1/km"),
        (0.004321, "1/km", "0.0043 1/km"),
        (594.73, "m", "594.7 m"),
        (12345.6, "m", "12,346 m"),
        (800.0, "steps", "800 steps"),
        (-1.234, "1", "-1.23"),
    ],
)
def test_numbers_have_their_unit_and_as_many_digits_as_they_deserve(value: float | None, unit: str, text: str) -> None:
    assert number(value, unit) == text


def test_a_gain_is_in_points_with_its_sign() -> None:
    gain: dict[str, Any] = {
        "name": "ada_delta_trial_3_minus_0",
        "value": 0.031,
        "low": -0.01,
        "high": 0.07,
        "unit": "share",
    }
    assert plain_name(gain["name"]) == "gain of trial 4 over trial 1"
    assert value_of(gain) == "+3.1 pts"
    assert interval_of(gain) == "-1.0 to +7.0 pts"


def test_a_figure_without_an_interval_says_why() -> None:
    told = {"name": "comfort", "value": 0.5, "low": None, "high": None, "unit": "share", "note": "not enough data"}
    assert interval_of(told) == "not enough data"
    assert interval_of({**told, "low": 0.4, "high": 0.6}) == "40.0 to 60.0%"
    assert interval_of({**told, "low": 4.0, "high": 6.0, "unit": "m"}) == "4.00 to 6.00 m"


def test_counts_have_units() -> None:
    assert counted({"n": 1, "per": "agent"}) == "1 ego"
    assert counted({"n": 1200, "per": "trial"}) == "1,200 trials"
    assert counted({"n": 91.637, "per": "kilometre"}) == "91.6 km"
    assert many(2, "infraction") == "2 infractions"


def test_times_and_settings_are_readable() -> None:
    assert [duration(s) for s in (0.84, 318.2, 7260.0)] == ["0.8 s", "5 min 18 s", "2 h 1 min"]
    assert moment("2026-11-16T08:11:29.658Z") == "2026-11-16 08:11:29 UTC"
    assert moment(None) == "–"
    assert setting([[1, 1.0], [2, 0.5]]) == "[[1, 1], [2, 0.5]]"
    assert setting(True) == "true"


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "a < b", Html("<b>c</b>"), None, class_='"x"') == '<p class="&quot;x&quot;">a &lt; b<b>c</b></p>'
    assert tag("td", 1, data_sort=0.1234, hidden=True, title=None, open=False) == '<td data-sort="0.12" hidden>1</td>'
    assert folded("more", "x", is_open=True) == "<details open><summary>more</summary>x</details>"
