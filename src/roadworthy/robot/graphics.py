"""Pictures of MuJoCo scenes on machines without a display, and what to install where none can be drawn."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import DeviceError, UsageError

PACKAGES = ("libegl1", "libgl1-mesa-dri")  # Debian's names: the library, and a driver that draws on the CPU
INSTALL = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
MOST_SHAPES = 200  # in a scene


def import_mujoco() -> ModuleType:
    """MuJoCo."""
    try:
        import mujoco
    except ImportError as error:
        raise UsageError(f"MuJoCo can't be imported ({error}); pip install 'roadworthy[robot]'") from error
    return mujoco


def _surface_class() -> Any:
    """Return the class of what to draw on: EGL's without a display, unless MUJOCO_GL asks for something else.

    MuJoCo chooses when it is imported: whatever MUJOCO_GL says later comes too late for `mujoco.GLContext`.
    """
    if sys.platform == "linux" and not os.environ.get("DISPLAY") and os.environ.get("MUJOCO_GL", "") in ("", "egl"):
        from mujoco.egl import GLContext

        return GLContext
    return import_mujoco().GLContext


class Studio:
    """Draws square pictures of models that were compiled from one text.

    Envs share it: what a graphics library needs takes a third of a second to set up, and memory.
    """

    def __init__(self, xml: str, size: int) -> None:
        mujoco = self._mujoco = import_mujoco()
        try:
            self._surface = _surface_class()(size, size)
            self._surface.make_current()
            self._drawing = mujoco.MjrContext(mujoco.MjModel.from_xml_string(xml), mujoco.mjtFontScale.mjFONTSCALE_100)
        except Exception as error:  # each of OpenGL's bindings fails in its own way, some with AttributeError
            raise DeviceError(
                f"MuJoCo can't draw with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r} "
                f"({type(error).__name__}: {error}); install a renderer that needs no display ({INSTALL}) and set "
                "MUJOCO_GL=egl"
            ) from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._drawing)
        self._frame = mujoco.MjrRect(0, 0, size, size)
        self._options = mujoco.MjvOption()
        self._size = size

    def draw(self, model: Any, data: Any, camera: str) -> NDArray[np.uint8]:
        """(size, size, 3) what a camera of the model sees."""
        mujoco = self._mujoco
        scene = mujoco.MjvScene(model, MOST_SHAPES)
        view = mujoco.MjvCamera()
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera(camera).id
        mujoco.mjv_updateScene(model, data, self._options, None, view, mujoco.mjtCatBit.mjCAT_ALL, scene)
        self._surface.make_current()
        mujoco.mjr_render(self._frame, scene, self._drawing)
        picture = np.empty((self._size, self._size, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, self._frame, self._drawing)
        return picture[::-1]


@cache
def studio(xml: str, size: int) -> Studio:
    """The process's studio for a model and a size of pictures."""
    return Studio(xml, size)
