"""The configurations of the challenge: the histogram, the weight and the bucket of each feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from roadworthy.errors import UsageError


@dataclass(frozen=True)
class Histogram:
    """A likelihood from counts of simulated samples in bins of equal width."""

    low: float
    """Lower edge of the first bin; smaller values are counted there."""
    high: float
    """Upper edge of the last bin; larger values are counted there."""
    bins: int
    """The number of bins."""
    pseudocount: float = 0.1
    """Added to each bin, so that no probability is zero."""

    def __post_init__(self) -> None:
        if not self.low < self.high or self.bins < 1 or not self.pseudocount > 0:
            raise UsageError(f"{self}: expected low < high, at least one bin and a pseudocount above 0")


@dataclass(frozen=True)
class Feature:
    """A feature of motion that is scored step by step."""

    weight: float
    """Share of the realism score."""
    histogram: Histogram
    """Bins of its values."""
    pooled: bool = False
    """Whether one histogram counts the values of all evaluated agents; otherwise each agent has its own."""


@dataclass(frozen=True)
class Event:
    """An event that an agent has or does not have during the scored time."""

    weight: float
    """Share of the realism score."""
    pseudocount: float = 0.001
    """Added to the counts of rollouts with and without the event, so that no probability is zero."""
    pooled: bool = False
    """Whether the share of rollouts with the event is over all evaluated agents; otherwise per agent."""


@dataclass(frozen=True)
class RealismConfig:
    """The weights and histograms of the realism score. The defaults are those of 2025."""

    linear_speed: Feature = Feature(0.05, Histogram(0.0, 25.0, 10))
    """m/s, in 3-D."""
    linear_acceleration: Feature = Feature(0.05, Histogram(-12.0, 12.0, 11))
    """m/s², of the speed."""
    angular_speed: Feature = Feature(0.05, Histogram(-0.628, 0.628, 11))
    """rad/s."""
    angular_acceleration: Feature = Feature(0.05, Histogram(-3.14, 3.14, 11))
    """rad/s²."""
    distance_to_nearest_object: Feature = Feature(0.10, Histogram(-5.0, 40.0, 10))
    """m between boxes with rounded corners, negative where they overlap."""
    collision_indication: Event = Event(0.25)
    """Whether it touches another agent."""
    time_to_collision: Feature = Feature(0.10, Histogram(0.0, 5.0, 10))
    """s until a vehicle reaches the agent in front of it."""
    distance_to_road_edge: Feature = Feature(0.05, Histogram(-20.0, 40.0, 10))
    """m, of the outermost corner, positive off the road."""
    offroad_indication: Event = Event(0.25)
    """Whether it leaves the road."""
    traffic_light_violation: Event = Event(0.05)
    """Whether it runs a red light, if it is a vehicle."""

    def __post_init__(self) -> None:
        total = sum(part.weight for part in self.parts.values())
        if abs(total - 1.0) > 1e-6:
            raise UsageError(f"the weights of a realism config add up to {total:g}, expected 1")

    @property
    def parts(self) -> Mapping[str, Feature | Event]:
        """All features and events by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


CHALLENGE_2025 = RealismConfig()
CHALLENGE_2024 = replace(
    CHALLENGE_2025,
    distance_to_road_edge=replace(CHALLENGE_2025.distance_to_road_edge, weight=0.10),
    traffic_light_violation=Event(0.0),
)
# The scenario-generation challenge: like 2025, but pooled over agents, except for red lights.
SCENARIO_GENERATION_2025 = replace(
    CHALLENGE_2025,
    **{
        name: replace(part, pooled=True)
        for name, part in CHALLENGE_2025.parts.items()
        if name != "traffic_light_violation"
    },  # type: ignore[arg-type]
)
CHALLENGES = {"2025": CHALLENGE_2025, "2024": CHALLENGE_2024, "2025_scenario_gen": SCENARIO_GENERATION_2025}

# The groups of the leaderboard.
BUCKETS = {
    "kinematic": ("linear_speed", "linear_acceleration", "angular_speed", "angular_acceleration"),
    "interactive": ("distance_to_nearest_object", "collision_indication", "time_to_collision"),
    "map_based": ("distance_to_road_edge", "offroad_indication", "traffic_light_violation"),
}
