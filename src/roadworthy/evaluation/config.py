"""What an evaluator is told: the keys that every section `[eval.<name>]` may have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce
from operator import getitem
from typing import Any, ClassVar

from roadworthy.config import plain
from roadworthy.errors import ConfigError
from roadworthy.render.config import RenderConfig
from roadworthy.sim.config import EpisodeConfig, SimConfig
from roadworthy.sources import ScenarioSource, expanded, parse_source


class Engine(Enum):
    """Who carries out the episodes. The rows that come back are the same."""

    INLINE = "inline"  # this process
    WORKERS = "workers"  # a pool of processes on this machine
    RAY = "ray"  # a Ray cluster


class Busy(Enum):
    """What training does when an evaluation is due and the one before it still runs beside it."""

    SKIP = "skip"  # leaves this one out
    QUEUE = "queue"  # runs it afterwards
    WAIT = "wait"  # stands still until the one before is done


class Choice(Enum):
    """How a policy's action is taken from what it thinks of all of them."""

    SAMPLE = "sample"  # drawn by their probabilities
    GREEDY = "greedy"  # the likeliest


class Remembers(Enum):
    """How long a policy with a memory keeps it."""

    EPISODE = "episode"  # as it was trained
    TRIAL = "trial"  # it is cleared after each trial: what a policy gains over trials without remembering them


@dataclass(frozen=True)
class SummaryConfig:
    """The evaluator's part in `eval_summary`, one figure over all evaluators of a file."""

    weight: float | None = None
    # Its weight in the mean; 0 leaves it out. None: 1, but 0 for a section with a `policy` of its own.
    figure: str = "score"
    # Which of its figures counts.

    def __post_init__(self) -> None:
        if self.weight is not None and not self.weight >= 0.0:
            raise ConfigError(f"weight is {self.weight}, expected at least 0")


_LEAST = {"interval": 0, "episodes": 1, "replicates": 1, "seed": 0, "worlds": 1, "workers": 1, "retries": 0}

# What decides when and where episodes run and what is made of them, but not what happens in them.
DECIDES_NOTHING = frozenset(
    (
        "enabled interval at_start busy checkpoint engine worlds workers time_limit_s memory_limit_gb retries "
        "render references summary"
    ).split()
)


@dataclass(frozen=True, kw_only=True)
class EvaluatorConfig:
    """A section's settings. An evaluator with keys of its own extends this class and names that in `config_type`."""

    needs_scenarios: ClassVar[bool] = True  # false for an evaluator whose worlds don't come from packs
    fixed: ClassVar[Mapping[str, Any]] = {}  # tables as in a file: what an evaluator stands for, whatever was trained

    has_references: ClassVar[bool] = (
        True  # whether floors and ceilings run on the same episodes unless a section says so
    )
    more_floors: ClassVar[tuple[str, ...]] = ()  # policies beside `zero` and `random` that the evaluator must fail

    type: str
    # Which evaluator; a section without its own `type` is a template and never runs.
    enabled: bool = True
    # Whether it runs; one that is asked for by name runs all the same.
    interval: int = 0
    # In training it runs every so many epochs, and once at the end; 0: at the end alone.
    at_start: bool = False
    # In training it runs at epoch 0 too.
    busy: Busy = Busy.SKIP
    # Where an evaluation is due and the one before it still runs beside training: skip it, queue it, or wait. The
    # evaluation at the end of training always runs.
    checkpoint: str | None = None
    # The policy where neither training nor the command line hands one over: a checkpoint, or a name as `expert:drive`.
    policy: str | None = None
    # Drives here whatever checkpoint is evaluated: a baseline beside it, which knows nothing of its training either.
    policy_config: dict[str, Any] = field(default_factory=dict)
    # The arguments of the policy's class, by name.
    clean: bool = False
    # Disturbances of training are off and random weights of rewards are fixed, unless a key of the section says more.
    scenarios: str | None = None
    # A pack, as "town.pack" or "town.pack#hard_stop", or what to generate, as "generate:town?count=120&seed=900001".
    tag: str | None = None
    # Only scenarios with this tag; the same as "#hard_stop" after a pack.
    episodes: int | None = None
    # So many of the scenarios, each of which is an episode; none: all of them.
    replicates: int = 1
    # How often each of these episodes is run, with seeds of its own.
    seed: int = 0
    # Decides every draw: the episodes' seeds, and which scenarios are taken where not all are.
    actions: Choice = Choice.SAMPLE
    # sample: actions are drawn, as in training; greedy: the likeliest is taken.
    traits: dict[str, float] = field(default_factory=dict)
    # Values for traits that the policy was trained with, as `traits.discount = 0.95`; others are drawn for each agent.
    remembers: Remembers = Remembers.EPISODE
    # episode: memory lasts for all trials of an episode; trial: it is cleared after each, as a control, which runs the
    # episodes of the section that differs from it in this alone.
    coplayers: tuple[str, ...] = ()
    # The policies of co-players: checkpoints, or names as `expert:drive`. Which one drives is drawn for each episode.
    device: str = "cpu"
    # Where worlds and policies run: "cpu", "cuda", "cuda:1".
    engine: Engine = Engine.INLINE
    # Who carries out the episodes, always with the same rows: inline (this process), workers (a pool) or ray.
    worlds: int = 32
    # Side by side, in each process.
    workers: int | None = None
    # Processes of the pool; none: one per core.
    time_limit_s: float = 300.0
    # A process of the pool in which an episode takes longer is ended.
    memory_limit_gb: float | None = None
    # A process of the pool that holds more is ended; none: no limit.
    retries: int = 1
    # How often an episode is tried again whose process was ended or died; then it is a failed one, with the reason.
    env: SimConfig = field(default_factory=SimConfig)
    # The simulation, on top of the training's; `env.episode` is not set here but by `episode`.
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)
    # Trials and their length, on top of the training's.
    render: RenderConfig | None = None
    # Videos; none: no videos.
    references: tuple[str, ...] | None = None
    # Policies that `evaluate` runs on the same episodes as floor and ceiling. None: the evaluator's own; []: no policy.
    summary: SummaryConfig = field(default_factory=SummaryConfig)
    # Its part in `eval_summary`.

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} is {value}, expected at least {least}")
        for name in ("time_limit_s", "memory_limit_gb"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise ConfigError(f"{name} is {value}, expected above 0")
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
        told = self.as_plain()
        for key, wanted in leaves(self.fixed):
            value = reduce(getitem, key.split("."), told)
            if value != wanted:
                raise ConfigError(
                    f"{key} is {value!r}, but an evaluator of type {self.type!r} stands for {wanted!r}; leave it out, "
                    "or take the type multi_scenario"
                )

    def _check_scenarios(self) -> None:
        if self.scenarios is None:
            if self.needs_scenarios:
                raise ConfigError('scenarios is missing, expected a pack, as "town.pack", or "generate:town?count=96"')
            return
        named = parse_source(self.scenarios).tag
        if self.tag is not None and named not in (None, self.tag):
            raise ConfigError(f"scenarios is {self.scenarios!r}, but tag is {self.tag!r}; leave one of the two out")

    def policy_for(self, given: str | None) -> str | None:
        """The policy that the section evaluates; given: the one that training or the command line hands over."""
        return self.policy or given or self.checkpoint

    @property
    def source(self) -> ScenarioSource:
        """Where the scenarios come from, with the tag however it was given."""
        if self.scenarios is None:
            raise ConfigError(f"an evaluator of type {self.type!r} was given no scenarios")
        source = parse_source(self.scenarios)
        return replace(source, tag=self.tag or source.tag)

    def as_plain(self) -> dict[str, Any]:
        """Every value in words, numbers, lists and tables; `env.episode` stands under `episode` alone."""
        told = plain(self)
        del told["env"]["episode"]
        return told

    @property
    def digest(self) -> str:
        """A hash of all that decides what happens in the episodes: equal for equal results on equal policies.

        Neither the engine nor the videos change what happens, so a run may go on with others.
        """
        deciding = {key: value for key, value in self.as_plain().items() if key not in DECIDES_NOTHING}
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables with their dotted keys."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
