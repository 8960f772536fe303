"""What a simulation is: every setting, its default and what it means."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, get_type_hints

from roadworthy.errors import ConfigError

Range = tuple[float, float]


class Mode(Enum):
    """Where agents start and what they want."""

    REPLAY = "replay"  # as recorded; the goal is where the recording ends
    OPEN = "open"  # drawn on the road network, with a route and several goals


class Control(Enum):
    """Which agents of a recording the policies drive."""

    VEHICLES = "vehicles"
    AGENTS = "agents"  # pedestrians and cyclists too
    SDC = "sdc"  # the self-driving car alone
    PREDICT = "predict"  # the agents of the realism task: those to be predicted, and the self-driving car


class Others(Enum):
    """What moves the agents that no policy drives."""

    REPLAY = "replay"  # their recording
    IDM = "idm"  # a reactive model on their lane path, with lights
    STATIC = "static"  # nothing: they stand where they start


class Model(Enum):
    """What a policy's action means to a car."""

    BICYCLE = "bicycle"  # acceleration and steering angle
    JERK = "jerk"  # jerk along and across


class Actions(Enum):
    """How an action is given."""

    DISCRETE = "discrete"  # a choice along and one across: 7 x 13 (bicycle) or 4 x 3 (jerk)
    CONTINUOUS = "continuous"  # two numbers from -1 to 1


class AtGoal(Enum):
    """What happens to an ego that has reached the last of its goals."""

    LEAVE = "leave"  # it leaves the world
    STOP = "stop"  # it stands there until the end, and is done
    NEW_GOAL = "new_goal"  # it gets another goal
    RESPAWN = "respawn"  # its episode ends and it starts another there and then
    CONTINUE = "continue"  # it stays in the world and drives until the time is up


class OnInfraction(Enum):
    """What happens to an ego that commits an infraction."""

    IGNORE = "ignore"  # it drives on; the infraction is counted
    STOP = "stop"  # it stands there until the end, and is done
    REMOVE = "remove"  # it leaves the world


class CollisionsScored(Enum):
    """Which collisions make an attempt a failure."""

    AT_FAULT = "at_fault"  # those that the agent is at fault for
    ALL = "all"  # every contact with another agent


@dataclass(frozen=True)
class EpisodeConfig:
    """How long an episode lasts."""

    trials: int = 1
    # Attempts at the same situation, one after another; memory is kept between them.
    trial_steps: int = 80
    # The longest a trial may last.

    def __post_init__(self) -> None:
        _at_least("trials", self.trials, 1)
        _at_least("trial_steps", self.trial_steps, 1)


@dataclass(frozen=True)
class ControlConfig:
    """Who drives what."""

    who: Control = Control.VEHICLES
    # Which agents of a recording the policies drive.
    others: Others = Others.REPLAY
    # What moves the rest.
    rows: int = 32
    # At most so many agents of a world are driven by policies: the self-driving car first, then those nearest to it.
    ego_share: float = 1.0
    # Share of the driven agents that are egos; the rest are co-players. At least one is an ego.
    min_distance_m: float = 2.0
    # A recorded vehicle that ends nearer than this to its start is parked: nobody drives it (but the self-driving car).

    def __post_init__(self) -> None:
        _take_words(self)
        _between("rows", self.rows, 1, 256)
        _between("ego_share", self.ego_share, 0.0, 1.0)
        _at_least("min_distance_m", self.min_distance_m, 0.0)


@dataclass(frozen=True)
class OpenConfig:
    """Worlds whose agents are drawn on the road network."""

    agents: int = 32
    # How many are driven by policies; at most control.rows.
    traffic: int = 0
    # How many more follow the reactive model.
    goals: int = 3
    # Goals of each, one after another along its route.
    goal_spacing_m: float = 40.0
    # Metres along the route from the start to the first goal, and from each goal to the next.
    spawn_gap_m: float = 6.0
    # Boxes of agents that start are at least so far apart.

    def __post_init__(self) -> None:
        _between("agents", self.agents, 1, 256)
        _between("traffic", self.traffic, 0, 255)
        _between("goals", self.goals, 1, 16)
        _at_least("goal_spacing_m", self.goal_spacing_m, 1.0)
        _at_least("spawn_gap_m", self.spawn_gap_m, 0.0)


@dataclass(frozen=True)
class GoalConfig:
    """When a goal is reached, and what then."""

    at_goal: AtGoal = AtGoal.LEAVE
    # What happens at the last goal.
    radius_m: float = 2.0
    # A goal is reached by the first step that ends within this distance of it ...
    speed_mps: float = 100.0
    # ... at no more than this speed.

    def __post_init__(self) -> None:
        _take_words(self)
        _above("radius_m", self.radius_m, 0.0)
        _at_least("speed_mps", self.speed_mps, 0.0)


@dataclass(frozen=True)
class InfractionConfig:
    """What happens on each kind of infraction."""

    collision: OnInfraction = OnInfraction.IGNORE
    # Its box touches another's, whoever is at fault.
    off_road: OnInfraction = OnInfraction.IGNORE
    # Its box touches a road edge, or has crossed one.
    red_light: OnInfraction = OnInfraction.IGNORE
    # Its front crosses a stop line while the light is red.

    def __post_init__(self) -> None:
        _take_words(self)


@dataclass(frozen=True)
class RewardConfig:
    """Weights of the reward's terms: a number, or a range from which each agent's own weight is drawn every episode."""

    goal: float | Range = 1.0
    # Per goal reached.
    collision: float | Range = -1.0
    # Per collision, when the contact begins, whoever is at fault.
    off_road: float | Range = -1.0
    # Per departure, when it begins.
    red_light: float | Range = -0.5
    # Per red light run.
    stop_sign: float | Range = 0.0
    # Per stop sign passed without stopping.
    comfort: float | Range = -0.01
    # Per step with uncomfortable acceleration or jerk.
    lane_center: float | Range = 0.0
    # Per step on a lane: 1 on its centre line, 0 from 2 m off it.
    lane_align: float | Range = 0.0
    # Per step: cosine of the angle to the lane, when moving.
    wrong_way: float | Range = 0.0
    # Per step that moves against the lane.
    progress: float | Range = 0.01
    # Per metre that the distance to the goal shrank.
    time: float | Range = 0.0
    # Per step.

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, tuple):
                _ordered(f.name, value)


@dataclass(frozen=True)
class ScoreConfig:
    """When an attempt counts as a success: enough goals reached, no collision that counts, never off the road."""

    goal_shares: tuple[tuple[int, float], ...] = ((1, 1.0), (2, 0.5), (3, 0.6), (5, 0.8))
    # A ladder: with at least so many goals, at least this share of them has to be reached. The last that fits counts.
    collisions: CollisionsScored = CollisionsScored.AT_FAULT
    # Which collisions make an attempt a failure: those that the agent is at fault for, or every contact.

    def __post_init__(self) -> None:
        _take_words(self)
        counts = [count for count, _ in self.goal_shares]
        if not counts or counts[0] != 1 or counts != sorted(set(counts)):
            raise ConfigError(f"goal_shares start at {counts}, expected a ladder of ascending goal counts from 1 on")
        for _, share in self.goal_shares:
            _between("goal_shares", share, 0.0, 1.0)


@dataclass(frozen=True)
class ObserveConfig:
    """How much an agent sees. Entries are nearest first; roads as seen from the middle of the agent's grid cell."""

    partners: int = 31
    # Other agents.
    partner_range_m: float = 100.0
    # Others further away are not seen.
    lanes: int = 64
    # Pieces of lanes, at most 64.
    edges: int = 64
    # Pieces of road edges, at most 64.
    lights: int = 4
    # Stop lines with a light or a stop sign, those ahead.
    final: bool = False
    # Keep the observation before an automatic reset in `final_observation`.

    def __post_init__(self) -> None:
        _between("partners", self.partners, 0, 255)
        _between("partner_range_m", self.partner_range_m, 1.0, 1000.0)
        _between("lanes", self.lanes, 0, 64)
        _between("edges", self.edges, 0, 64)
        _between("lights", self.lights, 0, 16)


@dataclass(frozen=True)
class DisturbConfig:
    """Disturbances for training; `clean` turns all of them off."""

    clean: bool = False
    # Everything below is off, whatever it says.
    blind_rate: float = 0.0
    # Chance per second that an agent sees no partners ...
    blind_s: float = 1.0
    # ... for so long.
    phantom_brake_rate: float = 0.0
    # Chance per second that the car brakes by itself ...
    phantom_brake_s: float = 0.5
    # ... for so long ...
    phantom_brake_mps2: float = 4.0
    # ... so hard.
    dropout: float = 0.0
    # Chance that an entry of partners, lanes, edges or lights is missing from an observation.
    action_noise: float = 0.0
    # Standard deviation of the noise on both parts of an action, as a share of their range.

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.name != "clean":
                _at_least(f.name, getattr(self, f.name), 0.0)
        _between("dropout", self.dropout, 0.0, 1.0)


@dataclass(frozen=True)
class HiddenConfig:
    """Factors that are drawn for each episode, equal in all its trials, and never observed."""

    steering_gain: Range = (1.0, 1.0)
    # The wheels turn by the asked angle times this.
    brake_gain: Range = (1.0, 1.0)
    # A braking car slows down by what is asked times this.
    grip: Range = (1.0, 1.0)
    # Tyres hold so much of a dry road's grip (0.9 g), along and across together.
    traffic_haste: Range = (1.0, 1.0)
    # Reactive traffic wants to go at the limit times this, and keeps gaps divided by it.
    partners: int = 1
    # Which of so many partner policies drives the co-players.

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, tuple):
                _ordered(f.name, value)
                _above(f.name, value[0], 0.0)
        _at_least("partners", self.partners, 1)


@dataclass(frozen=True)
class LogConfig:
    """Figures of a running simulation."""

    ema_alpha: float = 0.707
    # How much of a row's average stays when it ends another episode: a half-life of about two episodes.
    report_interval: int = 256
    # Steps of the worlds between reports of the figures: means over agents, one weight each. In training they reach
    # the screen, progress.jsonl and sinks.

    def __post_init__(self) -> None:
        _between("ema_alpha", self.ema_alpha, 0.0, 0.9999)
        _at_least("report_interval", self.report_interval, 1)


@dataclass(frozen=True)
class SimConfig:
    """A simulation."""

    mode: Mode = Mode.REPLAY
    # Where agents start and what they want.
    init_steps: int = 10
    # The frame of the recording that is the start.
    model: Model = Model.BICYCLE
    # What an action means.
    actions: Actions = Actions.DISCRETE
    # How an action is given.
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)
    control: ControlConfig = field(default_factory=ControlConfig)
    open: OpenConfig = field(default_factory=OpenConfig)
    goal: GoalConfig = field(default_factory=GoalConfig)
    infraction: InfractionConfig = field(default_factory=InfractionConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    score: ScoreConfig = field(default_factory=ScoreConfig)
    observe: ObserveConfig = field(default_factory=ObserveConfig)
    disturb: DisturbConfig = field(default_factory=DisturbConfig)
    hidden: HiddenConfig = field(default_factory=HiddenConfig)
    log: LogConfig = field(default_factory=LogConfig)

    def __post_init__(self) -> None:
        _take_words(self)
        _at_least("init_steps", self.init_steps, 0)
        if self.episode.trials > 1 and self.goal.at_goal is AtGoal.RESPAWN:
            raise ConfigError(
                f"goal.at_goal is 'respawn' with episode.trials = {self.episode.trials}: an agent can't start anew "
                "within a trial that ends for all at once; allowed with several trials: leave, stop, new_goal, continue"
            )
        if self.mode is Mode.OPEN and self.open.agents > self.control.rows:
            raise ConfigError(
                f"open.agents is {self.open.agents}, but control.rows is {self.control.rows}; raise the latter"
            )
        if self.mode is Mode.OPEN and self.open.agents + self.open.traffic > 256:
            raise ConfigError(
                f"open.agents and open.traffic are {self.open.agents + self.open.traffic} together, at most 256 fit"
            )


def _at_least(name: str, value: float, low: float) -> None:
    if not value >= low:
        raise ConfigError(f"{name} is {value}, expected at least {low}")


def _above(name: str, value: float, low: float) -> None:
    if not value > low:
        raise ConfigError(f"{name} is {value}, expected above {low}")


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name} is {value}, expected {low} to {high}")


def _ordered(name: str, value: Any) -> None:
    if not value[0] <= value[1]:
        raise ConfigError(f"{name} is the range {value[0]} to {value[1]}, expected the lower end first")


def _take_words(config: Any) -> None:
    """Turn words into the choices that they name, so that `SimConfig(mode="open")` means what it says."""
    for name, kind in get_type_hints(type(config)).items():
        value = getattr(config, name)
        if not (isinstance(kind, type) and issubclass(kind, Enum)) or isinstance(value, kind):
            continue
        words = [member.value for member in kind]
        if value not in words:
            raise ConfigError(f"{name} is {value!r}, expected one of: {', '.join(words)}")
        object.__setattr__(config, name, kind(value))
