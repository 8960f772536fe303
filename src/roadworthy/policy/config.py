"""Settings of a policy network, with defaults and meanings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from roadworthy.checks import at_least
from roadworthy.errors import ConfigError, DeprecatedNameWarning, UsageError
from roadworthy.plugins import is_code, known, nearest

CORES = "roadworthy.cores"  # the entry point group
Range = tuple[float, float]


class ActionDistribution(Enum):
    """How the discrete choices along and across the lane are distributed."""

    MULTI_DISCRETE = "multi_discrete"  # one choice for each, independent of each other
    JOINT = "joint"  # one choice among all pairs


@dataclass(frozen=True)
class TransformerConfig:
    """The transformer core."""

    layers: int = 2
    # Number of blocks of attention and MLP.
    heads: int = 4
    # Number of heads of each attention layer; they share the hidden size.
    context: int = 256
    # Number of steps that the transformer attends to, including the current one; older steps are forgotten.

    def __post_init__(self) -> None:
        at_least(self, 1, "layers", "heads", "context")


@dataclass(frozen=True)
class ConditioningConfig:
    """Training coefficients that vary between agents and that the policy observes, besides the reward weights.

    Each row draws its values from the ranges at the start of its episode. A range of one value is off.
    """

    renamed_keys: ClassVar = {"entropy": "ent_coef", "discount": "gamma"}

    ent_coef: Range = (0.0, 0.0)
    # Range of the entropy coefficient that a policy is conditioned on, in place of `ppo.ent_coef`.
    gamma: Range = (0.0, 0.0)
    # Range of the discount factor that a policy is conditioned on, in place of `ppo.gamma`.

    def __post_init__(self) -> None:
        for name in ("ent_coef", "gamma"):
            low, high = getattr(self, name)
            if not 0.0 <= low <= high:
                raise ConfigError(
                    f"{name} is the range {low} to {high}, expected numbers from 0 up, the lower one first"
                )
        if self.gamma[1] > 1.0:
            raise ConfigError(f"the range of gamma ends at {self.gamma[1]}, expected at most 1")

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients that vary."""
        return tuple(name for name in ("ent_coef", "gamma") if getattr(self, name)[0] < getattr(self, name)[1])

    def places(self, given: Mapping[str, float]) -> list[float | None]:
        """Return where in its range each coefficient that varies lies, from 0 to 1; None where no value is given."""
        values: dict[str, float] = {}
        for name, value in given.items():
            new = self.renamed_keys.get(name, name)
            if new != name:
                warnings.warn(f"conditioning {name} is deprecated; use {new}", DeprecatedNameWarning, stacklevel=2)
            if new not in self.names:
                raise UsageError(
                    f"conditioning {name!r} is unknown to this policy; known: {', '.join(self.names) or 'none'}"
                )
            low, high = getattr(self, new)
            if not low <= value <= high:
                raise UsageError(f"conditioning {new} is {value}, expected {low} to {high}, as in training")
            values[new] = (value - low) / (high - low)
        return [values.get(name) for name in self.names]


@dataclass(frozen=True)
class PolicyConfig:
    """A policy network."""

    renamed_keys: ClassVar = {"traits": "conditioning"}
    renamed_values: ClassVar = {"actions": {"parts": "multi_discrete"}}

    core: str = "mlp"
    # Memory core: mlp (no memory), lstm, transformer, an entry point of `roadworthy.cores`, or module:Name.
    core_config: dict[str, Any] = field(default_factory=dict)
    # Settings of a core that is not built in.
    encoder: int = 64
    # Width of the MLP that encodes each entry of an observation block before the maximum over entries is taken.
    encoder_layers: int = 2
    # Number of layers of the encoder's MLPs.
    hidden: int = 256
    # Width of the core.
    actions: ActionDistribution = ActionDistribution.MULTI_DISCRETE
    # Distribution of discrete actions.
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    conditioning: ConditioningConfig = field(default_factory=ConditioningConfig)

    def __post_init__(self) -> None:
        if not is_code(self.core) and self.core not in (cores := known(CORES)):
            raise ConfigError(f"unknown core {self.core!r}; {nearest(self.core, cores)}; or give module:Name")
        at_least(self, 1, "encoder", "encoder_layers", "hidden")
        if self.core == "transformer" and self.hidden % (2 * self.transformer.heads):
            raise ConfigError(
                f"hidden is {self.hidden}, which {self.transformer.heads} heads cannot share equally; "
                f"expected a multiple of {2 * self.transformer.heads}"
            )
