"""Validation: what a scenario's recorded motion and its map do that no sound recording does.

The rules: overlap, off_road, red_light, conflicting_greens, speed, acceleration, jerk, lateral_acceleration, yaw_rate,
heading, velocity, gap, map. Each reports at most one fault per agent (or pair of agents, lights or lanes): the worst
one, or the first, and at how many more steps it shows.
"""

from __future__ import annotations

from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.validate.boxes import overlap_faults
from roadworthy.scenario.validate.lights import conflicting_green_faults, red_light_faults
from roadworthy.scenario.validate.limits import Fault, Limits
from roadworthy.scenario.validate.motion import motion_faults
from roadworthy.scenario.validate.roads import map_faults
from roadworthy.scenario.validate.surface import off_road_faults

__all__ = ["RULES", "Fault", "Limits", "faults"]

RULES: tuple[str, ...] = (
    "overlap",
    "off_road",
    "red_light",
    "conflicting_greens",
    "speed",
    "acceleration",
    "jerk",
    "lateral_acceleration",
    "yaw_rate",
    "heading",
    "velocity",
    "gap",
    "map",
)


def faults(scenario: Scenario, limits: Limits | None = None) -> list[Fault]:
    """All faults of a scenario whose arrays fit together (`Scenario.require_sound`), by the order of RULES."""
    limits = limits or Limits()
    scenario.require_sound()
    findings = [
        *overlap_faults(scenario, limits),
        *off_road_faults(scenario, limits),
        *red_light_faults(scenario),
        *conflicting_green_faults(scenario),
        *motion_faults(scenario, limits),
        *map_faults(scenario.map, limits),
    ]
    findings.sort(key=lambda finding: (RULES.index(finding.rule), finding.agent))
    return [finding.fault(scenario.id) for finding in findings]
