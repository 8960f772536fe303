"""What a policy's network is made of: every setting, its default and what it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from roadworthy.errors import ConfigError

Range = tuple[float, float]


class CoreKind(Enum):
    """What a policy remembers."""

    MLP = "mlp"  # nothing
    LSTM = "lstm"  # a state of fixed size
    TRANSFORMER = "transformer"  # the last `context` steps of its episode


class ActionsAs(Enum):
    """How the choices along and across are drawn."""

    PARTS = "parts"  # one choice of each, independent of each other
    JOINT = "joint"  # one of all pairs


@dataclass(frozen=True)
class TransformerConfig:
    """The transformer core."""

    layers: int = 2
    # Blocks of attention and MLP.
    heads: int = 4
    # Of each attention; they share the hidden size.
    context: int = 256
    # How many steps are remembered, the present one included. Of a longer episode, the last so many are seen.

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "context"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")


@dataclass(frozen=True)
class TraitConfig:
    """What a policy is told about how to drive, besides the reward's weights, which are part of its observation.

    Each row draws its own at the start of its episode, from the range; a range of one value is no trait.
    """

    entropy: Range = (0.0, 0.0)
    # The weight of the entropy in its objective: how random it is to be.
    discount: Range = (0.0, 0.0)
    # Its discount: how far it looks ahead.

    def __post_init__(self) -> None:
        for name in ("entropy", "discount"):
            low, high = getattr(self, name)
            if not 0.0 <= low <= high:
                raise ConfigError(f"{name} is the range {low} to {high}, expected numbers from 0 on, the lower first")
        if self.discount[1] > 1.0:
            raise ConfigError(f"discount goes up to {self.discount[1]}, expected at most 1")

    @property
    def names(self) -> tuple[str, ...]:
        """The traits that vary."""
        return tuple(name for name in ("entropy", "discount") if getattr(self, name)[0] < getattr(self, name)[1])


@dataclass(frozen=True)
class PolicyConfig:
    """A policy's network."""

    core: CoreKind = CoreKind.MLP
    # What it remembers.
    encoder: int = 64
    # Width of the MLP that every entry of a block goes through before the maximum over entries is taken.
    encoder_layers: int = 2
    # Its layers.
    hidden: int = 256
    # Width of the core.
    actions: ActionsAs = ActionsAs.PARTS
    # How discrete choices are drawn.
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    traits: TraitConfig = field(default_factory=TraitConfig)

    def __post_init__(self) -> None:
        for name in ("encoder", "encoder_layers", "hidden"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
        if self.core is CoreKind.TRANSFORMER and self.hidden % (2 * self.transformer.heads):
            raise ConfigError(
                f"hidden is {self.hidden}, which {self.transformer.heads} heads can't share in even parts; "
                f"expected a multiple of {2 * self.transformer.heads}"
            )
