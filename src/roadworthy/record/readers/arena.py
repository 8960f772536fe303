"""Isaac Lab Arena's per-episode results, `episode_results*.jsonl`, as rows.

One line is one episode: what was drawn for it stands in `variations`, and its results at the top level.

    {"job_name": "pick", "env_id": 3, "episode_in_env": 0, "seed": 42, "success": true, "episode_length": 204,
     "language_instruction": "...", "variations": {"light.intensity": 812.5, "wrist_camera": [0.01, -0.02, 0.0]}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FILES = re.compile(r"episode_results(_rebuild\d+)?(_rank\d+)?\.jsonl")
# Numbers of a line that say which episode it is, and not how it went.
_NOT_OUTCOMES = ("env_id", "episode_in_env", "seed")
_NAME = {"job_name": "", "env_id": "env ", "episode_in_env": "episode "}


def is_arena_result(row: Mapping[str, Any]) -> bool:
    """Say whether a line has the form of Arena's per-episode results."""
    return "outcomes" not in row and ("variations" in row or ("env_id" in row and "success" in row))


def from_arena_result(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a line into a row with `factors` and `outcomes`; fields with another meaning here get other names.

    Every true, false or number at the top level is an outcome, and so are those of `progress`. A success that was not
    judged is null there and missing here. All lines of a build share the seed that the simulator was built with, so an
    episode is numbered by its environment and its place there: two jobs with one seed have the same draws.
    """
    outcomes = {name: value for name, value in row.items() if name not in _NOT_OUTCOMES and _is_outcome(value)}
    progress = row.get("progress")
    if isinstance(progress, Mapping):
        outcomes |= {f"progress.{name}": value for name, value in progress.items() if _is_outcome(value)}
    kept = {name: row[name] for name in ("job_name", "language_instruction", "timestamp", "status") if name in row}
    name = " ".join(f"{word}{row.get(key, '?')}" for key, word in _NAME.items())
    renamed = {"env": "env_id", "steps": "episode_length", "seed": "seed"}
    return {
        **kept,
        **{name: row[theirs] for name, theirs in renamed.items() if theirs in row},
        "episode_id": name,
        "episode_idx": f"{row.get('env_id', '?')}/{row.get('episode_in_env', '?')}",
        "factors": dict(row.get("variations") or {}),
        "outcomes": outcomes,
    }


def _is_outcome(value: Any) -> bool:
    return isinstance(value, bool | int | float)
