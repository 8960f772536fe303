"""The figures that the terminal and reports show first, in one order."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# The figures of one run, most important first.
HEADLINES = (
    "realism",
    "min_average_displacement_error",
    "passed",
    "score",
    "success",
    "closed_loop_score",
    "at_fault_collision_rate",
    "off_road_rate",
    "goal_rate",
    "completion_rate",
    "red_light_rate",
    "collision_rate",
    "timed_out_rate",
    "distance_per_infraction_m",
    "comfort",
)
# The columns of tables with several runs or classes.
COLUMNS = ("realism", "passed", "score", "success", "at_fault_collision_rate", "collision_rate", "off_road_rate")
GAIN = "ada_delta_trial_"  # prefix of gains over the first trial


def main_columns(names: Iterable[str], beside_gain: int) -> list[str]:
    """Return the figures for the columns of a table of runs.

    Args:
        names: The figures that any of the runs has.
        beside_gain: The number of columns before the gain of the last trial, where episodes have several trials.
    """
    names = list(dict.fromkeys(names))
    columns = [name for name in COLUMNS if name in names]
    if "passed" in columns and "score" in columns:  # goals of exam scenarios are only the ends of recordings
        columns.remove("score")
    if "at_fault_collision_rate" in columns and "collision_rate" in columns:  # only old runs lack the former
        columns.remove("collision_rate")
    gains = [name for name in names if name.startswith(GAIN)]
    if gains:
        return [*columns[:beside_gain], max(gains, key=later_trial)]
    return columns or names[: len(COLUMNS)]


def headline(names: Collection[str], columns: list[str]) -> str:
    """Return the figure of a run in the first column: `score` for a run without exams in a table with exams."""
    if not columns:
        return ""
    return "score" if columns[0] == "passed" and "passed" not in names and "score" in names else columns[0]


def later_trial(gain: str) -> int:
    """Return the later trial of a gain, counted from 0."""
    return int(gain.removeprefix(GAIN).partition("_")[0])
