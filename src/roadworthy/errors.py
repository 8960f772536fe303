"""Exceptions that Roadworthy raises, as one tree. Each class has the exit code that the command line ends with.

RoadworthyError             1
├── UsageError              2   the request makes no sense
│   └── ConfigError         2   a config file or --set is wrong
├── ScenarioError           3   the data of a scenario is inconsistent
│   └── PackError           3   a pack file is damaged, foreign or too new
├── CheckpointError         3   a checkpoint is damaged, foreign or does not fit
├── RecordError             3   a file of a run folder is damaged, foreign or too new
├── GenerationError         4   the generator found no scenario with the requested properties
├── DeviceError             5   a GPU, its driver, its libraries or its memory is missing
└── MissingExtraError       5   an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Mapping

# The extra that installs each optional dependency, by the name under which the dependency is imported.
EXTRAS: Mapping[str, str] = {
    **dict.fromkeys(("numba", "llvmlite", "torch", "safetensors", "av", "PIL", "shapely", "threadpoolctl"), "drive"),
    **dict.fromkeys(("numba_cuda", "triton"), "cuda"),
    **dict.fromkeys(("gymnasium", "pettingzoo"), "gym"),
    **dict.fromkeys(("mujoco", "imageio"), "robot"),
    **dict.fromkeys(("websockets", "msgpack"), "remote"),
    "sbi": "sensitivity",
    "ray": "ray",
    "wandb": "wandb",
    "tensorboard": "tensorboard",
    **dict.fromkeys(("starlette", "uvicorn"), "view"),
    "rerun": "rerun",
}


class DeprecatedNameWarning(FutureWarning):
    """A name that still works but will be removed; the message names the one to use."""


class RoadworthyError(Exception):
    """An error that a user can cause and fix. Its message says what was given, what is allowed and what to do."""

    exit_code = 1


class UsageError(RoadworthyError):
    """The request makes no sense."""

    exit_code = 2


class ConfigError(UsageError):
    """A config file, or a key set on the command line, is wrong."""


class ScenarioError(RoadworthyError):
    """The data of a scenario is inconsistent."""

    exit_code = 3


class PackError(ScenarioError):
    """A pack file can't be read: damaged, truncated, foreign or of a newer version."""


class CheckpointError(RoadworthyError):
    """A checkpoint can't be read, or does not fit the model that loads it."""

    exit_code = 3


class RecordError(RoadworthyError):
    """A file of a run folder can't be read: damaged, truncated, foreign or of a newer version."""

    exit_code = 3


class GenerationError(RoadworthyError):
    """The generator found no scenario with the requested properties."""

    exit_code = 4


class DeviceError(RoadworthyError):
    """A GPU was requested, but the GPU, its driver, a library or enough of its memory is missing."""

    exit_code = 5


class MissingExtraError(RoadworthyError):
    """An optional dependency is not installed.

    Args:
        reason: What needs which dependency.
        extra: The extra of this package that installs the dependency.
    """

    exit_code = 5

    def __init__(self, reason: str, extra: str) -> None:
        super().__init__(f"{reason}; install it with: pip install 'roadworthy[{extra}]'")
        self.extra = extra


def missing_extra(error: ModuleNotFoundError, user: str) -> MissingExtraError | None:
    """Return the error for a missing optional dependency; None if the module is not one.

    Args:
        error: What an import raised.
        user: The verb or function that needs the module, for the message.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return MissingExtraError(f"{user} needs {module}, which is not installed", EXTRAS[module])


def summary_of(error: BaseException) -> str:
    """Return an error in one line: the message of ours, the type and message of others."""
    return str(error) if isinstance(error, RoadworthyError) else f"{type(error).__name__}: {error}"
