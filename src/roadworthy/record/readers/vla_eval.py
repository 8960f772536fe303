"""Read the result files of vla-eval, the VLA evaluation harness of AllenAI: one file per benchmark, or a merged one.

{"benchmark": "LIBERO", "harness_version": "0.3", "mean_success": 0.5, "tasks": [{"task": "pick up the bowl",
 "episodes": [{"episode_id": 0, "metrics": {"success": true}, "steps": 78, "elapsed_sec": 12.3},
              {"episode_id": 1, "metrics": {"success": false}, "failure_reason": "exception"}]}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roadworthy.record.readers.log import Log, Record, Role, flat
from roadworthy.record.readers.mapping import ColumnMapping, rows_for_analysis
from roadworthy.record.readers.row_streams import Skip, read_whole_json
from roadworthy.record.readers.whole_json import as_list, as_share, as_table, as_text, starts_with_keys

_ROLES = {
    "task": Role.CLUSTER,
    "episode": Role.SCENARIO,
    "episode_id": Role.IGNORE,
    "metrics.success": Role.SUCCESS,
    "metrics.*": Role.OUTCOME,
    "steps": Role.LENGTH,
    "elapsed_sec": Role.OUTCOME,
    "failure_reason": Role.ERROR,
    "failure_detail": Role.IGNORE,
    "sid": Role.IGNORE,
    "eid": Role.IGNORE,
}
_POLICY_KEYS = ("policy", "model", "model_name", "name", "checkpoint", "model_path")


class VlaEvalReader:
    """Reads a result file of vla-eval."""

    def detects(self, path: Path) -> bool:
        """Return whether a .json file starts with a benchmark and its tasks."""
        return starts_with_keys(path, ("benchmark", "tasks"))

    def open(self, path: Path, skip: Skip | None = None) -> Log:
        """Return the log; each task is a cluster, and an episode with a failure reason is one that crashed."""
        whole = as_table(path, "the file", read_whole_json(path))
        tasks = as_list(path, "tasks", whole.get("tasks"))
        rows = [row for number, task in enumerate(tasks) for row in _episodes(path, number, task)]
        server = whole.get("server_info")
        names = [server.get(key) for key in _POLICY_KEYS] if isinstance(server, dict) else []
        facts = {
            key: whole[key] for key in ("mode", "harness_version", "created_at", "seed", "eval_id") if key in whole
        }
        notes = ("the file says that it is partial: some shards are missing",) if whole.get("partial") is True else ()
        return Log(
            path,
            "vla_eval",
            lambda: iter(rows),
            _ROLES,
            job=as_text(whole.get("benchmark")),
            policy=next((name for name in names if isinstance(name, str) and name), ""),
            has_plan=True,
            reported=as_share(whole.get("mean_success")),
            facts={key: value for key, value in facts.items() if isinstance(value, int | float | str)},
            notes=notes,
        )

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows with factors and outcomes."""
        return rows_for_analysis(ColumnMapping.of(self.open(path)))


def _episodes(path: Path, number: int, task: Any) -> Iterator[Record]:
    table = as_table(path, f"tasks[{number}]", task)
    name = str(table.get("task", number))
    for place, episode in enumerate(as_list(path, f"tasks[{number}].episodes", table.get("episodes"))):
        where = f"tasks[{number}].episodes[{place}]"
        values = flat(as_table(path, where, episode), f"{path}, {where}")
        label = f"{name}-episode-{values.get('episode_id', place)}"
        yield Record(where, {**values, "task": name, "episode": label})
