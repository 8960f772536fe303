"""Draw traffic lights from above: a lamp at each stop point, colored by state; flashing lights are rings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.shapes import Shapes, Sketch
from roadworthy.render.strokes import Polyline, arrow, disc, placed, without_repeats
from roadworthy.render.style import Color, Theme
from roadworthy.scenario.schema import LightState, Scenario

ARROWS = (LightState.ARROW_STOP, LightState.ARROW_CAUTION, LightState.ARROW_GO)
FLASHING = (LightState.FLASHING_STOP, LightState.FLASHING_CAUTION)
REDS = (LightState.STOP, LightState.ARROW_STOP, LightState.FLASHING_STOP)
AMBERS = (LightState.CAUTION, LightState.ARROW_CAUTION, LightState.FLASHING_CAUTION)

BEYOND_STOP_M = 1.3  # lamps are drawn this far beyond the stop point, where a waiting car does not cover them
SAME_PLACE_M = 1.0
TURN_RAD = 0.5


@dataclass(frozen=True)
class _Place:
    """Lights that share a stop point, from the leftmost turn to the rightmost."""

    position: Polyline  # (2,)
    heading: float
    lights: tuple[int, ...]
    turns: tuple[float, ...]  # the direction of each arrow, rad from the heading


class LightLayer:
    """Draws the lights of a scenario at any step.

    states: their states, (L, T), if they differ from the recording.
    """

    def __init__(self, scenario: Scenario, theme: Theme, states: NDArray[np.uint8] | None = None) -> None:
        self._states = scenario.light_states if states is None else states
        self._theme = theme
        self._places = _places(scenario)
        self._kept: tuple[tuple[bytes, float], Shapes] | None = None

    def shapes(self, step: int, meters_per_pixel: float) -> Shapes:
        """Return one lamp per place, or several side by side where its lights differ. Cached until a state changes."""
        key = (self._states[:, step].tobytes(), meters_per_pixel)
        if self._kept is None or self._kept[0] != key:
            sketch = Sketch()
            self._draw(sketch, step, meters_per_pixel)
            self._kept = (key, sketch.shapes())
        return self._kept[1]

    def _draw(self, sketch: Sketch, step: int, meters_per_pixel: float) -> None:
        radius = float(np.clip(0.8, 4.5 * meters_per_pixel, 13.0 * meters_per_pixel))
        for place in self._places:
            lamps: dict[tuple[LightState, float], None] = {}
            for light, turn in zip(place.lights, place.turns, strict=True):
                state = LightState(int(self._states[light, step]))
                lamps[state, turn if state in ARROWS else 0.0] = None
            left = np.array([-np.sin(place.heading), np.cos(place.heading)])
            for number, (state, turn) in enumerate(lamps):
                aside = (0.5 * (len(lamps) - 1) - number) * 2.35 * radius
                self._draw_lamp(sketch, place.position + aside * left, place.heading + turn, state, radius)

    def _draw_lamp(self, sketch: Sketch, position: Polyline, heading: float, state: LightState, radius: float) -> None:
        housing = self._theme.housing
        sketch.polygons(placed(disc(1.22 * radius), position, 0.0), housing, 0.95)
        color = lamp_color(state, self._theme)
        if state in ARROWS:
            sketch.polygons(placed(arrow(1.7 * radius, 0.42 * radius, 0.78 * radius), position, heading), color)
        elif state in FLASHING:
            sketch.polygons(placed(disc(0.92 * radius), position, 0.0), color)
            sketch.polygons(placed(disc(0.52 * radius), position, 0.0), housing)
        else:
            sketch.polygons(placed(disc(0.88 * radius), position, 0.0), color)


def lamp_color(state: LightState, theme: Theme) -> Color:
    """Return the color of a lamp."""
    if state == LightState.UNKNOWN:
        return theme.dark_lamp
    if state in REDS:
        return theme.red
    return theme.amber if state in AMBERS else theme.green


def _places(scenario: Scenario) -> list[_Place]:
    found: list[tuple[Polyline, float, list[tuple[float, int]]]] = []
    for light, lane in enumerate(scenario.light_lanes.tolist()):
        line = without_repeats(scenario.map.polyline(lane))
        heading, turn = _heading_and_turn(line)
        stop = scenario.light_stops[light, :2].astype(np.float64)
        for position, _, members in found:
            if np.hypot(*(position - stop)) < SAME_PLACE_M:
                members.append((turn, light))
                break
        else:
            found.append((stop, heading, [(turn, light)]))
    places = []
    for stop, heading, members in found:
        members.sort(key=lambda member: (-member[0], member[1]))
        ahead = np.array([np.cos(heading), np.sin(heading)])
        lights, turns = tuple(light for _, light in members), tuple(turn for turn, _ in members)
        places.append(_Place(stop + BEYOND_STOP_M * ahead, heading, lights, turns))
    return places


def _heading_and_turn(line: Polyline) -> tuple[float, float]:
    """Return the heading at the start of a lane, and its turn: a quarter turn left, 0 or a quarter turn right."""
    if len(line) < 2:
        return 0.0, 0.0
    ahead = np.diff(line, axis=0)
    first, last = (float(np.arctan2(ahead[i, 1], ahead[i, 0])) for i in (0, -1))
    change = (last - first + np.pi) % (2 * np.pi) - np.pi
    return first, float(np.sign(change) * 0.5 * np.pi) if abs(change) > TURN_RAD else 0.0
