"""What the doctor finds: one line for each thing that was looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from roadworthy.errors import RoadworthyError


class State(Enum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # it works, but not as one might expect
    FAULT = "fault"  # an evaluation would fail


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: State
    told: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    # The same in numbers, for programs.


def look(what: str, examine: Callable[[], Finding]) -> Finding:
    """Look at one thing; whatever goes wrong with it is the finding."""
    try:
        return examine()
    except (RoadworthyError, OSError) as error:
        return Finding(what, State.FAULT, str(error))
    except Exception as error:  # a library that is broken is what a doctor is there for
        return Finding(what, State.FAULT, f"{type(error).__name__}: {error}")
