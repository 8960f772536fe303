"""The exceptions that Roadworthy raises, as one tree. Each class names the exit code that the command line ends with.

RoadworthyError             1
├── UsageError              2   what was asked for makes no sense
│   └── ConfigError         2   a config file or --set is wrong
├── ScenarioError           3   a scenario is unsound
│   └── PackError           3   a pack file is damaged, foreign or too new
├── CheckpointError         3   a checkpoint is damaged, foreign or does not fit
├── RecordError             3   a file of a run folder is damaged, foreign or too new
├── GenerationError         4   no scenario with the properties asked for was found
├── DeviceError             5   a GPU, its driver, its libraries or its memory is missing
└── MissingExtraError       5   an optional dependency is not installed
"""

from __future__ import annotations


class DeprecatedNameWarning(FutureWarning):
    """A name that still works but will be removed; the message names the one to use."""


class RoadworthyError(Exception):
    """Any error that a user can cause and mend. Its message says what was given, what is allowed and what to do."""

    exit_code = 1


class UsageError(RoadworthyError):
    """What was asked for makes no sense."""

    exit_code = 2


class ConfigError(UsageError):
    """A config file, or a key set on the command line, is wrong."""


class ScenarioError(RoadworthyError):
    """A scenario's data don't fit together."""

    exit_code = 3


class PackError(ScenarioError):
    """A pack file can't be read: damaged, truncated, foreign or of a newer version."""


class CheckpointError(RoadworthyError):
    """A checkpoint can't be read, or does not fit what it is to be loaded into."""

    exit_code = 3


class RecordError(RoadworthyError):
    """A file of a run folder can't be read: damaged, cut off, foreign or of a newer version."""

    exit_code = 3


class GenerationError(RoadworthyError):
    """The generator found no scenario with the properties asked for."""

    exit_code = 4


class DeviceError(RoadworthyError):
    """A GPU was asked for, and it, its driver, a library or enough of its memory is missing."""

    exit_code = 5


class MissingExtraError(RoadworthyError):
    """An optional dependency is not installed.

    Args:
        reason: what needs which dependency.
        extra: the extra of this package that installs it.
    """

    exit_code = 5

    def __init__(self, reason: str, extra: str) -> None:
        super().__init__(f"{reason}; install it with: pip install 'roadworthy[{extra}]'")
        self.extra = extra
