"""What each kind of road user is judged by.

| rule | vehicle, other | cyclist | pedestrian |
|---|---|---|---|
| leaves the road | yes | no | no |
| red lights, stop signs | yes | yes | no |
| along its lane, wrong way | yes | on bicycle lanes | no |
| centered in its lane | yes | no | no |

Road edges bound what vehicles drive on: sidewalks, crossings and shared paths lie beyond them, and a map does not say
where cycling is allowed. Other lanes than bicycle lanes are drawn and directed for vehicles, at whose side cyclists
ride. What a kind is not judged by has no data in its figures, and no influence on its score, reward or fate.
"""

from __future__ import annotations

from roadworthy.kernels import rule
from roadworthy.scenario.schema import AgentType, Ints, LaneType
from roadworthy.sim.state import LANE, LANE_TYPE, TYPE, Maps

_PEDESTRIAN, _CYCLIST = int(AgentType.PEDESTRIAN), int(AgentType.CYCLIST)
_BIKE_LANE = int(LaneType.BIKE_LANE)


@rule(inline=True)
def keeps_to_road(flags: Ints, a: int) -> bool:
    """Whether road edges and lane centers are for agent a: a vehicle, or something unknown."""
    return flags[TYPE, a] != _PEDESTRIAN and flags[TYPE, a] != _CYCLIST


@rule(inline=True)
def uses_lanes(flags: Ints, a: int) -> bool:
    """Whether there are lanes, with lights and stop signs, for such as agent a: whoever does not walk."""
    return flags[TYPE, a] != _PEDESTRIAN


@rule(inline=True)
def follows_lane(flags: Ints, a: int, maps: Maps, m: int) -> bool:
    """Whether the direction of the lane that agent a is on is for it; False where it is on none."""
    lane = flags[LANE, a]
    if lane < 0 or not uses_lanes(flags, a):
        return False
    return flags[TYPE, a] != _CYCLIST or maps.lanes[m, LANE_TYPE, lane] == _BIKE_LANE
