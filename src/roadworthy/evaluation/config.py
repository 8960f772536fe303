"""Settings of an evaluator: the keys that every section `[eval.<name>]` may have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce
from operator import getitem
from typing import Any, ClassVar

from roadworthy.checks import above, at_least
from roadworthy.config import plain
from roadworthy.errors import ConfigError
from roadworthy.render.config import RenderConfig
from roadworthy.sim.config import EpisodeConfig, SimConfig
from roadworthy.sources import ScenarioSource, expanded, parse_source


class Busy(Enum):
    """What training does if an evaluation is due while the previous one is still running."""

    SKIP = "skip"  # skip this evaluation
    QUEUE = "queue"  # run it after the previous one
    WAIT = "wait"  # pause training until the previous one has ended


class Choice(Enum):
    """How an action is chosen from the distribution of a policy."""

    SAMPLE = "sample"  # drawn from the distribution
    GREEDY = "greedy"  # the most likely action


class Memory(Enum):
    """How long a policy keeps its memory."""

    EPISODE = "episode"  # as in training
    TRIAL = "trial"  # cleared after each trial: a control, which shows the gain over trials without memory


@dataclass(frozen=True)
class SummaryConfig:
    """The part of a section in `eval_summary`, one figure over all sections of a file."""

    weight: float | None = None
    # Weight of the section in the mean of `eval_summary`; 0 leaves the section out. By default 1, but 0 for a section
    # with a `policy` of its own.
    figure: str = "score"
    # Name of the figure of the section that enters `eval_summary`.

    def __post_init__(self) -> None:
        at_least(self, 0, "weight")


# Keys that decide when and where episodes run and how they are shown, but not what happens in them.
EXECUTION_KEYS = frozenset(
    (
        "enabled interval at_start busy checkpoint engine worlds workers time_limit_s memory_limit_gb retries "
        "render references summary"
    ).split()
)


@dataclass(frozen=True, kw_only=True)
class EvaluatorConfig:
    """Settings of a section. An evaluator with keys of its own extends this class and names it in `config_type`."""

    renamed_keys: ClassVar = {"traits": "conditioning", "remembers": "memory"}
    needs_scenarios: ClassVar[bool] = True  # False for an evaluator without packs of scenarios
    fixed: ClassVar[Mapping[str, Any]] = {}  # values, as tables of a file, that define the evaluator and can't be set
    has_references: ClassVar[bool] = True  # whether floors and ceilings run unless `references` decides
    more_floors: ClassVar[tuple[str, ...]] = ()  # policies that must fail, in addition to `zero` and `random`

    type: str
    # Name of the evaluator, or `module:Class` or `file.py:Class`. A section without a `type` is a template and never
    # runs.
    enabled: bool = True
    # Whether the section runs; a section that is chosen by name runs in any case.
    interval: int = 0
    # Number of training updates from one evaluation to the next; the section also runs at the end of training. With 0
    # it runs only then.
    at_start: bool = False
    # Whether the section also runs before the first training update.
    busy: Busy = Busy.SKIP
    # What training does if an evaluation is due while the previous one is still running: "skip" it, "queue" it, or
    # "wait". The evaluation at the end of training always runs.
    checkpoint: str | None = None
    # Policy to evaluate if neither training nor the command line names one: a checkpoint, or a name such as
    # "expert:drive".
    policy: str | None = None
    # Policy that the section evaluates in place of the given one: a baseline. The training config of the given
    # checkpoint does not apply to it.
    policy_config: dict[str, Any] = field(default_factory=dict)
    # Arguments of the policy's class, by name.
    clean: bool = False
    # Whether disturbances from the training config are off and random reward weights are fixed at their middle. Keys of
    # the section override it.
    scenarios: str | None = None
    # Scenarios of the section: a pack, as "town.pack" or "town.pack#hard_stop", or scenarios to generate, as
    # "generate:town?count=120&seed=900001".
    tag: str | None = None
    # Tag of the scenarios to use; the same as "#hard_stop" after the name of a pack.
    episodes: int | None = None
    # Number of scenarios to run, one episode each; "none" for all.
    replicates: int = 1
    # Number of times that each scenario runs, each time with another seed.
    seed: int = 0
    # Seed of all random draws: the seeds of episodes, and the choice of scenarios if `episodes` is set.
    actions: Choice = Choice.SAMPLE
    # How an action is chosen: "sample" draws from the distribution of the policy, as in training; "greedy" takes the
    # most likely action.
    conditioning: dict[str, float] = field(default_factory=dict)
    # Fixed values for the conditioning inputs that the policy was trained with, as `conditioning.gamma = 0.95`; the
    # others are drawn for each agent.
    memory: Memory = Memory.EPISODE
    # How long a policy keeps its memory: for all trials of an "episode", or for one "trial". The latter is a control
    # that runs the episodes of the section that differs from it only in this key.
    coplayers: tuple[str, ...] = ()
    # Policies of co-players: checkpoints, or names such as "expert:drive"; one of them is drawn for each episode.
    device: str = "cpu"
    # Device of worlds and policies: "cpu", "cuda" or "cuda:1".
    engine: str = "inline"
    # Where episodes run, always with the same rows: "inline" in this process, "workers" in a pool of processes, or
    # your own engine as "module:Class" or "file.py:Class".
    worlds: int = 32
    # Number of worlds that each process steps together.
    workers: int | None = None
    # Number of processes of the pool; "none" for one per core.
    time_limit_s: float = 300.0
    # Seconds that an episode may take in a pool; a process that takes longer is ended.
    memory_limit_gb: float | None = None
    # Memory that a process of the pool may hold; a process that holds more is ended. "none" for no limit.
    retries: int = 1
    # Number of times that an episode is retried if its process died or was ended; then it is recorded as failed, with
    # the reason.
    env: SimConfig = field(default_factory=SimConfig)
    # Settings of the simulator, over those of the training config. Set `env.episode` by the key `episode`.
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)
    # Number and length of the trials of an episode, over those of the training config.
    render: RenderConfig | None = None
    # Settings of videos; "none" for no videos.
    metrics: tuple[str, ...] = ()
    # Metrics beyond those of the evaluator: names of the entry points `roadworthy.metrics`, "module:Name" or
    # "file.py:Name".
    references: tuple[str, ...] | None = None
    # Reference policies that run on the same episodes, as floors and ceilings. By default those of the evaluator; []
    # for none.
    summary: SummaryConfig = field(default_factory=SummaryConfig)
    # Part of the section in `eval_summary`.

    def __post_init__(self) -> None:
        at_least(self, 1, "episodes", "replicates", "worlds", "workers")
        at_least(self, 0, "interval", "seed", "retries")
        above(self, 0, "time_limit_s", "memory_limit_gb")
        self._check_scenarios()
        if self.policy is not None:
            object.__setattr__(self, "policy", expanded(self.policy, "policy"))
        if self.summary.weight is None:
            weight = 1.0 if self.policy is None else 0.0
            object.__setattr__(self, "summary", replace(self.summary, weight=weight))
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", expanded(self.checkpoint, "checkpoint"))
        for name in ("coplayers", "references"):
            policies = getattr(self, name)
            if policies is not None:
                object.__setattr__(self, name, tuple(expanded(policy, name) for policy in policies))
        hidden = replace(self.env.hidden, partners=len(self.coplayers) or self.env.hidden.partners)
        object.__setattr__(self, "env", replace(self.env, episode=self.episode, hidden=hidden))
        self._check_fixed()

    def _check_fixed(self) -> None:
        values = self.as_plain()
        for key, wanted in leaves(self.fixed):
            value = reduce(getitem, key.split("."), values)
            if value != wanted:
                raise ConfigError(
                    f"{key} is {value!r}, but the evaluator {self.type!r} always has {wanted!r}; leave the key out, "
                    "or use the evaluator multi_scenario"
                )

    def _check_scenarios(self) -> None:
        if self.scenarios is None:
            if self.needs_scenarios:
                raise ConfigError('scenarios is missing, expected a pack, as "town.pack", or "generate:town?count=96"')
            return
        named = parse_source(self.scenarios).tag
        if self.tag is not None and named not in (None, self.tag):
            raise ConfigError(f"scenarios is {self.scenarios!r}, but tag is {self.tag!r}; leave out one of them")

    def policy_for(self, given: str | None) -> str | None:
        """Return the policy that the section evaluates; given: the one from training or the command line."""
        return self.policy or given or self.checkpoint

    @property
    def source(self) -> ScenarioSource:
        """The source of the scenarios, with the tag from either key."""
        if self.scenarios is None:
            raise ConfigError(f"the evaluator {self.type!r} has no scenarios; set the key scenarios")
        source = parse_source(self.scenarios)
        return replace(source, tag=self.tag or source.tag)

    def as_plain(self) -> dict[str, Any]:
        """Return all values as words, numbers, lists and tables; `env.episode` appears only as `episode`."""
        values: dict[str, Any] = plain(self)
        del values["env"]["episode"]
        return values

    @property
    def digest(self) -> str:
        """A hash of everything that decides the results: equal hashes and equal policies give equal results.

        The engine and the videos have no part in it, so a run may be resumed with others.
        """
        values = {key: value for key, value in self.as_plain().items() if key not in EXECUTION_KEYS}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables with their dotted keys."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
