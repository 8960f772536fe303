"""The observation: its blocks, their features, and the column of each number.

BLOCKS is the only place that orders blocks; CPU and GPU take the starts of blocks from it. A block of n entries and f
features is stored feature by feature: the n values of the first feature, then those of the second. Entries beyond a
block's count are 0. Every number is a quantity divided by the scale of its feature, so that it is about -1 to 1, and it
is clipped to -CLIP to CLIP. The reward weights (conditioning, term_weights) are neither scaled nor clipped. Blocks of
users (extensions.py) follow the built-in ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ConfigError, UsageError
from roadworthy.sim.config import SimConfig
from roadworthy.sim.extensions import TERM_WEIGHTS, load_blocks
from roadworthy.sim.state import REWARD_TERMS

Number = TypeVar("Number", bound=np.generic)

CLIP = 4.0
ROAD_M = 50.0  # positions of partners and road points
FAR_M = 100.0  # positions of goals and stop lines
SPEED_MPS = 20.0
ACCELERATION_MPS2 = 5.0
STEERING_RAD = 1.0
LENGTH_M = 10.0
WIDTH_M = 3.0
OFFSET_M = 4.0
POINT_HALF_M = 2.0


@dataclass(frozen=True)
class Feature:
    """One quantity of each entry of a block."""

    name: str
    scale: float = 1.0
    # The quantity is divided by this.
    unit: str = ""
    # The unit of the quantity and the scale; empty for a number without one.


@dataclass(frozen=True)
class Block:
    """Entries of one kind: columns start to stop - 1 of the row."""

    name: str
    start: int
    entries: int
    features: tuple[Feature, ...]

    @property
    def size(self) -> int:
        return self.entries * len(self.features)

    @property
    def stop(self) -> int:
        return self.start + self.size

    @property
    def slice(self) -> slice:
        return slice(self.start, self.stop)

    def of(self, rows: NDArray[Number]) -> NDArray[Number]:
        """Return the block of observations (..., size) as (..., features, entries)."""
        return rows[..., self.slice].reshape(*rows.shape[:-1], len(self.features), self.entries)

    def column(self, feature: str, entry: int = 0) -> int:
        """Return the column of a feature of an entry."""
        names = [f.name for f in self.features]
        if feature not in names:
            raise UsageError(f"block {self.name!r} has no feature {feature!r}; it has: {', '.join(names)}")
        if not 0 <= entry < self.entries:
            raise UsageError(f"block {self.name!r} has no entry {entry}; it has {self.entries}, counted from 0")
        return self.start + names.index(feature) * self.entries + entry


@dataclass(frozen=True)
class ObservationLayout:
    """The blocks of a row, in order and without gaps."""

    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        """Return how many numbers a row has."""
        return self.blocks[-1].stop

    def __getitem__(self, name: str) -> Block:
        for block in self.blocks:
            if block.name == name:
                return block
        raise UsageError(f"observations have no block {name!r}; they have: {', '.join(b.name for b in self.blocks)}")

    def columns(self) -> list[str]:
        """Return the name of every column, such as 'lanes.x[3]', or 'ego.speed' in blocks of one entry."""
        return [
            f"{block.name}.{feature.name}" + (f"[{entry}]" if block.entries > 1 else "")
            for block in self.blocks
            for feature in block.features
            for entry in range(block.entries)
        ]

    def plain(self) -> dict[str, Any]:
        """Return the layout as lists and dicts, for JSON."""
        return {
            "size": self.size,
            "clip": CLIP,
            "blocks": [
                {
                    "name": block.name,
                    "start": block.start,
                    "stop": block.stop,
                    "entries": block.entries,
                    "features": [{"name": f.name, "scale": f.scale, "unit": f.unit} for f in block.features],
                }
                for block in self.blocks
            ],
        }

    def __str__(self) -> str:
        lines = [f"{'block':<13}{'columns':<12}{'entries':>7}  features (scale)"]
        for block in self.blocks:
            columns = f"{block.start}:{block.stop}"
            features = ", ".join(f.name + (f" ({f.scale:g} {f.unit})" if f.unit else "") for f in block.features)
            lines.append(f"{block.name:<13}{columns:<12}{block.entries:>7}  {features}")
        return "\n".join([*lines, f"{self.size} numbers"])


# Positions and directions are in the agent's own frame: x ahead, y to the left.
_ROAD_PLACE = (Feature("x", ROAD_M, "m"), Feature("y", ROAD_M, "m"), Feature("cos"), Feature("sin"))
EGO = (
    Feature("speed", SPEED_MPS, "m/s"),
    Feature("acceleration", ACCELERATION_MPS2, "m/s2"),
    Feature("lateral_acceleration", ACCELERATION_MPS2, "m/s2"),
    Feature("steering", STEERING_RAD, "rad"),
    Feature("length", LENGTH_M, "m"),
    Feature("width", WIDTH_M, "m"),
    Feature("is_cyclist"),
    Feature("is_pedestrian"),
    Feature("lane_offset", OFFSET_M, "m"),  # to the left of the lane's center line
    Feature("lane_sin"),  # of the heading relative to the lane's direction
    Feature("lane_cos"),
    Feature("speed_limit", SPEED_MPS, "m/s"),  # of the lane, 0 where unknown
)
GOAL = (
    Feature("x", FAR_M, "m"),  # of the next goal, 0 without one
    Feature("y", FAR_M, "m"),
    Feature("second_x", FAR_M, "m"),  # of the goal after it
    Feature("second_y", FAR_M, "m"),
    Feature("has_second"),
    Feature("share_left"),  # of all its goals; 0 without a next goal
)
PARTNER = (
    *_ROAD_PLACE,
    Feature("speed", SPEED_MPS, "m/s"),
    Feature("length", LENGTH_M, "m"),
    Feature("width", WIDTH_M, "m"),
    Feature("kind"),  # 0 vehicle, 0.5 cyclist, 1 pedestrian
)
LANE = (
    *_ROAD_PLACE,
    Feature("half_length", POINT_HALF_M, "m"),
    Feature("speed_limit", SPEED_MPS, "m/s"),  # 0 where unknown
    Feature("is_bicycle_lane"),
)
EDGE = (*_ROAD_PLACE, Feature("half_length", POINT_HALF_M, "m"), Feature("is_median"))
LIGHT = (
    Feature("x", FAR_M, "m"),
    Feature("y", FAR_M, "m"),
    Feature("is_red"),
    Feature("is_amber"),
    Feature("is_green"),
    Feature("is_stop_sign"),
)
# Checkpoints store the names of features, so this one keeps its British spelling.
CONDITIONING = tuple(Feature(f"{term}_weight".replace("center", "centre")) for term in REWARD_TERMS)
# Blocks with as many entries as `observe` says, and the entries of the last block: how many of each are filled.
COUNTED = ("partners", "lanes", "edges", "lights")
PARTNERS_COUNT, LANES_COUNT, EDGES_COUNT, LIGHTS_COUNT = range(len(COUNTED))
COUNTS = tuple(Feature(name, 1.0, "entries") for name in COUNTED)

# The blocks of a row in their order. Those that are not COUNTED have one entry.
BLOCKS = (
    ("ego", EGO),
    ("goal", GOAL),
    ("partners", PARTNER),
    ("lanes", LANE),
    ("edges", EDGE),
    ("lights", LIGHT),
    ("conditioning", CONDITIONING),
    ("counts", COUNTS),
)
# Indices of Params.block_starts.
EGO_BLOCK, GOAL_BLOCK, PARTNERS_BLOCK, LANES_BLOCK, EDGES_BLOCK, LIGHTS_BLOCK, WEIGHTS_BLOCK, COUNTS_BLOCK = range(
    len(BLOCKS)
)


def layout(config: SimConfig) -> ObservationLayout:
    """Return the layout of a simulation's observations."""
    blocks: list[Block] = []
    for name, features in BLOCKS:
        entries = getattr(config.observe, name) if name in COUNTED else 1
        if name == "counts":  # divided by the number of entries
            features = tuple(replace(f, scale=max(getattr(config.observe, f.name), 1)) for f in features)
        blocks.append(Block(name, blocks[-1].stop if blocks else 0, entries, features))
    if config.reward.terms:
        weights = tuple(Feature(f"{term}_weight") for term in config.reward.terms)
        blocks.append(Block(TERM_WEIGHTS, blocks[-1].stop, 1, weights))
    for extra in load_blocks(config):
        if extra.name in [block.name for block in blocks]:
            raise ConfigError(f"there are two observation blocks named {extra.name!r}; rename one of them")
        blocks.append(Block(extra.name, blocks[-1].stop, 1, extra.features))
    return ObservationLayout(tuple(blocks))
