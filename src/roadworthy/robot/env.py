"""The table-top task as a Gymnasium environment: pick an object up and put it in the tray."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.robot import scene
from roadworthy.robot.factors import Factors
from roadworthy.robot.graphics import import_mujoco, renderer

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise UsageError(f"can't import Gymnasium 1.1 or later ({error}); pip install 'roadworthy[gym]'") from error

mujoco = import_mujoco()

STEP_S = 0.05
SPEED_LIMITS = np.array([0.45, 0.45, 0.45, 3.0, 0.20]) * STEP_S  # per step: m, m, m, rad, m
SENSOR_NOISE = 3.5  # standard deviation of pixel noise, in levels of 255
MOVED_M, LIFTED_M, FALLEN_M = 0.01, 0.04, -0.10
RESTING_MPS = 0.05
JOINT_LIMIT = 4.0  # bound of joint positions in observations, in meters or radians

Observation = dict[str, NDArray[Any]]
Picture = NDArray[np.uint8]


class TableTopEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """A gripper over a table, an object on it, and a tray.

    An action is a target: x, y, z of the midpoint between the fingertips, yaw and opening. Each is scaled from its
    range (REACH_LOW_M to REACH_HIGH_M, -REACH_YAW_RAD to REACH_YAW_RAD, OPENING_M) to -1 to 1. The gripper moves to
    the target at a limited speed.

    An observation has `gripper`, the current position in the order of the action, in meters and radians, and
    `first_picture`, the front camera at the start of the episode, which is drawn only once because drawing is slow.
    Each camera in `cameras` adds a picture of every step under its name.

    The episode ends with reward 1 when the object lies in the tray and the gripper does not touch it, and with reward
    0 when the object has fallen off the table. `info` has `factors` and `instruction` at reset, and `outcomes` at the
    end of the episode.
    """

    # `factors` are the names that reset accepts in options={"factors": {...}}.
    metadata = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": ["rgb_array"],
        "render_fps": round(1.0 / STEP_S),
        "factors": tuple(asdict(Factors())),
        "task": "pick an object up and put it in the tray",
        "embodiment": "gantry with a parallel gripper",
    }

    def __init__(
        self,
        *,
        max_steps: int = 140,
        picture_size: int = 128,
        cameras: Sequence[str] = (),
        enable_cameras: bool = False,
        render_mode: str | None = None,
        render_size: int = 256,
        **factors: Any,
    ) -> None:
        """Build the scene.

        max_steps: Steps after which an episode is truncated.
        picture_size: Pixels per side of the pictures in observations.
        cameras: Cameras whose pictures are observed in every step; see CAMERAS.
        enable_cameras: Observe the front and the wrist camera if `cameras` is empty.
        render_size: Pixels per side of the pictures that `render` returns.
        factors: Values of Factors for all episodes; `reset` can replace them for one episode.
        """
        unknown = [name for name in cameras if name not in scene.CAMERAS]
        if unknown:
            raise UsageError(f"camera {unknown[0]!r} is unknown; known: {', '.join(scene.CAMERAS)}")
        if render_mode not in (None, "rgb_array"):
            raise UsageError(f"render_mode is {render_mode!r}, expected 'rgb_array' or None")
        self.factors = Factors().changed(factors)
        self.render_mode = render_mode
        self.max_steps = max_steps
        self.cameras = tuple(cameras) or (("front", "wrist") if enable_cameras else ())
        self.metadata = {**self.metadata, "cameras": self.cameras}
        self._picture_size, self._render_size = picture_size, render_size
        self._xml = scene.mjcf(max(picture_size, render_size))
        self._model = mujoco.MjModel.from_xml_string(self._xml)
        self._data = mujoco.MjData(self._model)
        self._nominal_camera = self._model.camera("front").pos.copy(), self._model.camera("front").quat.copy()
        picture = spaces.Box(0, 255, (picture_size, picture_size, 3), np.uint8)
        observed: dict[str, spaces.Space[Any]] = {
            "gripper": spaces.Box(-JOINT_LIMIT, JOINT_LIMIT, (5,), np.float32),
            "first_picture": picture,
            **dict.fromkeys(self.cameras, picture),
        }
        self.observation_space = spaces.Dict(observed)  # type: ignore[assignment]  # Gymnasium declares Space
        self.action_space = spaces.Box(-1.0, 1.0, (5,), np.float32)
        self._low = np.array([*scene.REACH_LOW_M, -scene.REACH_YAW_RAD, scene.OPENING_M[0]])
        self._high = np.array([*scene.REACH_HIGH_M, scene.REACH_YAW_RAD, scene.OPENING_M[1]])
        self._fingers = {self._model.geom(name).id for name in ("left", "right")}
        self._episode = self.factors

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; options={"factors": {...}} replaces factors for this episode."""
        super().reset(seed=seed)
        given: Mapping[str, Any] = (options or {}).get("factors", {})
        self._episode = self.factors.changed(given).drawn(self.np_random)
        self._step_count = 0
        self._is_touched = self._is_lifted = self._has_moved = False
        mujoco.mj_resetData(self._model, self._data)
        self._place_everything()
        self._target = np.array([*scene.HOME_M, 0.0, scene.OPENING_M[1]])
        self._data.qpos[:6] = self._data.ctrl[:] = self._joints(self._target)
        mujoco.mj_forward(self._model, self._data)
        for _ in range(40):  # until the object rests
            mujoco.mj_step(self._model, self._data)
        self._start = self._object_position().copy()
        self._first_picture = self._photograph("front")
        info = {"factors": asdict(self._episode), "instruction": self.instruction}
        return self._observe(), info

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move the target toward the action, and simulate one step."""
        requested = np.asarray(action, np.float64)
        if requested.shape != (5,) or not np.isfinite(requested).all():
            raise UsageError(f"the action is {action!r}, expected 5 finite numbers from -1 to 1")
        goal = self._low + (np.clip(requested, -1.0, 1.0) + 1.0) / 2.0 * (self._high - self._low)
        self._target += np.clip(goal - self._target, -SPEED_LIMITS, SPEED_LIMITS)
        self._data.ctrl[:] = self._joints(self._target)
        mujoco.mj_step(self._model, self._data, round(STEP_S / scene.PHYSICS_STEP_S))
        self._step_count += 1
        position = self._object_position()
        is_held = self._is_held()
        self._is_touched |= is_held
        self._is_lifted |= bool(position[2] - self._start[2] > LIFTED_M)
        self._has_moved |= bool(np.linalg.norm(position - self._start) > MOVED_M)
        is_solved = not is_held and self._lies_in_tray(position)
        has_fallen = bool(position[2] < FALLEN_M)
        terminated = is_solved or has_fallen
        truncated = not terminated and self._step_count >= self.max_steps
        info: dict[str, Any] = {}
        if terminated or truncated:
            info["outcomes"] = {
                "success": is_solved,
                "touched": self._is_touched,
                "moved": self._has_moved,
                "lifted": self._is_lifted,
                "fell": has_fallen,
                "distance_m": float(np.linalg.norm(position[:2] - scene.TRAY_AT_M)),
                "time_s": self._step_count * STEP_S,
            }
        return self._observe(), float(is_solved), terminated, truncated, info

    def render(self) -> Picture | None:
        """Return the view of the scene camera, in the light of the episode; None without render_mode."""
        return self._draw("scene", self._render_size) if self.render_mode == "rgb_array" else None

    @property
    def instruction(self) -> str:
        """The task of this episode in words."""
        return f"pick up {scene.THINGS[self._episode.object].words} and put it in the tray"

    def _place_everything(self) -> None:
        model, data, episode = self._model, self._data, self._episode
        for name, parked in zip(scene.THINGS, scene.PARKED_M, strict=True):
            thing = scene.THINGS[name]
            is_used = name == episode.object
            x, y = (episode.object_x, episode.object_y) if is_used else parked
            yaw = episode.object_yaw if is_used and episode.object_yaw is not None else 0.0
            z = thing.height + (0.001 if is_used else scene.FLOOR_Z_M)
            data.joint(name).qpos[:] = (x, y, z, math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0))
        model.geom(episode.object).friction[0] = episode.friction
        light = episode.light_intensity / scene.LAMP_NOMINAL * scene.DIFFUSE_NOMINAL
        model.light("lamp").diffuse[:] = light
        model.light("fill").diffuse[:] = light * scene.FILL_SHARE
        model.light("lamp").specular[:] = 0.3 * light
        position, quaternion = self._nominal_camera
        tilt = math.radians(episode.camera_tilt) / 2.0
        turned = np.zeros(4)
        mujoco.mju_mulQuat(turned, quaternion, np.array([math.cos(tilt), math.sin(tilt), 0.0, 0.0]))
        model.camera("front").pos[:] = position + np.array([episode.camera_shift, 0.0, 0.0])
        model.camera("front").quat[:] = turned

    def _joints(self, target: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions of the six joints for x, y, z, yaw and opening."""
        return np.array([*target[:4], target[4] / 2.0, target[4] / 2.0])

    def _observe(self) -> Observation:
        joints = self._data.qpos[:6]
        gripper = np.array([*joints[:4], joints[4] + joints[5]], np.float32)
        seen = {name: self._photograph(name) for name in self.cameras}
        return {"gripper": gripper, "first_picture": self._first_picture.copy(), **seen}

    def _photograph(self, camera: str) -> Picture:
        """Return the picture of a camera of the robot, with sensor noise."""
        picture = self._draw(camera, self._picture_size).astype(np.float32)
        picture += self.np_random.normal(0.0, SENSOR_NOISE, picture.shape).astype(np.float32)
        return np.clip(np.rint(picture), 0.0, 255.0).astype(np.uint8)

    def _draw(self, camera: str, size: int) -> Picture:
        return renderer(self._xml, size).draw(self._model, self._data, camera)

    def _object_position(self) -> NDArray[np.float64]:
        position: NDArray[np.float64] = self._data.body(self._episode.object).xpos
        return position

    def _is_held(self) -> bool:
        thing = self._model.geom(self._episode.object).id
        pairs = self._data.contact.geom
        return any(
            (int(one) == thing and int(other) in self._fingers) or (int(other) == thing and int(one) in self._fingers)
            for one, other in pairs
        )

    def _lies_in_tray(self, position: NDArray[np.float64]) -> bool:
        is_inside = bool((np.abs(position[:2] - scene.TRAY_AT_M) < scene.TRAY_HALF_M).all())
        speed = np.linalg.norm(self._data.joint(self._episode.object).qvel[:3])
        return is_inside and position[2] < 0.06 and bool(speed < RESTING_MPS)
