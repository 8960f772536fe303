"""The settings of a simulation, with their defaults and meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, get_type_hints

from roadworthy.checks import above, at_least, between
from roadworthy.errors import ConfigError

Range = tuple[float, float]


class Mode(Enum):
    """Where agents start and what their goals are."""

    REPLAY = "replay"  # agents start as recorded, and their goal is where their recording ends
    OPEN = "open"  # agents start at random places on the road network, with a route and several goals


class Control(Enum):
    """Which agents of a recording policies drive."""

    VEHICLES = "vehicles"
    AGENTS = "agents"  # pedestrians and cyclists too
    SDC = "sdc"  # only the self-driving car
    PREDICT = "predict"  # the agents to be predicted in the realism task, and the self-driving car


class Others(Enum):
    """What moves the agents that no policy drives."""

    REPLAY = "replay"  # their recording
    IDM = "idm"  # a reactive driver model on the path of their recording, which obeys traffic lights
    STATIC = "static"  # nothing: they stand where they start


class Model(Enum):
    """What an action requests from a car."""

    BICYCLE = "bicycle"  # acceleration and steering angle
    JERK = "jerk"  # longitudinal and lateral jerk


class Actions(Enum):
    """The form of an action."""

    DISCRETE = "discrete"  # one longitudinal and one lateral choice: 7 x 13 (bicycle) or 4 x 3 (jerk)
    CONTINUOUS = "continuous"  # two numbers from -1 to 1


class AtGoal(Enum):
    """What happens to an ego that has reached its last goal."""

    LEAVE = "leave"  # it leaves the world
    STOP = "stop"  # it stops and stands there until the trial ends
    NEW_GOAL = "new_goal"  # it gets another goal
    RESPAWN = "respawn"  # its episode ends and it starts another one at its start, as soon as the place is free
    CONTINUE = "continue"  # it stays in the world and drives until the time is up


class OnInfraction(Enum):
    """What happens to an ego that commits an infraction."""

    IGNORE = "ignore"  # it continues; the infraction is counted
    STOP = "stop"  # it stops and stands there until the trial ends
    REMOVE = "remove"  # it leaves the world


class CollisionsScored(Enum):
    """Which collisions make an attempt a failure."""

    AT_FAULT = "at_fault"  # collisions for which the agent is at fault
    ALL = "all"  # every contact with another agent


@dataclass(frozen=True)
class EpisodeConfig:
    """The length of an episode."""

    trials: int = 1
    # Number of attempts (trials) at the same situation in an episode, one after another, with the policy's memory kept.
    trial_steps: int = 80
    # Maximum number of steps of a trial.

    def __post_init__(self) -> None:
        at_least(self, 1, "trials", "trial_steps")


@dataclass(frozen=True)
class ControlConfig:
    """Which agents policies drive, and what moves the others."""

    who: Control = Control.VEHICLES
    # Which agents of a recording policies drive.
    others: Others = Others.REPLAY
    # What moves the agents that no policy drives.
    rows: int = 32
    # Maximum number of agents of a world that policies drive: the self-driving car first, then the nearest agents.
    ego_share: float = 1.0
    # Share of the driven agents that are egos, at least one agent; the others are co-players.
    min_distance_m: float = 2.0
    # Distance below which a recorded vehicle counts as parked: if its end is nearer to its start, no policy drives it
    # unless it is the self-driving car.

    def __post_init__(self) -> None:
        _parse_choices(self)
        between(self, 1, 256, "rows")
        between(self, 0.0, 1.0, "ego_share")
        at_least(self, 0.0, "min_distance_m")


@dataclass(frozen=True)
class OpenConfig:
    """Worlds whose agents start at random places on the road network."""

    agents: int = 32
    # Number of agents that policies drive, at most control.rows.
    traffic: int = 0
    # Number of additional agents that follow the reactive driver model.
    goals: int = 3
    # Number of goals of each agent, one after another along its route.
    goal_spacing_m: float = 40.0
    # Distance along the route from the start to the first goal, and from each goal to the next.
    spawn_gap_m: float = 6.0
    # Minimum distance between the boxes of agents at their start.

    def __post_init__(self) -> None:
        between(self, 1, 256, "agents")
        between(self, 0, 255, "traffic")
        between(self, 1, 16, "goals")
        at_least(self, 1.0, "goal_spacing_m")
        at_least(self, 0.0, "spawn_gap_m")


@dataclass(frozen=True)
class GoalConfig:
    """When a goal is reached, and what happens then."""

    at_goal: AtGoal = AtGoal.LEAVE
    # What happens to an ego that has reached its last goal.
    radius_m: float = 2.0
    # Distance within which a goal is reached, if the step ends at no more than speed_mps.
    speed_mps: float = 100.0
    # Maximum speed at which a goal is reached.

    def __post_init__(self) -> None:
        _parse_choices(self)
        above(self, 0.0, "radius_m")
        at_least(self, 0.0, "speed_mps")


@dataclass(frozen=True)
class InfractionConfig:
    """What happens to an ego after each kind of infraction."""

    collision: OnInfraction = OnInfraction.IGNORE
    # What happens to an ego when its box touches another box, regardless of fault.
    off_road: OnInfraction = OnInfraction.IGNORE
    # What happens to an ego when its box touches a road edge, or its center has crossed one.
    red_light: OnInfraction = OnInfraction.IGNORE
    # What happens to an ego when its front crosses a stop line while the light is red.

    def __post_init__(self) -> None:
        _parse_choices(self)


@dataclass(frozen=True)
class RewardConfig:
    """Weights of the reward terms: a number, or a range from which every agent draws its own weight in each episode."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"lane_centre": "lane_center"}

    goal: float | Range = 1.0
    # The reward for each goal that is reached.
    collision: float | Range = -1.0
    # The reward for each collision when the contact starts, regardless of fault.
    off_road: float | Range = -1.0
    # The reward for each departure from the road when it starts.
    red_light: float | Range = -0.5
    # The reward for each red light that is run.
    stop_sign: float | Range = 0.0
    # The reward for each stop sign that is passed without stopping.
    comfort: float | Range = -0.01
    # The reward for each step with uncomfortable acceleration or jerk.
    lane_center: float | Range = 0.0
    # The reward for each step on a lane's center line; it falls to 0 at 2 m from the line.
    lane_align: float | Range = 0.0
    # The reward for each moving step on a lane, times the cosine of the angle between heading and lane.
    wrong_way: float | Range = 0.0
    # The reward for each step that moves against the lane.
    progress: float | Range = 0.01
    # The reward for each meter by which the distance to the goal shrinks.
    time: float | Range = 0.0
    # The reward for each step.
    terms: dict[str, float | Range] = field(default_factory=dict, hash=False)
    # Weights of further terms by their names: an entry point of `roadworthy.reward_terms`, `module:Name` or
    # `file.py:Name`.

    def __post_init__(self) -> None:
        for name, value in {**{f.name: getattr(self, f.name) for f in fields(self)}, **self.terms}.items():
            if isinstance(value, tuple):
                _ordered(name, value)


@dataclass(frozen=True)
class ScoreConfig:
    """When an attempt is a success: enough goals reached, no collision that counts, and never off the road."""

    goal_shares: tuple[tuple[int, float], ...] = ((1, 1.0), (2, 0.5), (3, 0.6), (5, 0.8))
    # A list of (goals, share): an agent with at least this many goals must reach at least this share of them, and the
    # last entry that applies counts.
    collisions: CollisionsScored = CollisionsScored.AT_FAULT
    # Which collisions make an attempt a failure: those for which the agent is at fault, or every contact.

    def __post_init__(self) -> None:
        _parse_choices(self)
        counts = [count for count, _ in self.goal_shares]
        if not counts or counts[0] != 1 or counts != sorted(set(counts)):
            raise ConfigError(f"goal_shares start at {counts}, expected ascending goal counts that start at 1")
        for _, share in self.goal_shares:
            if not 0.0 <= share <= 1.0:
                raise ConfigError(f"goal_shares is {share}, expected 0.0 to 1.0")


@dataclass(frozen=True)
class ObserveConfig:
    """How much an agent observes. Entries are sorted by distance, road points by that from its grid cell."""

    partners: int = 31
    # Maximum number of other agents that an agent observes.
    partner_range_m: float = 100.0
    # Distance up to which an agent observes other agents.
    lanes: int = 64
    # Maximum number of lane points that an agent observes, up to 64.
    edges: int = 64
    # Maximum number of road edge points that an agent observes, up to 64.
    lights: int = 4
    # Maximum number of stop lines ahead that an agent observes, of traffic lights and stop signs.
    final: bool = False
    # Whether the env keeps the last observation before an automatic reset in `final_observation`.
    blocks: tuple[str, ...] = ()
    # Names of further blocks, which are appended: an entry point of `roadworthy.observation_blocks`, `module:Name` or
    # `file.py:Name`.

    def __post_init__(self) -> None:
        between(self, 0, 255, "partners")
        between(self, 1.0, 1000.0, "partner_range_m")
        between(self, 0, 64, "lanes", "edges")
        between(self, 0, 16, "lights")


@dataclass(frozen=True)
class DisturbConfig:
    """Disturbances for training. `clean` turns all of them off."""

    clean: bool = False
    # Whether all disturbances are off; then the other settings of this section have no effect.
    blind_rate: float = 0.0
    # Probability per second that an agent stops observing partners for blind_s.
    blind_s: float = 1.0
    # Duration of blindness in seconds.
    phantom_brake_rate: float = 0.0
    # Probability per second that a car starts to brake by itself for phantom_brake_s.
    phantom_brake_s: float = 0.5
    # Duration of phantom braking in seconds.
    phantom_brake_mps2: float = 4.0
    # Deceleration of phantom braking.
    dropout: float = 0.0
    # Probability that an entry of partners, lanes, edges or lights is missing from an observation.
    action_noise: float = 0.0
    # Standard deviation of the noise on both parts of an action, as a share of their range.

    def __post_init__(self) -> None:
        at_least(self, 0.0, *(f.name for f in fields(self) if f.name != "clean"))
        between(self, 0.0, 1.0, "dropout")


@dataclass(frozen=True)
class HiddenConfig:
    """Factors that are drawn for each episode, are equal in all its trials, and are never observed."""

    steering_gain: Range = (1.0, 1.0)
    # Range of the factor by which the requested angle of the front wheels is multiplied.
    brake_gain: Range = (1.0, 1.0)
    # Range of the factor by which a requested deceleration is multiplied.
    grip: Range = (1.0, 1.0)
    # Range of the grip as a share of that of a dry road (0.9 g), for longitudinal and lateral acceleration together.
    traffic_haste: Range = (1.0, 1.0)
    # Range of the factor by which reactive traffic multiplies the speed limit and divides its gaps.
    partners: int = 1
    # Number of partner policies, one of which drives the co-players of an episode.

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, tuple):
                _ordered(f.name, value)
                if not value[0] > 0.0:
                    raise ConfigError(f"{f.name} is {value[0]}, expected above 0.0")
        at_least(self, 1, "partners")


@dataclass(frozen=True)
class LogConfig:
    """Figures of a running simulation."""

    ema_alpha: float = 0.707
    # Weight of the old value in a row's moving average when an episode ends; the default gives a half-life of about two
    # episodes.
    report_interval: int = 256
    # Number of steps between reports of figures (means over agents with equal weights); in training they are shown on
    # the screen, in progress.jsonl and in sinks.

    def __post_init__(self) -> None:
        between(self, 0.0, 0.9999, "ema_alpha")
        at_least(self, 1, "report_interval")


@dataclass(frozen=True)
class SimConfig:
    """A simulation."""

    mode: Mode = Mode.REPLAY
    # How agents start and get goals.
    init_steps: int = 10
    # Frame of the recording at which an episode starts.
    model: Model = Model.BICYCLE
    # What an action requests from a car.
    actions: Actions = Actions.DISCRETE
    # Form of an action.
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
        _parse_choices(self)
        at_least(self, 0, "init_steps")
        if self.episode.trials > 1 and self.goal.at_goal is AtGoal.RESPAWN:
            raise ConfigError(
                f"goal.at_goal is 'respawn' with episode.trials = {self.episode.trials}: an agent cannot start again "
                "within a trial that ends for all agents at once; allowed with several trials: "
                "leave, stop, new_goal, continue"
            )
        if self.mode is Mode.OPEN and self.open.agents > self.control.rows:
            raise ConfigError(
                f"open.agents is {self.open.agents}, but control.rows is {self.control.rows}; raise the latter"
            )
        if self.mode is Mode.OPEN and self.open.agents + self.open.traffic > 256:
            raise ConfigError(
                f"open.agents and open.traffic are {self.open.agents + self.open.traffic} together, at most 256 fit"
            )


def _ordered(name: str, value: Any) -> None:
    if not value[0] <= value[1]:
        raise ConfigError(f"{name} is the range {value[0]} to {value[1]}, expected the lower end first")


def _parse_choices(config: Any) -> None:
    """Replace words by the choices that they name, so that `SimConfig(mode="open")` works."""
    for name, kind in get_type_hints(type(config)).items():
        value = getattr(config, name)
        if not (isinstance(kind, type) and issubclass(kind, Enum)) or isinstance(value, kind):
            continue
        words = [member.value for member in kind]
        if value not in words:
            raise ConfigError(f"{name} is {value!r}, expected one of: {', '.join(words)}")
        object.__setattr__(config, name, kind(value))
