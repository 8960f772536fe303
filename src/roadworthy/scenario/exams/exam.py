"""An exam: which recordings of a class are given as one, and what passing requires of the maneuver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roadworthy.scenario.exams.situation import Attempt, Situation

BEFORE_S = 1.0  # the event comes at least this long after the exam's start


@dataclass(frozen=True)
class Exam:
    """The exam of one behavior class."""

    is_critical: Callable[[Situation], bool]
    # Whether a driver has to do something about what happens: stated on the recording alone.
    conditions: Callable[[Attempt], Mapping[str, bool]]
    # What the maneuver requires, by name. What holds for all classes is in `common_conditions`.


def common_conditions(attempt: Attempt) -> dict[str, bool]:
    """Return what every exam requires of the way: to get on, to end in a lane, and not to stand there for no reason."""
    return {"progress": attempt.makes_progress, "in_lane": attempt.ends_in_lane, "drives_on": attempt.drives_on}
