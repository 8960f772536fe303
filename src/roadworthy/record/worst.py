"""Which of two episodes went worse: one order for reports, filmstrips and videos, by outcomes alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# What tells episodes apart whose main outcome is equal, most or least first.
TIE_BREAKERS = {"infractions": "descending", "goal_rate": "ascending"}


def sorted_worst_first(episodes: pa.Table, outcome: str | None) -> pa.Table:
    """Rows of episodes: the lowest outcome first, of equal ones by TIE_BREAKERS, then by id.

    An outcome that the table lacks tells nothing apart; rows without a value of it come last.
    """
    ways = {**({outcome: "ascending"} if outcome is not None else {}), **TIE_BREAKERS}
    keys = [(f"outcomes.{name}", way) for name, way in ways.items() if f"outcomes.{name}" in episodes.column_names]
    if not keys:
        return episodes
    return episodes.take(pc.sort_indices(episodes, [*keys, ("episode_id", "ascending")]))
