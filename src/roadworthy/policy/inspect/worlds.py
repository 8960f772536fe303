"""The worlds in which a policy is looked at."""

from __future__ import annotations

from enum import Enum
from typing import Any

from roadworthy.config import Layer


class WorldKind(Enum):
    """Who is there beside the agents that the policy drives."""

    EGO = "ego"  # everybody who can be driven is an ego: nobody else reacts
    REPLAY = "replay"  # the policy drives the self-driving car among recorded traffic
    COPLAYERS = "coplayers"  # half of the driven agents are driven by other policies


def world_layer(kind: WorldKind, partners: int = 1) -> Layer:
    """What a kind of world changes in the simulation that a policy was trained in.

    partners: how many policies drive co-players; an episode draws one of them.
    """
    changes: dict[WorldKind, dict[str, Any]] = {
        WorldKind.EGO: {"control": {"ego_share": 1.0}, "open": {"traffic": 0}},
        WorldKind.REPLAY: {"mode": "replay", "control": {"who": "sdc", "others": "replay", "ego_share": 1.0}},
        WorldKind.COPLAYERS: {"control": {"ego_share": 0.5}, "hidden": {"partners": partners}},
    }
    return Layer(f"worlds {kind.value}", {**changes[kind], "disturb": {"clean": True}})
