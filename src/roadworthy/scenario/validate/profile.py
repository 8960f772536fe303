"""Profiles: which faults are errors, warnings or notes for scenarios of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roadworthy.errors import UsageError
from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.validate.finding import Finding, Severity
from roadworthy.scenario.validate.limits import Limits

# Every rule, in the order in which faults are reported, with what it looks for.
RULES: Mapping[str, str] = {
    "box": "a box without length or width",
    "presence": "an agent that is at no step",
    "start": "a self-driving car that is missing at the current step",
    "far": "an agent far away from the map",
    "size": "a box longer or wider than any road user",
    "overlap": "two agents in one place",
    "off_road": "a vehicle or cyclist beside the road",
    "red_light": "a vehicle that passes a red light",
    "conflicting_greens": "lanes that cross and are green together",
    "speed": "a speed beyond what its type reaches",
    "acceleration": "speeding up or braking harder than people do",
    "jerk": "acceleration that changes faster than people do it",
    "lateral_acceleration": "a turn that pushes sideways too hard",
    "yaw_rate": "a turn that is too quick",
    "heading": "a heading that is not the direction of motion",
    "velocity": "a velocity that is not the change of position",
    "gap": "an agent that is missing and comes back",
    "map": "a lane that does not end where its successor starts",
    "neighbor": "lanes beside each other that are not parallel, or the wrong way round",
}
_NOTES = frozenset(RULES) - {"box", "map", "start"}
# What figures of the self-driving car depend on, which is tracked better than anybody else.
_CAR_WARNINGS = ("far", "overlap", "off_road", "red_light", "velocity", "gap")


@dataclass(frozen=True)
class Profile:
    """How severe the faults of each rule are; rules that are not named are errors.

    car: the same for faults in which the self-driving car is involved, where that differs.
    """

    name: str
    rules: Mapping[str, Severity] = field(default_factory=dict)
    car: Mapping[str, Severity] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def severity(self, finding: Finding, sdc: int) -> Severity:
        """How severe a finding is in a scenario with this self-driving car (-1 for none)."""
        usual = self.rules.get(finding.rule, Severity.ERROR)
        is_car = sdc >= 0 and sdc in (finding.agent, finding.other_agent)
        return self.car.get(finding.rule, usual) if is_car else usual


GENERATED = Profile("generated")
RECORDED = Profile(
    "recorded",
    rules=dict.fromkeys(_NOTES, Severity.NOTE) | dict.fromkeys(("map", "start"), Severity.WARNING),
    car=dict.fromkeys(_CAR_WARNINGS, Severity.WARNING) | {"presence": Severity.ERROR},
)
PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (GENERATED, RECORDED)}


def profile_of(scenario: Scenario) -> Profile:
    """The profile for a scenario's source: strict for those that the generator made, that of recordings for others."""
    return GENERATED if scenario.source == "generated" else RECORDED


def profile_named(name: str) -> Profile:
    """The profile of this name."""
    if name not in PROFILES:
        raise UsageError(f"profile {name!r} is unknown; known: {', '.join(PROFILES)}")
    return PROFILES[name]
