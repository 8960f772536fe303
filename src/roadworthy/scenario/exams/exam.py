"""The definition of an exam: which recordings of a class qualify, and what passing requires of the maneuver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roadworthy.scenario.exams.situation import Attempt, Situation

BEFORE_S = 1.0  # smallest time from the start of the exam to the event


@dataclass(frozen=True)
class Exam:
    """The exam of one behavior class."""

    is_critical: Callable[[Situation], bool]
    # Whether the event requires a reaction of the driver, judged from the recording only.
    conditions: Callable[[Attempt], Mapping[str, bool]]
    # The requirements of the maneuver by name; `common_conditions` holds for all classes.


def common_conditions(attempt: Attempt) -> dict[str, bool]:
    """Return the requirements of every exam: make progress, end in a lane, and do not stand without a reason."""
    return {"progress": attempt.makes_progress, "in_lane": attempt.ends_in_lane, "drives_on": attempt.drives_on}
