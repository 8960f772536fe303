"""Read `episode_summary.jsonl`, the log of earlier Isaac Lab Arena versions, which Roadworthy's jobs write too.

{"job_name": "pick", "episode_idx": 0, "policy_type": "zero", "arena_env_args": {"light_intensity": 812.5},
 "outcomes": {"success": true}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roadworthy.record.readers.log import Log, Role
from roadworthy.record.readers.row_files import first_row, read_jsonl
from roadworthy.record.readers.row_streams import Skip, json_lines

_ROLES = {
    "job_name": Role.JOB,
    "policy_type": Role.POLICY,
    "run": Role.IGNORE,
    "episode_idx": Role.IGNORE,
    "episode_id": Role.ID,
    "language_instruction": Role.IGNORE,
    "arena_env_args.*": Role.FACTOR,
    "outcomes.success": Role.SUCCESS,
    "outcomes.*": Role.OUTCOME,
    "density.*": Role.IGNORE,
    "density": Role.IGNORE,
    "status": Role.STATUS,
    "error": Role.ERROR,
    "seed": Role.SEED,
    "env": Role.ENVIRONMENT,
    "steps": Role.LENGTH,
}


class EpisodeSummaryReader:
    """Reads an episode summary."""

    def detects(self, path: Path) -> bool:
        """Return whether the first line of a .jsonl file has outcomes and the arguments of an environment."""
        if path.suffix.lower() != ".jsonl" or not path.is_file():
            return False
        row = first_row(path)
        return "arena_env_args" in row and "outcomes" in row

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows as they are: sensitivity analysis knows their fields."""
        return read_jsonl(path)

    def open(self, path: Path, skip: Skip | None = None) -> Log:
        """Return the log."""
        roles = dict(_ROLES)
        if "episode_id" not in first_row(path):
            roles["episode_idx"] = Role.ID
        return Log(path, "episode_summary", lambda: json_lines(path, skip), roles)
