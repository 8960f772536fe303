"""Environments of jobs by name: Gymnasium ids, driving, anybody's function, and what packages declare."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from roadworthy import plugins
from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.batch import EnvBatch, SingleEnvs
from roadworthy.evaluation.runners.gym.job import Job

try:
    import gymnasium
    from gymnasium.vector import VectorEnv
except ImportError as error:
    raise UsageError(f"Gymnasium 1.1 or later can't be imported ({error}); pip install 'roadworthy[gym]'") from error

from roadworthy.evaluation.runners.gym.vector_batch import vector_batch

GROUP = "roadworthy.environments"
_chosen: list[str] = []  # the renderer that was set for MuJoCo here, if any


@dataclass(frozen=True)
class _Maker:
    """What makes an environment, and what it wants to be told beside the job's arguments."""

    make: Callable[..., Any]
    takes_count: bool
    takes_render_mode: bool
    takes_cameras: bool = False


def open_envs(job: Job, factors: Mapping[str, Any] | None = None, *, renders: bool = True) -> EnvBatch:
    """A job's envs; factors are arguments on top of the job's own.

    A function that gives a vector env is called once, one that gives a single env for each of them.
    renders: whether the envs are told to draw, where the job wants videos of what render() shows.
    """
    renders = renders and job.videos is not None and job.videos.has_render
    if renders:
        prefer_egl()
    maker = _maker(job)
    arguments = {**job.arguments, **(factors or {})}
    if renders and maker.takes_render_mode:
        arguments.setdefault("render_mode", "rgb_array")
    if job.videos is not None and job.videos.cameras == "observed" and maker.takes_cameras:
        arguments["enable_cameras"] = True
    if maker.takes_count:
        arguments["num_envs"] = job.envs
    made = maker.make(**arguments)
    if isinstance(made, VectorEnv):
        if made.num_envs != job.envs:
            made.close()
            raise UsageError(
                f"job {job.name!r} asks for {job.envs} envs, but {job.environment!r} made {made.num_envs}; "
                "say the same number in both, or let it take `num_envs`"
            )
        return vector_batch(made)
    if not isinstance(made, gymnasium.Env):
        raise UsageError(
            f"environment {job.environment!r} is a {type(made).__name__}, expected a gymnasium.Env or a VectorEnv"
        )
    first = [made]  # the one that is there already is used, then others are made like it

    def another(more: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
        return first.pop() if first and not more else maker.make(**{**arguments, **more})

    return SingleEnvs(another, job.envs)


def prefer_egl() -> None:
    """Let MuJoCo draw without a display, where there is none and nothing else was asked for.

    It chooses its renderer when it is imported, and by a window system whose absence ends the process.
    """
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform == "linux" and not has_display and "MUJOCO_GL" not in os.environ:
        os.environ["MUJOCO_GL"] = "egl"
        _chosen.append("egl")


def unprefer_egl() -> None:
    """Take back what `prefer_egl` set: MuJoCo can't even be imported where EGL is asked for and does not work."""
    if _chosen:
        _chosen.clear()
        os.environ.pop("MUJOCO_GL", None)


def _maker(job: Job) -> _Maker:
    kind, _, name = job.environment.partition(":")
    if kind == "gym":
        return _gymnasium(name, job)
    if kind == "drive":
        from roadworthy.evaluation.runners.gym.drive_env import make_drive  # the simulator takes a while to import

        return _Maker(partial(make_drive, name), False, False)
    if ":" not in job.environment and job.environment in gymnasium.registry:
        return _gymnasium(job.environment, job)
    make = plugins.load(GROUP, plugins.with_colon(job.environment), "environment")
    return _Maker(make, *(_accepts(make, name) for name in ("num_envs", "render_mode", "enable_cameras")))


def _gymnasium(name: str, job: Job) -> _Maker:
    """`gymnasium.make`, or `make_vec` where the arguments ask for a vectorization mode."""
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise UsageError(f"environment gym:{name} is unknown to Gymnasium: {error}") from error
    is_vector = "vectorization_mode" in job.arguments
    return _Maker(partial(gymnasium.make_vec if is_vector else gymnasium.make, name), is_vector, True)


def _accepts(make: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of this name."""
    try:
        return name in inspect.signature(make).parameters
    except (TypeError, ValueError):  # of some classes that are not written in Python nobody can tell
        return False
