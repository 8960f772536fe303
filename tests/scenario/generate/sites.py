"""Random road networks, with the geometry that tests compare them with: the surface between edges, lanes as lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import shapely
from numpy.typing import NDArray

from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.network import Lane, Network, Turn
from roadworthy.scenario.generate.scenarios import Place, build_place
from roadworthy.scenario.schema import FeatureKind, LaneType, RoadMap


@dataclass(frozen=True, eq=False, repr=False)
class Site:
    """A place with a name that says how to build it again."""

    name: str
    place: Place

    def __repr__(self) -> str:
        return self.name

    @property
    def network(self) -> Network:
        return self.place.network

    @property
    def lanes(self) -> list[Lane]:
        return self.place.network.lanes

    @property
    def road_map(self) -> RoadMap:
        return self.place.road_map

    @cached_property
    def edges(self) -> list[NDArray[np.float64]]:
        """Return (n, 2) points of every road edge."""
        return [self.polyline(feature) for feature in self.road_map.features(FeatureKind.ROAD_EDGE)]

    @cached_property
    def surface(self) -> shapely.Geometry:
        """Return what lies between the edges, in any direction: inside an odd number of them."""
        return surface_between(self.edges)

    @cached_property
    def center_lines(self) -> list[shapely.LineString]:
        """Return the lanes of the map."""
        return [shapely.LineString(self.polyline(lane)) for lane in self.road_map.features(FeatureKind.LANE)]

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """Return the lanes that lead into each lane."""
        before: list[list[int]] = [[] for _ in self.lanes]
        for number, lane in enumerate(self.lanes):
            for follower in lane.successors:
                before[follower].append(number)
        return before

    def polyline(self, feature: int) -> NDArray[np.float64]:
        return self.road_map.polyline(feature)[:, :2].astype(np.float64)

    def arms(self, junction: int) -> int:
        """Return the number of roads at a junction."""
        return len({self.lanes[lane].group for lane in self.approaches(junction)})

    def approaches(self, junction: int) -> list[int]:
        """Return driving lanes outside a junction that lead into it."""
        return [
            i
            for i, lane in enumerate(self.lanes)
            if lane.junction < 0
            and lane.type != LaneType.BIKE_LANE
            and any(self.lanes[n].junction == junction for n in lane.successors)
        ]

    def is_roundabout(self, junction: int) -> bool:
        return any(lane.junction == junction and lane.turn == Turn.RING for lane in self.lanes)


def surface_between(edges: list[NDArray[np.float64]]) -> shapely.Geometry:
    return reduce(shapely.symmetric_difference, [shapely.make_valid(shapely.Polygon(edge)) for edge in edges])


def draw_site(seed: int, number: int) -> Site:
    """Return the place with a number; the classes take turns."""
    behavior = BEHAVIORS[number % len(BEHAVIORS)]
    number //= len(BEHAVIORS)
    return Site(f"build_place({seed}, {behavior!r}, {number})", build_place(seed, behavior, number))
