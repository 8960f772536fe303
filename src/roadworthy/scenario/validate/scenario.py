"""Validate a scenario against all rules."""

from __future__ import annotations

from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.validate.boxes import overlap_faults
from roadworthy.scenario.validate.finding import Fault
from roadworthy.scenario.validate.lights import conflicting_green_faults, red_light_faults
from roadworthy.scenario.validate.motion import motion_faults
from roadworthy.scenario.validate.presence import far_faults, presence_faults, size_faults
from roadworthy.scenario.validate.profile import RULES, Profile, profile_of
from roadworthy.scenario.validate.roads import map_faults
from roadworthy.scenario.validate.surface import off_road_faults

_ORDER = list(RULES)


def faults(scenario: Scenario, profile: Profile | None = None) -> list[Fault]:
    """Find all faults of a scenario, in the order of RULES.

    Args:
        scenario: The scenario. Arrays that do not fit together raise ScenarioError (`Scenario.require_sound`).
        profile: The limits and the severity of each fault; by default those of the scenario's source (`profile_of`).

    Returns:
        The faults. A scenario passes if none of them is a Severity.ERROR.

    Example:
        errors = [fault for fault in faults(scenario) if fault.severity is Severity.ERROR]
    """
    profile = profile or profile_of(scenario)
    limits = profile.limits
    scenario.require_sound()
    findings = [
        *presence_faults(scenario),
        *size_faults(scenario, limits),
        *far_faults(scenario, limits),
        *overlap_faults(scenario, limits),
        *off_road_faults(scenario, limits),
        *red_light_faults(scenario),
        *conflicting_green_faults(scenario),
        *motion_faults(scenario, limits),
        *map_faults(scenario.map, limits),
    ]
    findings.sort(key=lambda finding: (_ORDER.index(finding.rule), finding.agent))
    return [finding.fault(scenario.id, profile.severity(finding, scenario.sdc)) for finding in findings]
