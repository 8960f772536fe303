"""Read LeRobot's `eval_info.json`.

One task, or an earlier version: `per_episode` has the episodes, with their seeds.

    {"per_episode": [{"episode_ix": 0, "sum_reward": 1.0, "max_reward": 1.0, "success": true, "seed": 1000}],
     "aggregated": {"pc_success": 100.0}}

Several tasks: `per_task` has lists with an entry per episode.

    {"per_task": [{"task_group": "libero_10", "task_id": 0, "metrics": {"successes": [true], "sum_rewards": [1.0]}}],
     "per_group": {...}, "overall": {"pc_success": 100.0}}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError
from roadworthy.record.readers.log import Log, Record, Role, flat
from roadworthy.record.readers.mapping import ColumnMapping, rows_for_analysis
from roadworthy.record.readers.row_streams import Skip, read_whole_json
from roadworthy.record.readers.whole_json import as_list, as_share, as_table, starts_with_keys

_ONE_TASK = {"success": Role.SUCCESS, "seed": Role.SEED, "episode_ix": Role.IGNORE, "episode": Role.ID}
_TASKS = {"task_group": Role.JOB, "task": Role.CLUSTER, "episode": Role.SCENARIO, "success": Role.SUCCESS}
_OUTCOMES = dict.fromkeys(
    ("sum_reward", "max_reward", "safety_cost", "had_violation", "violation_steps", "constraint_violations.*"),
    Role.OUTCOME,
)
# Lists of a task by the name that one value has.
_LISTS = {
    "successes": "success",
    "sum_rewards": "sum_reward",
    "max_rewards": "max_reward",
    "safety_costs": "safety_cost",
    "violation_steps": "violation_steps",
    "constraint_violations": "constraint_violations",
}


class LeRobotReader:
    """Reads an `eval_info.json`."""

    def detects(self, path: Path) -> bool:
        """Return whether a .json file starts with the episodes or tasks of an evaluation."""
        return starts_with_keys(path, ("per_episode",)) or starts_with_keys(path, ("per_task",))

    def open(self, path: Path, skip: Skip | None = None) -> Log:
        """Return the log; of several tasks, each task is a cluster, and each group of tasks a job."""
        whole = as_table(path, "the file", read_whole_json(path))
        if "per_episode" in whole:
            rows = _episodes(path, whole["per_episode"])
            roles, figures = {**_ONE_TASK, **_OUTCOMES}, whole.get("aggregated")
        elif "per_task" in whole:
            rows = _task_episodes(path, whole["per_task"])
            roles, figures = {**_TASKS, **_OUTCOMES}, whole.get("overall")
        else:
            raise RecordError(
                f"{path}: has neither per_episode nor per_task, so it holds no episodes, only figures of all together; "
                "evaluate again with lerobot-eval"
            )
        reported = as_share(figures.get("pc_success") if isinstance(figures, dict) else None, 100.0)
        facts = {"video_paths": None, **figures} if isinstance(figures, dict) else {}
        kept = {name: value for name, value in facts.items() if isinstance(value, int | float | str)}
        return Log(
            path, "lerobot", lambda: iter(rows), roles, has_plan=True, reported=reported, facts={"figures": kept}
        )

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows with factors and outcomes."""
        return rows_for_analysis(ColumnMapping.of(self.open(path)))


def _episodes(path: Path, episodes: Any) -> list[Record]:
    rows = []
    for number, episode in enumerate(as_list(path, "per_episode", episodes)):
        place = f"per_episode[{number}]"
        values = flat(as_table(path, place, episode), f"{path}, {place}")
        rows.append(Record(place, {**values, "episode": f"episode-{values.get('episode_ix', number)}"}))
    return rows


def _task_episodes(path: Path, tasks: Any) -> list[Record]:
    return [row for number, task in enumerate(as_list(path, "per_task", tasks)) for row in _of_task(path, number, task)]


def _of_task(path: Path, number: int, task: Any) -> Iterator[Record]:
    place = f"per_task[{number}]"
    table = as_table(path, place, task)
    metrics = as_table(path, f"{place}.metrics", table.get("metrics"))
    lists = {key: metrics[key] for key in _LISTS if metrics.get(key) not in (None, [])}
    for key, values in lists.items():
        if not isinstance(values, list):
            raise RecordError(f"{path}, {place}.metrics.{key}: expected a list with an entry per episode")
    successes = lists.get("successes", [])
    if not successes:
        raise RecordError(f"{path}, {place}.metrics: has no list `successes`, so no episodes")
    odd = next((key for key, values in lists.items() if len(values) != len(successes)), None)
    if odd is not None:
        raise RecordError(
            f"{path}, {place}.metrics: {odd} has {len(lists[odd])} entries, successes {len(successes)}; expected one "
            "per episode in each"
        )
    group, name = table.get("task_group", "tasks"), table.get("task_id", number)
    for episode in range(len(successes)):
        values = {word: lists[key][episode] for key, word in _LISTS.items() if key in lists}
        whole = {"task_group": group, "task": f"task-{name}", "episode": f"task-{name}-episode-{episode}", **values}
        at = f"{place}, episode {episode}"
        yield Record(at, flat(whole, f"{path}, {at}"))
