"""Validation: find what the recorded motion or the map of a sound scenario cannot contain.

Each rule (`RULES`) reports at most one fault per agent (or per pair of agents, lights or lanes): the worst or the first
one, with the number of further steps. A profile rates faults: in a generated scenario every fault is an error, while
tracker noise, gaps and crowding in a recorded one are notes.
"""

from roadworthy.scenario.validate.finding import Fault, Severity
from roadworthy.scenario.validate.limits import Limits
from roadworthy.scenario.validate.pack import FaultCounts, FaultKind, PackFault, validate_pack
from roadworthy.scenario.validate.profile import (
    GENERATED,
    PROFILES,
    RECORDED,
    RULES,
    Profile,
    profile_named,
    profile_of,
)
from roadworthy.scenario.validate.scenario import faults

__all__ = [
    "GENERATED",
    "PROFILES",
    "RECORDED",
    "RULES",
    "Fault",
    "FaultCounts",
    "FaultKind",
    "Limits",
    "PackFault",
    "Profile",
    "Severity",
    "faults",
    "profile_named",
    "profile_of",
    "validate_pack",
]
