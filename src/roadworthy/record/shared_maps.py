"""What scenarios of a pack share: the map that several of them lie on, which makes their results alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadworthy.scenario.pack import Pack


def shared_maps(pack: Pack, scenarios: Sequence[int]) -> list[str | None]:
    """Return a name of the map of each of these scenarios, the same in every pack that holds the map.

    Scenarios that all lie on one map have None: their figures are about this map, on which each scenario is on its own.
    """
    checksums = [pack.map_checksum(number) for number in scenarios]
    if len(set(checksums)) < 2:
        return [None] * len(checksums)
    return [f"map-{checksum:016x}" for checksum in checksums]
