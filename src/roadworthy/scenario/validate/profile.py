"""Profiles: the severity of faults, by the kind of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roadworthy.errors import UsageError
from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.validate.finding import Finding, Severity
from roadworthy.scenario.validate.limits import Limits

# Every rule, in the order in which faults are reported, with its meaning.
RULES: Mapping[str, str] = {
    "box": "a box without length or width",
    "presence": "an agent that is never present",
    "start": "a self-driving car that is absent at the current step",
    "far": "an agent far away from the map",
    "size": "a box longer or wider than any road user",
    "overlap": "two agents in one place",
    "off_road": "a vehicle or cyclist off the road",
    "red_light": "a vehicle that runs a red light",
    "conflicting_greens": "crossing lanes that are green together",
    "speed": "a speed beyond that of its type",
    "acceleration": "acceleration or braking beyond what people do",
    "jerk": "jerk beyond what people do",
    "lateral_acceleration": "a lateral acceleration beyond what people drive",
    "yaw_rate": "a turn that is too fast",
    "heading": "a heading that is not the direction of motion",
    "velocity": "a velocity that is not the change of position",
    "gap": "an agent that disappears and returns",
    "map": "a lane that does not end where its successor starts",
    "neighbor": "neighboring lanes that are not parallel, or on the wrong side",
}
_NOTES = frozenset(RULES) - {"box", "map", "start"}
# Results depend on the self-driving car, which is tracked better than other agents.
_CAR_WARNINGS = ("far", "overlap", "off_road", "red_light", "velocity", "gap")


@dataclass(frozen=True)
class Profile:
    """The severity of each rule's faults; unlisted rules are errors.

    car: other severities of faults that involve the self-driving car.
    """

    name: str
    rules: Mapping[str, Severity] = field(default_factory=dict)
    car: Mapping[str, Severity] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def severity(self, finding: Finding, sdc: int) -> Severity:
        """Return the severity of a finding in a scenario with this self-driving car (-1 if there is none)."""
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
    """Return the profile for a scenario's source: strict for the generator, that of recordings for others."""
    return GENERATED if scenario.source == "generated" else RECORDED


def profile_named(name: str) -> Profile:
    """Return the profile with this name."""
    if name not in PROFILES:
        raise UsageError(f"profile {name!r} is unknown; known: {', '.join(PROFILES)}")
    return PROFILES[name]
