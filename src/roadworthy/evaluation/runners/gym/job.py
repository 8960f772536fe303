"""A job: episodes of one policy in one environment, and everything that decides them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from roadworthy.config import plain
from roadworthy.errors import ConfigError

Choice = Literal["first", "random", "failed", "worst"]
RENDER = "render"  # the camera that shows what render() draws


@dataclass(frozen=True)
class VideoConfig:
    """Videos of some episodes. How many and how long has no default: a thousand films should surprise nobody."""

    episodes: int
    # At most so many episodes get videos, one file per camera each.
    max_steps: int
    # At most so many steps of an episode are shown.
    choose: Choice | tuple[int, ...] = "first"
    # Which: the first, a random sample, those without success, those with the lowest outcome, or numbers of episodes.
    # For `failed` and `worst` all are filmed and most are thrown away.
    cameras: tuple[str, ...] | Literal["observed"] | None = None
    # Names of observations that are pictures, and `render` for what the env's render() shows; none: all there are.
    # "observed": all observations that are pictures, or render() where there are none.
    encoders: int = 32
    # At most so many files are written at the same time; what would need more is not filmed, and the record says so.
    speed_up: float = 1.0
    # How much faster than the env's own frame rate it plays.
    outcome: str = "success"
    # By which outcome `failed` and `worst` judge; the higher the better.

    def __post_init__(self) -> None:
        for name in ("episodes", "max_steps", "encoders"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
        if not 0.0 < self.speed_up <= 100.0:
            raise ConfigError(f"speed_up is {self.speed_up}, expected above 0 and up to 100")

    @property
    def has_render(self) -> bool:
        """Whether what render() draws may be filmed."""
        return self.cameras in (None, "observed") or RENDER in self.cameras


@dataclass(frozen=True)
class SweepConfig:
    """Factors that are varied from episode to episode."""

    factors: dict[str, Any]
    # As in a factors file: {light = {type = "continuous", range = [0, 2000]}, ...}.
    design: Literal["sobol", "random", "grid"] = "sobol"
    # How values are chosen: evenly by a scrambled Sobol sequence, at random, or every combination on a grid.
    levels: int = 5
    # How many values a continuous factor takes on a grid.

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise ConfigError(f"levels is {self.levels}, expected at least 2")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One entry of a jobs file."""

    name: str
    # Names its folder; unique in the file.
    environment: str
    # "gym:Ant-v5", "drive:town" or "drive:FILE.pack", "module:make_env", or a name that a package declares.
    arguments: dict[str, Any] = field(default_factory=dict)
    # Handed to whatever makes the environment.
    policy: str
    # "random", "zero", "module:Class", a checkpoint or an expert of driving, "ws://HOST:PORT", or a declared name.
    policy_config: dict[str, Any] = field(default_factory=dict)
    # Handed to the policy's class.
    episodes: int | None = None
    # How many episodes in all, however many envs run side by side ...
    steps: int | None = None
    # ... or how many steps every env makes; what is under way then is cut off and recorded so.
    envs: int = 1
    # How many run side by side.
    rebuilds: int = 1
    # How many times the environments are built: `episodes` are shared out over the rebuilds as evenly as possible, and
    # `steps` are made in each of them.
    max_steps: int | None = None
    # An episode ends after so many steps at the latest; none: the environment alone decides.
    seed: int | None = None
    # The seeds of all episodes derive from this number alone: jobs that give the same one run the same episodes, as two
    # policies that are compared do. None: they derive from the file's seed and the job's name, and differ by job.
    file_seed: int = 0
    # The seed that the jobs of a file share, from its [defaults]; each job derives its own from this and its name.
    instruction: str | None = None
    # What the policy is told to do; none: what the environment says in `info["instruction"]`.
    task: str | None = None
    # What it is about, for records; none: what the environment's metadata say.
    embodiment: str | None = None
    # Which robot, for records; none: what the arguments or the environment's metadata say.
    metrics: tuple[str, ...] = ()
    # "module:function" each: called with every ended episode (jobs.episode.Ended), gives a number or None.
    failures: int = 3
    # The job fails when so many of its episodes in a row could not be carried out.
    time_limit_s: float | None = 600.0
    # An env that spends longer in one episode, in reset and all steps together, is ended with its process: the episode
    # has failed, and the job goes on in another process. None (0 in a file): no limit, and no process of its own.
    videos: VideoConfig | None = None
    # None: no videos.
    sweep: SweepConfig | None = None
    # Factors that vary between episodes.
    skip: bool = False
    # Leave it out.

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("name is empty")
        for name in ("episodes", "steps", "envs", "rebuilds", "max_steps", "failures"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}, expected at least 1")
        if self.time_limit_s is not None and not self.time_limit_s >= 0.0:
            raise ConfigError(f"time_limit_s is {self.time_limit_s}, expected seconds, or 0 for no limit")
        if self.time_limit_s == 0.0:
            object.__setattr__(self, "time_limit_s", None)
        for name in ("seed", "file_seed"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"{name} is {value}, expected at least 0")
        is_grid = self.sweep is not None and self.sweep.design == "grid"
        if (self.episodes is None) == (self.steps is None) and not (is_grid and self.steps is None):
            told = "both are given" if self.episodes is not None else "both are missing"
            raise ConfigError(f"episodes or steps says how long job {self.name!r} runs, and {told}; give one of them")
        if self.episodes is not None and self.episodes < self.rebuilds:
            raise ConfigError(
                f"job {self.name!r}: {self.episodes} episodes can't be shared out over {self.rebuilds} rebuilds; give "
                "at least one episode for each rebuild, or lower rebuilds"
            )
        if self.sweep is not None and self.steps is not None:
            raise ConfigError(f"job {self.name!r} sweeps over factors, so it needs episodes instead of steps")

    def deciding(self) -> dict[str, Any]:
        """All that decides what happens in the episodes, as plain values; videos and names don't."""
        told: dict[str, Any] = plain(self)
        for name in ("videos", "skip", "task", "embodiment", "failures", "time_limit_s"):
            del told[name]
        if self.seed is not None:
            del told["file_seed"]
        if self.steps is None:
            del told["envs"]  # the episodes are the same however many run side by side
        return told

    @property
    def digest(self) -> str:
        """Equal for jobs that owe the same episodes."""
        return hashlib.sha256(json.dumps(self.deciding(), sort_keys=True, default=str).encode()).hexdigest()


_EVERY, _MOST_ENCODERS = 1_000_000, 256


def with_camera_videos(job: Job) -> Job:
    """Return a job that records its cameras in every episode, whole; one that has videos already is returned as it is.

    Videos have no part in a job's digest: it is the same job, with the same episodes.
    """
    if job.videos is not None:
        return job
    encoders = min(_MOST_ENCODERS, max(VideoConfig.encoders, 4 * job.envs))
    return replace(
        job, videos=VideoConfig(job.episodes or _EVERY, max_steps=_EVERY, cameras="observed", encoders=encoders)
    )
