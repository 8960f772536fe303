"""The kinds of worlds for inspection."""

from __future__ import annotations

from enum import Enum
from typing import Any

from roadworthy.config import Layer


class WorldKind(Enum):
    """Which road users there are besides the agents of the policy."""

    EGO = "ego"  # all agents are egos; nothing else reacts
    REPLAY = "replay"  # the policy controls the self-driving car among recorded traffic
    COPLAYERS = "coplayers"  # other policies control half of the agents


def world_layer(kind: WorldKind, partners: int = 1) -> Layer:
    """Return the changes of a kind of world to the simulation that a policy was trained in.

    partners: Number of policies of co-players, of which each episode draws one.
    """
    changes: dict[WorldKind, dict[str, Any]] = {
        WorldKind.EGO: {"control": {"ego_share": 1.0}, "open": {"traffic": 0}},
        WorldKind.REPLAY: {"mode": "replay", "control": {"who": "sdc", "others": "replay", "ego_share": 1.0}},
        WorldKind.COPLAYERS: {"control": {"ego_share": 0.5}, "hidden": {"partners": partners}},
    }
    return Layer(f"worlds {kind.value}", {**changes[kind], "disturb": {"clean": True}})
