"""The order of episodes from worst to best, by their outcomes, shared by reports, filmstrips and videos."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# How to order episodes whose main outcome is equal.
TIE_BREAKERS = {"infractions": "descending", "goal_rate": "ascending"}


def sorted_worst_first(episodes: pa.Table, outcome: str | None) -> pa.Table:
    """Sort rows of episodes by the outcome, lowest first, then by TIE_BREAKERS, then by id.

    An outcome that the table lacks is ignored; rows without a value come last.
    """
    ways = {**({outcome: "ascending"} if outcome is not None else {}), **TIE_BREAKERS}
    keys = [(f"outcomes.{name}", way) for name, way in ways.items() if f"outcomes.{name}" in episodes.column_names]
    if not keys:
        return episodes
    return episodes.take(pc.sort_indices(episodes, [*keys, ("episode_id", "ascending")]))
