"""Which episodes of a run get videos, and what these show: the keys `render.*` of an evaluator's section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from roadworthy.errors import ConfigError

View = Literal["bev", "ego", "obs"]
Choice = Literal["first", "random", "worst", "failed"]

VIEWS: tuple[View, ...] = get_args(View)
SIDE_PX = (64, 4096)  # the smallest and the largest side of a picture
FASTEST = 100.0


@dataclass(frozen=True)
class RenderConfig:
    """Videos of some episodes. How many and how long has no default: a thousand films should surprise nobody."""

    max_steps: int
    # At most so many steps of an episode are shown, all its trials together.
    episodes: int | None = None
    # At most so many episodes get videos, 0 for none ...
    scenarios: int | None = None
    # ... or so many scenarios, one episode of each. Give one of the two, or ids in `choose`.
    choose: Choice | tuple[str, ...] = "first"
    # Which: the first of the ledger; a random sample, another one each epoch; those with the lowest score, of equal
    # ones those with most infractions; those in which an ego failed, worst first; or a list of episode ids.
    views: tuple[View, ...] = ("bev",)
    # bev: the whole map; ego: around one agent; obs: what that agent's policy is given. One file each.
    agent: int | None = None
    # Which agent `ego` and `obs` follow, by its number in the world; "none" takes the ego that did worst.
    size: tuple[int, int] = (1280, 720)
    # Width and height in pixels.
    speed_up: float = 1.0
    # How much faster than life it plays; 1 shows 1 / dt frames a second.
    seed: int = 0
    # Of the random sample.

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ConfigError(f"max_steps is {self.max_steps}, expected at least 1")
        self._check_number()
        if not self.views or len(set(self.views)) < len(self.views) or not set(self.views) <= set(VIEWS):
            raise ConfigError(f"views is {list(self.views)}, expected some of {', '.join(VIEWS)}, each once")
        if self.agent is not None and self.agent < 0:
            raise ConfigError(f'agent is {self.agent}, expected a number from 0 on, or "none"')
        if not all(SIDE_PX[0] <= side <= SIDE_PX[1] and side % 2 == 0 for side in self.size):
            raise ConfigError(f"size is {list(self.size)}, expected two even numbers from {SIDE_PX[0]} to {SIDE_PX[1]}")
        if not 0.0 < self.speed_up <= FASTEST:
            raise ConfigError(f"speed_up is {self.speed_up}, expected above 0 and up to {FASTEST:g}")

    def _check_number(self) -> None:
        given = {name: getattr(self, name) for name in ("episodes", "scenarios") if getattr(self, name) is not None}
        for name, number in given.items():
            if number < 0:
                raise ConfigError(f"{name} is {number}, expected a number of videos, or 0 for none")
        if isinstance(self.choose, tuple):
            if not self.choose or given:
                also = f", and {' and '.join(given)} is given" if given else ""
                raise ConfigError(f"choose lists {len(self.choose)} episodes{also}; ids, one or more, say how many too")
        elif len(given) != 1:
            told = "both are given" if given else "both are missing"
            raise ConfigError(f"episodes or scenarios says how many videos are wanted, and {told}; give one of them")
