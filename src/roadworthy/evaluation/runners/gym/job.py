"""A job: the settings of episodes of one policy in one environment."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from roadworthy.checks import at_least
from roadworthy.config import plain
from roadworthy.errors import ConfigError

Choice = Literal["first", "random", "failed", "worst"]
RENDER = "render"  # the camera that shows the pictures of render()


@dataclass(frozen=True)
class VideoConfig:
    """Settings of videos. Their number and length have no defaults, so that nobody records thousands by accident."""

    episodes: int
    # Largest number of episodes with videos; each has one file per camera.
    max_steps: int
    # Largest number of steps of an episode that are recorded.
    choose: Choice | tuple[int, ...] = "first"
    # Which episodes: the first, a random sample, those without success, those with the lowest outcome, or numbers of
    # episodes. For "failed" and "worst" all episodes are recorded, and most videos are deleted.
    cameras: tuple[str, ...] | Literal["observed"] | None = None
    # Names of observations that are pictures, and "render" for the pictures of the env's render(); by default all.
    # "observed" means all observations that are pictures, or render() if there are none.
    encoders: int = 32
    # Largest number of files that are written at the same time; the record lists videos that would exceed it.
    speed_up: float = 1.0
    # Playback speed relative to the frame rate of the env.
    outcome: str = "success"
    # Outcome that "failed" and "worst" compare; higher is better.

    def __post_init__(self) -> None:
        at_least(self, 1, "episodes", "max_steps", "encoders")
        if not 0.0 < self.speed_up <= 100.0:
            raise ConfigError(f"speed_up is {self.speed_up}, expected above 0 and up to 100")

    @property
    def has_render(self) -> bool:
        """Whether pictures of render() may be recorded."""
        return self.cameras in (None, "observed") or RENDER in self.cameras


@dataclass(frozen=True)
class SweepConfig:
    """Factors that vary between episodes."""

    factors: dict[str, Any]
    # Tables as in a factors file: {light = {type = "continuous", range = [0, 2000]}, ...}.
    design: Literal["sobol", "random", "grid"] = "sobol"
    # How values are chosen: "sobol" covers the space evenly, "random" draws, "grid" takes every combination.
    levels: int = 5
    # Number of values of a continuous factor on a grid.

    def __post_init__(self) -> None:
        at_least(self, 2, "levels")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One entry of a jobs file."""

    name: str
    # Name of its folder, unique in the file.
    environment: str
    # "gym:Ant-v5", "drive:town" or "drive:FILE.pack", "module:make_env", or an entry point `roadworthy.environments`.
    arguments: dict[str, Any] = field(default_factory=dict)
    # Arguments of the function or class that makes the environment.
    policy: str
    # "random", "zero", "module:Class", "file.py:Class", a checkpoint, "expert:NAME", "ws://HOST:PORT", or an entry
    # point `roadworthy.policies`.
    policy_config: dict[str, Any] = field(default_factory=dict)
    # Arguments of the policy's class.
    episodes: int | None = None
    # Number of episodes, over all envs ...
    steps: int | None = None
    # ... or number of steps of each env; episodes that run at the end are cut off and recorded as such.
    envs: int = 1
    # Number of environments that run side by side.
    rebuilds: int = 1
    # Number of times that the environments are built: `episodes` are divided among the rebuilds as evenly as possible,
    # and each of them makes `steps` steps.
    max_steps: int | None = None
    # Largest number of steps of an episode; by default the environment alone decides.
    seed: int | None = None
    # Seed of all draws. Jobs with the same seed run the same episodes, as a comparison of two policies needs. By
    # default it derives from the file's seed and the job's name.
    file_seed: int = 0
    # Seed that the jobs of a file share, from its [defaults]; each job derives its own from it and its name.
    instruction: str | None = None
    # Instruction for the policy; by default `info["instruction"]` of the environment.
    task: str | None = None
    # Name of the task, for records; by default from the environment's metadata.
    embodiment: str | None = None
    # Name of the robot, for records; by default from the arguments or the environment's metadata.
    metrics: tuple[str, ...] = ()
    # Metrics, each "module:function" or "file.py:function": called with an ended episode, returns a number or None.
    failures: int = 3
    # Number of failed episodes in a row after which the job has failed.
    time_limit_s: float | None = 600.0
    # Seconds that an env may spend in one episode, in reset and all steps together; then its process is ended, the
    # episode has failed, and the job continues in another process. 0 for no limit and no separate process.
    videos: VideoConfig | None = None
    # Settings of videos; by default there are none.
    sweep: SweepConfig | None = None
    # Factors that vary between episodes.
    skip: bool = False
    # Whether to leave it out.

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("name is empty")
        at_least(self, 1, "episodes", "steps", "envs", "rebuilds", "max_steps", "failures")
        if self.time_limit_s is not None and not self.time_limit_s >= 0.0:
            raise ConfigError(f"time_limit_s is {self.time_limit_s}, expected seconds, or 0 for no limit")
        if self.time_limit_s == 0.0:
            object.__setattr__(self, "time_limit_s", None)
        at_least(self, 0, "seed", "file_seed")
        is_grid = self.sweep is not None and self.sweep.design == "grid"
        if (self.episodes is None) == (self.steps is None) and not (is_grid and self.steps is None):
            given = "both episodes and steps are" if self.episodes is not None else "neither episodes nor steps is"
            raise ConfigError(f"{given} given; set one of them")
        if self.episodes is not None and self.episodes < self.rebuilds:
            raise ConfigError(
                f"{self.episodes} episodes can't be divided among {self.rebuilds} rebuilds; give "
                "at least one episode for each rebuild, or lower rebuilds"
            )
        if self.sweep is not None and self.steps is not None:
            raise ConfigError("a sweep over factors needs episodes instead of steps")

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide results, as plain values."""
        values: dict[str, Any] = plain(self)
        for name in ("videos", "skip", "task", "embodiment", "failures", "time_limit_s"):
            del values[name]
        if self.seed is not None:
            del values["file_seed"]
        if self.steps is None:
            del values["envs"]  # the episodes do not depend on it
        return values

    @property
    def digest(self) -> str:
        """A hash that is equal for jobs with the same episodes."""
        return hashlib.sha256(json.dumps(self.deciding(), sort_keys=True, default=str).encode()).hexdigest()


_EVERY, _MOST_ENCODERS = 1_000_000, 256


def with_camera_videos(job: Job) -> Job:
    """Return a job that records its cameras in every episode, unless it has settings of videos already."""
    if job.videos is not None:
        return job
    encoders = min(_MOST_ENCODERS, max(VideoConfig.encoders, 4 * job.envs))
    return replace(
        job, videos=VideoConfig(job.episodes or _EVERY, max_steps=_EVERY, cameras="observed", encoders=encoders)
    )
