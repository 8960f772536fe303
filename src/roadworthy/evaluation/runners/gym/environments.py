"""Make the environments of jobs: Gymnasium ids, driving, functions, and entry points of packages."""

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
    """A function or class that makes an environment, and the arguments that it takes in addition to the job's."""

    make: Callable[..., Any]
    takes_count: bool
    takes_render_mode: bool
    takes_cameras: bool = False


def open_envs(job: Job, factors: Mapping[str, Any] | None = None, *, renders: bool = True) -> EnvBatch:
    """Make the envs of a job. A function that returns a vector env is called once, others are called for each env.

    Args:
        job: The job.
        factors: Arguments in addition to the job's own.
        renders: Whether envs get a render mode, if the job has videos of render().
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
                "set the same number in both, or give it a parameter `num_envs`"
            )
        return vector_batch(made)
    if not isinstance(made, gymnasium.Env):
        raise UsageError(
            f"environment {job.environment!r} is a {type(made).__name__}, expected a gymnasium.Env or a VectorEnv"
        )
    first = [made]  # is used before others are made

    def another(more: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
        return first.pop() if first and not more else maker.make(**{**arguments, **more})

    return SingleEnvs(another, job.envs)


def prefer_egl() -> None:
    """Let MuJoCo render without a display if there is none, unless the user has set a renderer.

    It chooses its renderer at import; without a window system, its default ends the process.
    """
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform == "linux" and not has_display and "MUJOCO_GL" not in os.environ:
        os.environ["MUJOCO_GL"] = "egl"
        _chosen.append("egl")


def unprefer_egl() -> None:
    """Undo `prefer_egl`: MuJoCo can't be imported with EGL where EGL does not work."""
    if _chosen:
        _chosen.clear()
        os.environ.pop("MUJOCO_GL", None)


def _maker(job: Job) -> _Maker:
    kind, _, name = job.environment.partition(":")
    if kind == "gym":
        return _gymnasium(name, job)
    if kind == "drive":
        from roadworthy.evaluation.runners.gym.drive_env import make_drive  # imports the simulator

        return _Maker(partial(make_drive, name), False, False)
    if ":" not in job.environment and job.environment in gymnasium.registry:
        return _gymnasium(job.environment, job)
    make = plugins.load(GROUP, plugins.with_colon(job.environment), "environment")
    return _Maker(make, *(_accepts(make, name) for name in ("num_envs", "render_mode", "enable_cameras")))


def _gymnasium(name: str, job: Job) -> _Maker:
    """Return `gymnasium.make`, or `make_vec` if the arguments have a vectorization mode."""
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise UsageError(f"environment gym:{name} is unknown to Gymnasium: {error}") from error
    is_vector = "vectorization_mode" in job.arguments
    return _Maker(partial(gymnasium.make_vec if is_vector else gymnasium.make, name), is_vector, True)


def _accepts(make: Callable[..., Any], name: str) -> bool:
    """Return whether a function has a parameter with this name."""
    try:
        return name in inspect.signature(make).parameters
    except (TypeError, ValueError):  # unknown for some classes that are not written in Python
        return False
