"""The style of pictures: the colors of a theme, and the sizes of road markings."""

from __future__ import annotations

from dataclasses import dataclass

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


LIGHT = Theme(
    land=rgb("#e9ece4"),
    sidewalk=rgb("#f6f4ef"),
    road=rgb("#b4bac3"),
    driveway=rgb("#c5cad1"),
    curb=rgb("#8b929d"),
    median=rgb("#98a08f"),
    white_paint=rgb("#ffffff"),
    yellow_paint=rgb("#f4c542"),
    bump_paint=rgb("#e8b93c"),
    lane_arrow=rgb("#ffffff"),
    lane_arrow_alpha=0.38,
    sdc=rgb("#d9480f"),
    coplayer=rgb("#c98a00"),
    vehicle=rgb("#1f6fb5"),
    reactive=rgb("#3f9fd8"),
    parked=rgb("#7c8794"),
    cyclist=rgb("#00876a"),
    pedestrian=rgb("#b0488c"),
    other=rgb("#5d6470"),
    casing=rgb("#ffffff"),
    glass=rgb("#0f1a2a"),
    glass_alpha=0.62,
    shadow_alpha=0.16,
    ink=rgb("#20262e"),
    faint_ink=rgb("#68717d"),
    panel=rgb("#ffffff"),
    panel_alpha=0.86,
    housing=rgb("#262c35"),
)

DARK = Theme(
    land=rgb("#171b20"),
    sidewalk=rgb("#20262d"),
    road=rgb("#343b45"),
    driveway=rgb("#3b434e"),
    curb=rgb("#5b6572"),
    median=rgb("#4b5a48"),
    white_paint=rgb("#c9d0d8"),
    yellow_paint=rgb("#c9a13a"),
    bump_paint=rgb("#b08d33"),
    lane_arrow=rgb("#aab4c0"),
    lane_arrow_alpha=0.22,
    sdc=rgb("#ff7a3d"),
    coplayer=rgb("#f0b429"),
    vehicle=rgb("#4ba3ee"),
    reactive=rgb("#8fd0ff"),
    parked=rgb("#6f7a88"),
    cyclist=rgb("#2fc29b"),
    pedestrian=rgb("#e386bd"),
    other=rgb("#98a2ae"),
    casing=rgb("#0c0f13"),
    glass=rgb("#070b12"),
    glass_alpha=0.66,
    shadow_alpha=0.35,
    ink=rgb("#e6eaef"),
    faint_ink=rgb("#98a3b0"),
    panel=rgb("#0e1216"),
    panel_alpha=0.82,
    housing=rgb("#050709"),
)

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
