"""Rendering of MuJoCo scenes on machines without a display."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import DeviceError, UsageError

PACKAGES = ("libegl1", "libgl1-mesa-dri")  # of Debian: the library, and a driver that renders on the CPU
INSTALL = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
MAX_GEOMS = 200  # in a scene


def import_mujoco() -> ModuleType:
    """Return the module `mujoco`."""
    try:
        import mujoco
    except ImportError as error:
        raise UsageError(f"can't import MuJoCo ({error}); pip install 'roadworthy[robot]'") from error
    return mujoco


def _context_class() -> Any:
    """Return the class of the OpenGL context: EGL without a display, unless MUJOCO_GL names another one.

    `mujoco.GLContext` can't be used for this: MuJoCo reads MUJOCO_GL only when it is imported.
    """
    if sys.platform == "linux" and not os.environ.get("DISPLAY") and os.environ.get("MUJOCO_GL", "") in ("", "egl"):
        from mujoco.egl import GLContext

        return GLContext
    return import_mujoco().GLContext


class Renderer:
    """Renders square pictures of models that were compiled from one XML text.

    Environments share a renderer, because an OpenGL context takes memory and a third of a second to create.
    """

    def __init__(self, xml: str, size: int) -> None:
        mujoco = self._mujoco = import_mujoco()
        try:
            self._context = _context_class()(size, size)
            self._context.make_current()
            self._mujoco_context = mujoco.MjrContext(
                mujoco.MjModel.from_xml_string(xml), mujoco.mjtFontScale.mjFONTSCALE_100
            )
        except Exception as error:  # OpenGL bindings raise various errors, even AttributeError
            raise DeviceError(
                f"MuJoCo can't render with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r} "
                f"({type(error).__name__}: {error}); install a renderer that needs no display ({INSTALL}) and set "
                "MUJOCO_GL=egl"
            ) from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._mujoco_context)
        self._frame = mujoco.MjrRect(0, 0, size, size)
        self._options = mujoco.MjvOption()
        self._size = size

    def draw(self, model: Any, data: Any, camera: str) -> NDArray[np.uint8]:
        """Return (size, size, 3) the view of a camera of the model."""
        mujoco = self._mujoco
        scene = mujoco.MjvScene(model, MAX_GEOMS)
        view = mujoco.MjvCamera()
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera(camera).id
        mujoco.mjv_updateScene(model, data, self._options, None, view, mujoco.mjtCatBit.mjCAT_ALL, scene)
        self._context.make_current()
        mujoco.mjr_render(self._frame, scene, self._mujoco_context)
        picture = np.empty((self._size, self._size, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, self._frame, self._mujoco_context)
        return picture[::-1]


@cache
def renderer(xml: str, size: int) -> Renderer:
    """Return the renderer of this process for a model and a size of pictures."""
    return Renderer(xml, size)
