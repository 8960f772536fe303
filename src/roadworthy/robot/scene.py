"""The MuJoCo model of the task: the table, the gripper, the tray, the cameras and the objects.

The origin is the center of the table top; x points along the table to the tray, y away from the front camera, z up.
Units are meters, seconds, kilograms and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TABLE_HALF_M = (0.42, 0.30)
TRAY_AT_M = (0.28, 0.0)
TRAY_HALF_M = 0.085
TRAY_WALL_M = 0.012  # height
REACH_LOW_M = (-0.24, -0.20, 0.012)  # of the midpoint between the fingertips
REACH_HIGH_M = (0.32, 0.20, 0.30)
REACH_YAW_RAD = 1.65
OPENING_M = (0.012, 0.090)  # between the fingers
HOME_M = (0.30, 0.17, 0.26)  # outside the view of the front camera on the table
PARKED_M = ((1.6, -0.6), (1.6, 0.0), (1.6, 0.6))  # on the floor, for objects that an episode does not use
FLOOR_Z_M = -0.40
LAMP_NOMINAL = 1000.0  # light intensity at which the diffuse light of the lamp is DIFFUSE_NOMINAL
DIFFUSE_NOMINAL = 0.80
FILL_SHARE = 0.35  # of the light comes from a second light, so that shadows are not black
PHYSICS_STEP_S = 0.0025


@dataclass(frozen=True)
class Thing:
    """An object: its shape, mass and appearance."""

    shape: str  # a MuJoCo geom type
    size: tuple[float, ...]  # of MuJoCo: half sides; radius and half height; radius
    height: float  # of its center above the surface
    mass: float
    color: tuple[float, float, float]
    words: str  # its name in instructions


THINGS = {
    "box": Thing("box", (0.022, 0.022, 0.026), 0.026, 0.10, (0.80, 0.13, 0.10), "the red box"),
    "can": Thing("cylinder", (0.023, 0.036), 0.036, 0.16, (0.06, 0.15, 0.52), "the dark blue can"),
    "ball": Thing("sphere", (0.024,), 0.024, 0.06, (0.97, 0.86, 0.46), "the pale yellow ball"),
}


@dataclass(frozen=True)
class CameraPose:
    """The position, target and vertical field of view of a camera."""

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    fovy_deg: float

    @property
    def axes(self) -> tuple[Array, Array, Array]:
        """The unit vectors right, up and backward."""
        back = np.subtract(self.position, self.target)
        back = back / np.linalg.norm(back)
        right = np.cross((0.0, 0.0, 1.0), back)
        right = right / np.linalg.norm(right)
        return right, np.cross(back, right), back

    def ground(self, column: float, row: float, width: int, height: int, z: float) -> Array:
        """Return the point (x, y) at height z that a pixel shows; pixels count from the upper left corner."""
        scale = 2.0 * np.tan(np.radians(self.fovy_deg) / 2.0) / height
        right, up, back = self.axes
        ray = (column - width / 2.0) * scale * right + (height / 2.0 - row) * scale * up - back
        along = (z - self.position[2]) / ray[2]
        seen: Array = (np.asarray(self.position) + along * ray)[:2]
        return seen


FRONT_CAMERA = CameraPose((0.0, -0.50, 0.62), (0.0, -0.01, 0.0), 46.0)
SCENE_CAMERA = CameraPose((0.52, -0.72, 0.56), (0.03, 0.02, 0.04), 44.0)
CAMERAS = ("front", "wrist", "scene")


def mjcf(picture_size: int) -> str:
    """Return the model as XML; picture_size is the largest number of pixels per side."""
    return f"""
<mujoco model="table top">
  <compiler angle="radian"/>
  <option timestep="{PHYSICS_STEP_S}" integrator="implicitfast" cone="elliptic" impratio="10"/>
  <visual>
    <headlight active="0"/>
    <global offwidth="{picture_size}" offheight="{picture_size}"/>
    <quality shadowsize="1024" offsamples="4"/>
    <map znear="0.02" zfar="20"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.30 0.34 0.40" rgb2="0.10 0.11 0.13" width="64"
      height="384"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1="0.30 0.31 0.33" rgb2="0.26 0.27 0.29" width="128"
      height="128"/>
    <material name="floor" texture="tiles" texrepeat="10 10"/>
    <material name="table" rgba="0.50 0.47 0.43 1" specular="0.1" shininess="0.2"/>
    <material name="steel" rgba="0.62 0.64 0.67 1" specular="0.5" shininess="0.6"/>
    <material name="rubber" rgba="0.16 0.16 0.17 1" specular="0.1"/>
    <material name="tray" rgba="0.20 0.42 0.28 1" specular="0.1"/>
  </asset>
  <default>
    <position kp="900" dampratio="1"/>
    <default class="finger">
      <joint type="slide" range="{OPENING_M[0] / 2} {OPENING_M[1] / 2}" armature="0.02" damping="2"/>
      <geom type="box" size="0.009 0.005 0.035" pos="0 0.005 0.030" material="rubber" mass="0.03" condim="4"/>
    </default>
    <default class="thing">
      <geom condim="4" priority="1" friction="0.8 0.01 0.001" solref="0.006 1"/>
    </default>
  </default>
  <worldbody>
    <light name="lamp" pos="-0.15 -0.35 1.6" dir="0.08 0.22 -1" type="directional" castshadow="true"/>
    <light name="fill" pos="0 0 1.6" dir="-0.3 0.5 -0.8" type="directional" castshadow="false"/>
    {_camera("front", FRONT_CAMERA)}
    {_camera("scene", SCENE_CAMERA)}
    <geom name="floor" type="plane" size="6 6 0.1" pos="0 0 {FLOOR_Z_M}" material="floor"/>
    <geom name="table" type="box" size="{TABLE_HALF_M[0]} {TABLE_HALF_M[1]} 0.02" pos="0 0 -0.02" material="table"/>
    {_tray()}
    <body name="gripper" pos="0 0 0" gravcomp="1">
      <joint name="x" type="slide" axis="1 0 0" armature="1"/>
      <joint name="y" type="slide" axis="0 1 0" armature="1"/>
      <joint name="z" type="slide" axis="0 0 1" armature="1"/>
      <joint name="yaw" type="hinge" axis="0 0 1" armature="0.02"/>
      <geom type="box" size="0.022 0.060 0.014" pos="0 0 0.080" material="steel" mass="0.3"/>
      <geom type="cylinder" size="0.020 0.06" pos="0 0 0.150" material="steel" mass="0.2" contype="0" conaffinity="0"/>
      <camera name="wrist" pos="0.055 0 0.125" xyaxes="0 1 0 -0.92 0 0.39" fovy="70"/>
      <body name="left" gravcomp="1">
        <joint name="left" class="finger" axis="0 1 0"/>
        <geom name="left" class="finger"/>
      </body>
      <body name="right" gravcomp="1">
        <joint name="right" class="finger" axis="0 -1 0"/>
        <geom name="right" class="finger" pos="0 -0.005 0.030"/>
      </body>
    </body>
    {"".join(_thing(name, at) for name, at in zip(THINGS, PARKED_M, strict=True))}
  </worldbody>
  <actuator>
    <position joint="x" kp="1500"/>
    <position joint="y" kp="1500"/>
    <position joint="z" kp="1500"/>
    <position joint="yaw" kp="12"/>
    <position joint="left" kp="400" forcerange="-4 4"/>
    <position joint="right" kp="400" forcerange="-4 4"/>
  </actuator>
</mujoco>"""


def _camera(name: str, pose: CameraPose) -> str:
    right, up, _ = pose.axes
    numbers = " ".join(f"{part:.9f}" for part in (*right, *up))
    return (
        f'<camera name="{name}" pos="{" ".join(map(str, pose.position))}" xyaxes="{numbers}" fovy="{pose.fovy_deg}"/>'
    )


def _tray() -> str:
    x, y = TRAY_AT_M
    half, wall, thick = TRAY_HALF_M, TRAY_WALL_M / 2.0, 0.004
    parts = [(x, y, 0.001, half, half, 0.001)]
    parts += [(x + side * half, y, wall, thick, half + thick, wall) for side in (-1, 1)]
    parts += [(x, y + side * half, wall, half, thick, wall) for side in (-1, 1)]
    return "".join(
        f'<geom type="box" pos="{a:.4f} {b:.4f} {c:.4f}" size="{d:.4f} {e:.4f} {f:.4f}" material="tray"/>'
        for a, b, c, d, e, f in parts
    )


def _thing(name: str, at: tuple[float, float]) -> str:
    thing = THINGS[name]
    red, green, blue = thing.color
    return (
        f'<body name="{name}" pos="{at[0]} {at[1]} {FLOOR_Z_M + thing.height}"><freejoint name="{name}"/>'
        f'<geom name="{name}" class="thing" type="{thing.shape}" size="{" ".join(map(str, thing.size))}" '
        f'mass="{thing.mass}" rgba="{red} {green} {blue} 1"/></body>'
    )
