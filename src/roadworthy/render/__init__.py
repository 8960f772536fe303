"""Pictures and videos of scenarios, drawn by a built-in rasterizer that needs no display or graphics library."""

from roadworthy.render.birdview import BirdView, Show, View, animate, draw, save_png, whole_map_camera
from roadworthy.render.camera import Camera
from roadworthy.render.map_layer import MapLayer
from roadworthy.render.sheet import Tile, contact_sheet
from roadworthy.render.style import DARK, LIGHT, THEMES, Theme
from roadworthy.render.video import Mp4Writer, write_gif, write_mp4

__all__ = [
    "DARK",
    "LIGHT",
    "THEMES",
    "BirdView",
    "Camera",
    "MapLayer",
    "Mp4Writer",
    "Show",
    "Theme",
    "Tile",
    "View",
    "animate",
    "contact_sheet",
    "draw",
    "save_png",
    "whole_map_camera",
    "write_gif",
    "write_mp4",
]
