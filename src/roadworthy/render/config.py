"""Settings of videos: which episodes of a run get one, and what it shows (the keys `render.*` of a section)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from roadworthy.checks import at_least
from roadworthy.errors import ConfigError

View = Literal["bev", "ego", "obs"]
Choice = Literal["first", "random", "worst", "failed"]

VIEWS: tuple[View, ...] = get_args(View)
SIDE_PX = (64, 4096)  # the smallest and the largest side of a picture
FASTEST = 100.0


@dataclass(frozen=True)
class RenderConfig:
    """Videos of some episodes. Their number and length have no default, because videos of a whole run take hours."""

    max_steps: int
    # The number of steps of an episode that a video shows at most, over all its trials together.
    episodes: int | None = None
    # The number of episodes that get videos at most; 0: none. Give this, `scenarios`, or a list of ids in `choose`.
    scenarios: int | None = None
    # The number of scenarios that get a video of one episode at most; an alternative to `episodes`.
    choose: Choice | tuple[str, ...] = "first"
    # Which episodes get videos. first: in the order of the ledger; random: a sample that differs by epoch; worst: the
    # lowest score first, then most infractions; failed: those in which an ego failed, worst first; or a list of ids.
    views: tuple[View, ...] = ("ego",)
    # The views, one file each. ego: the surroundings of one agent; bev: the whole map; obs: that agent's observations.
    agent: int | None = None
    # The agent that the views ego and obs follow, by its index in the world; "none": the ego that did worst.
    size: tuple[int, int] = (1280, 720)
    # The width and height of videos in pixels.
    speed_up: float = 1.0
    # The playback speed; 1 is real time, with 1 / dt frames per second.
    seed: int = 0
    # The seed of the random sample of episodes.

    def __post_init__(self) -> None:
        at_least(self, 1, "max_steps")
        self._check_number()
        if not self.views or len(set(self.views)) < len(self.views) or not set(self.views) <= set(VIEWS):
            raise ConfigError(f"views is {list(self.views)}, expected some of {', '.join(VIEWS)}, each once")
        if self.agent is not None and self.agent < 0:
            raise ConfigError(f'agent is {self.agent}, expected 0 or more, or "none"')
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
                also = f" and {' and '.join(given)} is given" if given else ""
                raise ConfigError(f"choose lists {len(self.choose)} episodes{also}; expected one or more ids alone")
        elif len(given) != 1:
            which = "both are given" if given else "neither is given"
            raise ConfigError(f"expected either episodes or scenarios as the number of videos; {which}")
