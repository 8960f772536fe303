"""Reward terms and observation blocks of users: plain functions that the simulator compiles into its step.

    def headway(world, a):
        return min(world.agents[SPEED, a] * np.float32(0.1), np.float32(1.0))

A reward term is a function (world, a) that returns a number for agent a; the reward adds it, times its weight. It sees
what the built-in terms see: agents have moved, EVENTS holds what happened to them in this step, and nothing is reset.
An observation block is an `ObservationBlock`, whose function (world, a, out) writes its features for agent a.

Both are named in a config: by an entry point of `roadworthy.reward_terms` or `roadworthy.observation_blocks`, by
`module:Name`, or by `file.py:Name`. The functions are compiled as rules are (kernels/decorators.py): they read arrays
and compute numbers, allocate nothing, and may call only what Numba compiles without allocating. They write nothing
but `out`. The lines of `agents` and `flags` are the constants of sim/state.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from roadworthy import plugins
from roadworthy.errors import ConfigError
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.config import SimConfig

if TYPE_CHECKING:
    from roadworthy.sim.layout import Feature

TERMS_GROUP, BLOCKS_GROUP = "roadworthy.reward_terms", "roadworthy.observation_blocks"
TERM_WEIGHTS = "term_weights"  # the observation block with the weights of reward terms of users


class WorldView(NamedTuple):
    """What a reward term or an observation block reads: one world after a step. Columns of arrays are agents."""

    agents: Floats  # (lines, agents) float32: SPEED, HEADING, ... of sim/state.py
    flags: Ints  # (lines, agents) int32: LANE, EVENTS, ... of sim/state.py
    count: Any  # agents of the world: columns 0 to count - 1; some may not be present, see IS_PRESENT
    step: Any  # steps made in this trial
    dt: Any  # seconds of a step


@dataclass(frozen=True)
class ObservationBlock:
    """A block of one entry that is appended to the observation.

    Example:
        >>> from roadworthy.sim.layout import Feature
        >>> def write_jerk(world, a, out):
        ...     out[0] = world.agents[JERK, a]
        >>> jerk = ObservationBlock("jerk", (Feature("jerk", 10.0, "m/s3"),), write_jerk)
    """

    name: str
    # The name in the observation layout, different from those of all other blocks.
    features: tuple[Feature, ...]
    # What is written, in order. The simulator divides each number by its feature's scale and clips it.
    write: Callable[[Any, Any, Any], None]
    # Called with (world, a, out): writes the features of agent a to out, which holds zeros.


def load_terms(config: SimConfig) -> dict[str, Callable[..., Any]]:
    """Return the functions of the reward terms that a config names besides the built-in ones."""
    terms = {}
    for name in config.reward.terms:
        term = _plain(plugins.load(TERMS_GROUP, name, "reward term"))
        if not callable(term):
            raise ConfigError(f"reward term {name!r} is {term!r}, expected a function (world, a) that returns a number")
        terms[name] = term
    return terms


def load_blocks(config: SimConfig) -> list[ObservationBlock]:
    """Return the observation blocks that a config names besides the built-in ones."""
    blocks = []
    for name in config.observe.blocks:
        block = plugins.load(BLOCKS_GROUP, name, "observation block")
        if not isinstance(block, ObservationBlock):
            raise ConfigError(f"observation block {name!r} is {block!r}, expected an ObservationBlock")
        blocks.append(replace(block, write=_plain(block.write)))
    return blocks


def code_of(config: SimConfig) -> list[str]:
    """Return the reward terms and observation blocks of a config that are `module:Name` or `file.py:Name`."""
    return [name for name in (*config.reward.terms, *config.observe.blocks) if plugins.is_code(name)]


def without_code(config: SimConfig) -> SimConfig:
    """Return a config without the reward terms and observation blocks of `code_of`."""
    return _keeping(config, lambda name: not plugins.is_code(name))


def without_extensions(config: SimConfig) -> SimConfig:
    """Return a config without the reward terms and observation blocks of users."""
    return _keeping(config, lambda name: False)


def _keeping(config: SimConfig, is_kept: Callable[[str], bool]) -> SimConfig:
    terms = {name: weight for name, weight in config.reward.terms.items() if is_kept(name)}
    blocks = tuple(name for name in config.observe.blocks if is_kept(name))
    return replace(config, reward=replace(config.reward, terms=terms), observe=replace(config.observe, blocks=blocks))


def _plain(function: Any) -> Any:
    """Return the Python function of one that is decorated with `njit`."""
    return getattr(function, "py_func", function)
