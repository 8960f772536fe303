"""The text of reports: figures with units and intervals, counts, times, and names in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from roadworthy.metrics.headlines import GAIN

Figure = Mapping[str, Any]  # as metrics.json has it

NONE = "–"
UNIT_SUFFIXES = ("_s", "_m", "_mps", "_rad")  # of names; values show their unit
PLURALS = {"infraction": "infractions", "kilometre": "km"}
PLAIN = {
    "length": "steps driven",
    "at_fault_collision_rate": "at-fault collisions",
    "collision_rate": "all collisions",
    "at_fault_collisions_per_km": "at-fault collisions per km",
    "return": "return (sum of rewards)",
    "distance_m": "distance",
    "lane_centred": "lane centered",
    "distance_per_infraction_m": "distance per infraction",
    "trial_goal_reach_rate": "goals reached, all trials",
    "trial_mean_length": "steps driven per trial",
    "n_trials_completed": "trials ended",
    "n_trials_goal_reached": "trials with all goals reached",
    "n_trials_timed_out": "trials out of time",
    "collision_indication": "collision",
    "offroad_indication": "off road",
    "traffic_light_violation": "red light",
    "min_average_displacement_error": "displacement error of the nearest rollout",
    "simulated_collision_rate": "collision in rollouts",
    "simulated_offroad_rate": "off road in rollouts",
    "simulated_traffic_light_violation_rate": "red light in rollouts",
}
LIKELIHOOD = "likelihood"  # the unit of likelihoods, and the suffix of their names


def plain_name(name: str) -> str:
    """Return a figure's name in words. Trials are counted from 1 here, from 0 in files."""
    name = name.removesuffix("_per_scenario").removesuffix(f"_{LIKELIHOOD}")
    if name in PLAIN:
        return PLAIN[name]
    if name.startswith(GAIN):
        later, _, first = name.removeprefix(GAIN).partition("_minus_")
        if later.isdigit() and first.isdigit():
            return f"gain of trial {int(later) + 1} over trial {int(first) + 1}"
    if name.startswith("trial_") and name.endswith("_score"):
        number = name.removeprefix("trial_").removesuffix("_score")
        if number.isdigit():
            return f"score in trial {int(number) + 1}"
    for suffix in UNIT_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.replace("_per_km", " per km").replace("_", " ").strip()


def number(value: float | None, unit: str = "1", *, signed: bool = False) -> str:
    """Return a value with its unit; shares are in percent, gains of shares in percentage points."""
    if value is None:
        return NONE
    sign = "+" if signed else ""
    if unit == "share":
        return f"{100.0 * value:{sign}.1f}" + (" pts" if signed else "%")
    if unit == LIKELIHOOD:
        return f"{value:{sign}.3f}"
    return f"{digits(value, sign)}{'' if unit == '1' else f' {unit}'}"


def digits(value: float, sign: str = "") -> str:
    """Return a number with about three digits."""
    size = abs(value)
    places = 0 if size >= 1000.0 or (size >= 100.0 and value == round(value)) else 1 if size >= 100.0 else 2
    return f"{value:{sign},.{places}f}" if size >= 0.01 or value == 0.0 else f"{value:{sign}.2g}"


def is_gain(figure: Figure) -> bool:
    """Return whether a figure is a difference, which may be negative."""
    return str(figure["name"]).startswith(GAIN)


def value_of(figure: Figure | None) -> str:
    """Return the value of a figure with its unit."""
    return NONE if figure is None else number(figure["value"], figure["unit"], signed=is_gain(figure))


def interval_of(figure: Figure | None) -> str:
    """Return the interval of a figure, or in brief why there is none; `why_of` has the details."""
    if figure is None:
        return NONE
    low, high = figure.get("low"), figure.get("high")
    if low is None or high is None:
        return (figure.get("note") or NONE).partition(":")[0]
    unit, signed = figure["unit"], is_gain(figure)
    low_text = number(low, unit, signed=signed).removesuffix("%").removesuffix(" pts").removesuffix(f" {unit}")
    return f"{low_text} to {number(high, unit, signed=signed)}"


def why_of(figure: Figure | None) -> str | None:
    """Return the method of a figure's interval and what it assumes, or the reason why it has none."""
    if figure is None:
        return None
    return "; ".join(part for part in (figure.get("method"), figure.get("note")) if part) or None


def missing_of(figure: Figure | None) -> str | None:
    """Return the share of a figure's rows without data, and the interval in the worst case; None if none is missing."""
    if figure is None or not figure.get("missing"):
        return None
    share = f"{100.0 * figure['missing']:.1f}% missing"
    low, high = figure.get("worst_low"), figure.get("worst_high")
    if low is None or high is None:
        return share
    return f"{share}: {interval_of({**figure, 'low': low, 'high': high})}"


def roll_up_words(summary: Mapping[str, Any]) -> str:
    """Return the interval of a summary over evaluators and the share of missing data, to follow its value."""
    if summary["value"] is None:
        return ""
    if summary["low"] is None:
        words = f" ({summary['note']})" if summary["note"] else ""
    else:
        words = f" ({summary['low']:.4f} to {summary['high']:.4f})"
    if not summary["missing_share"]:
        return words
    words += f", {100.0 * summary['missing_share']:.1f}% of the data missing"
    if summary["worst_low"] is None or summary["worst_high"] is None:
        return words
    return f"{words}: {summary['worst_low']:.4f} to {summary['worst_high']:.4f} in the worst case"


def count(n: float) -> str:
    """Return a number of things, without decimals where it is whole."""
    return f"{n:,.0f}" if n == round(n) else f"{n:,.1f}" if n >= 10.0 else f"{n:,.2f}"


def many(n: float, one: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    words = one if n == 1 else PLURALS.get(one, f"{one}s")
    return f"{count(n)} {words}"


def counted(figure: Figure) -> str:
    """Return how many things a figure counts."""
    per = str(figure["per"])
    return many(float(figure["n"]), "ego" if per == "agent" else per)


def duration(seconds: float) -> str:
    """Return a time span in words."""
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    if seconds < 3600.0:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def moment(text: str | None) -> str:
    """Return a time of a record, to the second."""
    if not text:
        return NONE
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text


def setting(value: Any) -> str:
    """Return a value of the config as in a config file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(setting(part) for part in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
