"""Which rules apply to which type of agent.

| rule | vehicle, other | cyclist | pedestrian |
|---|---|---|---|
| leaves the road | yes | no | no |
| red lights, stop signs | yes | yes | no |
| along its lane, wrong way | yes | on bicycle lanes | no |
| centered in its lane | yes | no | no |

Road edges bound the area for vehicles: sidewalks, crossings and shared paths lie beyond them, and a map does not say
where cycling is allowed. Lanes other than bicycle lanes are drawn and directed for vehicles, and cyclists ride at their
side. A rule that does not apply to an agent leaves its figures without data and has no influence on its score, reward
or termination.
"""

from __future__ import annotations

from roadworthy.kernels import rule
from roadworthy.scenario.schema import AgentType, Ints, LaneType
from roadworthy.sim.state import LANE, LANE_TYPE, TYPE, Maps

_PEDESTRIAN, _CYCLIST = int(AgentType.PEDESTRIAN), int(AgentType.CYCLIST)
_BIKE_LANE = int(LaneType.BIKE_LANE)


@rule(inline=True)
def keeps_to_road(flags: Ints, a: int) -> bool:
    """Return whether road edges and lane centers apply to agent a: to vehicles and agents of unknown type."""
    return flags[TYPE, a] != _PEDESTRIAN and flags[TYPE, a] != _CYCLIST


@rule(inline=True)
def uses_lanes(flags: Ints, a: int) -> bool:
    """Return whether lanes, traffic lights and stop signs apply to agent a: to all agents but pedestrians."""
    return flags[TYPE, a] != _PEDESTRIAN


@rule(inline=True)
def follows_lane(flags: Ints, a: int, maps: Maps, m: int) -> bool:
    """Return whether the direction of its lane applies to agent a; False without a lane."""
    lane = flags[LANE, a]
    if lane < 0 or not uses_lanes(flags, a):
        return False
    return flags[TYPE, a] != _CYCLIST or maps.lanes[m, LANE_TYPE, lane] == _BIKE_LANE
