"""The style of pictures: the colors of a theme, and the sizes of road markings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Color = tuple[int, int, int]

WHITE: Color = (255, 255, 255)
BLACK: Color = (24, 28, 34)


def rgb(code: str) -> Color:
    """Return a color from its web code, such as '#1f6fb5'."""
    number = int(code.lstrip("#"), 16)
    return number >> 16, number >> 8 & 255, number & 255


@dataclass(frozen=True)
class Theme:
    """The colors of a picture. Those of agents suit all kinds of color vision (Okabe and Ito)."""

    land: Color
    sidewalk: Color
    road: Color
    driveway: Color
    curb: Color
    median: Color
    white_paint: Color
    yellow_paint: Color
    bump_paint: Color
    lane_arrow: Color
    lane_arrow_alpha: float
    sdc: Color
    coplayer: Color
    vehicle: Color
    reactive: Color
    parked: Color
    cyclist: Color
    pedestrian: Color
    other: Color
    casing: Color  # the thin rim around agents
    glass: Color
    glass_alpha: float
    shadow_alpha: float
    ink: Color
    faint_ink: Color
    panel: Color
    panel_alpha: float
    housing: Color
    red: Color = (240, 67, 58)
    amber: Color = (255, 176, 32)
    green: Color = (47, 206, 113)
    dark_lamp: Color = (125, 133, 144)
    sign: Color = (200, 49, 43)


# Light and dark.
_PARTS: dict[str, tuple[Any, Any]] = {
    "land": ("#e9ece4", "#171b20"),
    "sidewalk": ("#f6f4ef", "#20262d"),
    "road": ("#b4bac3", "#343b45"),
    "driveway": ("#c5cad1", "#3b434e"),
    "curb": ("#8b929d", "#5b6572"),
    "median": ("#98a08f", "#4b5a48"),
    "white_paint": ("#ffffff", "#c9d0d8"),
    "yellow_paint": ("#f4c542", "#c9a13a"),
    "bump_paint": ("#e8b93c", "#b08d33"),
    "lane_arrow": ("#ffffff", "#aab4c0"),
    "sdc": ("#d9480f", "#ff7a3d"),
    "coplayer": ("#c98a00", "#f0b429"),
    "vehicle": ("#1f6fb5", "#4ba3ee"),
    "reactive": ("#3f9fd8", "#8fd0ff"),
    "parked": ("#7c8794", "#6f7a88"),
    "cyclist": ("#00876a", "#2fc29b"),
    "pedestrian": ("#b0488c", "#e386bd"),
    "other": ("#5d6470", "#98a2ae"),
    "casing": ("#ffffff", "#0c0f13"),
    "glass": ("#0f1a2a", "#070b12"),
    "ink": ("#20262e", "#e6eaef"),
    "faint_ink": ("#68717d", "#98a3b0"),
    "panel": ("#ffffff", "#0e1216"),
    "housing": ("#262c35", "#050709"),
    "lane_arrow_alpha": (0.38, 0.22),
    "glass_alpha": (0.62, 0.66),
    "shadow_alpha": (0.16, 0.35),
    "panel_alpha": (0.86, 0.82),
}


def _theme(column: int) -> Theme:
    parts: dict[str, Any] = {}
    for name, pair in _PARTS.items():
        parts[name] = rgb(pair[column]) if isinstance(pair[column], str) else pair[column]
    return Theme(**parts)


LIGHT, DARK = _theme(0), _theme(1)
THEMES = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class RoadPaint:
    """Sizes of road markings in meters (US practice), and their minimum sizes in pixels."""

    line_width: float = 0.15
    thinnest_line_px: float = 1.0
    double_gap: float = 0.32  # between the middles of a double line
    closest_double_px: float = 2.6  # double lines closer than this are drawn as one
    dash: tuple[float, float] = (3.0, 9.0)
    curb_width: float = 0.2
    sidewalk_width: float = 2.2
    stop_line_width: float = 0.45
    zebra_bar: float = 0.55
    zebra_gap: float = 0.6
    arrow_every: float = 24.0
    unknown_lane_width: float = 3.6


US_PAINT = RoadPaint()
