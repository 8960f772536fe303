"""Findings of the doctor: one for each thing that it checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from roadworthy.errors import RoadworthyError


class State(Enum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"  # an evaluation works, but perhaps not as expected
    FAULT = "fault"  # an evaluation would fail


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    state: State
    message: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    # The same as numbers, for programs.


def run_check(what: str, examine: Callable[[], Finding]) -> Finding:
    """Run one check; an error in it becomes the finding."""
    try:
        return examine()
    except (RoadworthyError, OSError) as error:
        return Finding(what, State.FAULT, str(error))
    except Exception as error:  # a broken library may raise any error
        return Finding(what, State.FAULT, f"{type(error).__name__}: {error}")
