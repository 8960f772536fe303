"""Small logs with the fields that the tools' own documentation or source gives them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SUCCESSES = (True, False, True, True, False, True)


def arena(folder: Path, successes: Sequence[bool | None] = SUCCESSES, name: str = "episode_results.jsonl") -> Path:
    """Two environments, whose episodes finish alternately."""
    lines = [
        {
            "job_name": "pick",
            "env_id": k % 2,
            "episode_in_env": k // 2,
            "seed": 42,
            "success": success,
            "episode_length": 100 + 10 * k,
            "language_instruction": "pick up the banana",
            "timestamp": f"2026-07-06T09:08:{10 + k}.5",
            "variations": {"light.hdr_image": "office" if k % 2 else "home", "camera": [0.1 * k, -0.2]},
        }
        for k, success in enumerate(successes)
    ]
    return _write_lines(folder / name, lines)


def episode_summary(folder: Path) -> Path:
    lines = [
        {
            "job_name": "pick",
            "episode_idx": k,
            "policy_type": "zero",
            "arena_env_args": {"environment": "kitchen", "light_intensity": 500.0 + k},
            "outcomes": {"success": success, "progress": 0.5},
        }
        for k, success in enumerate(SUCCESSES)
    ]
    return _write_lines(folder / "episode_summary.jsonl", lines)


def lerobot(folder: Path) -> Path:
    """One task: the form of a single environment, and of all earlier versions."""
    episodes = [
        {"episode_ix": k, "sum_reward": 1.5 * k, "max_reward": 1.0, "success": success, "seed": 1000 + k}
        for k, success in enumerate(SUCCESSES)
    ]
    figures = {"avg_sum_reward": 3.75, "pc_success": 100.0 * 4 / 6, "eval_s": 12.0}
    return _write(folder / "eval_info.json", {"per_episode": episodes, "aggregated": figures, "video_paths": ["a.mp4"]})


def lerobot_tasks(folder: Path) -> Path:
    """Two groups of tasks, of which one has two tasks."""
    tasks = [
        {
            "task_group": group,
            "task_id": task,
            "metrics": {
                "sum_rewards": [1.0, 0.0, 1.0],
                "max_rewards": [1.0, 0.0, 1.0],
                "successes": [True, False, True],
                "video_paths": [],
            },
        }
        for group, task in (("libero_10", 0), ("libero_10", 1), ("libero_goal", 0))
    ]
    overall = {"pc_success": 200.0 / 3.0, "n_episodes": 9, "video_paths": []}
    return _write(folder / "eval_info.json", {"per_task": tasks, "per_group": {}, "overall": overall})


def vla_eval(folder: Path) -> Path:
    tasks = [
        {
            "task": f"pick up bowl {task}",
            "episodes": [
                {"episode_id": 0, "metrics": {"success": True, "subtasks": 2}, "steps": 78, "elapsed_sec": 12.3},
                {"episode_id": 1, "metrics": {"success": False, "subtasks": 1}, "steps": 220, "elapsed_sec": 30.0},
                {"episode_id": 2, "metrics": {"success": False}, "failure_reason": "exception", "failure_detail": "x"},
            ],
            "num_episodes": 3,
            "avg_steps": 99.3,
            "mean_success": 0.3333,
        }
        for task in range(2)
    ]
    whole = {
        "benchmark": "LIBEROBenchmark_libero_spatial",
        "mode": "sync",
        "harness_version": "0.3.0",
        "created_at": "2026-07-06T09:08:00+00:00",
        "tasks": tasks,
        "config": {"params": {"seed": 7}},
        "server_info": {"model_name": "openvla-7b"},
        "seed": 7,
        "mean_success": 0.3333,
    }
    return _write(folder / "libero.json", whole)


def inspect_samples(epochs: int = 2) -> list[dict[str, Any]]:
    letters = ("C", "I", "P")
    return [
        {
            "id": sample,
            "epoch": epoch + 1,
            "input": "question",
            "target": "Yes",
            "messages": [{"role": "user"}, {"role": "assistant"}],
            "scores": {"match": {"value": letters[sample - 1], "answer": "x"}, "judge": {"value": 0.25}},
            "metadata": {"level": sample, "topic": "math", "text": "t" * 500},
            "model_usage": {"m": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}},
            "total_time": 1.5,
        }
        for epoch in range(epochs)
        for sample in (1, 2, 3)
    ]


def inspect_header(status: str = "success", epochs: int = 2) -> dict[str, Any]:
    return {
        "version": 2,
        "status": status,
        "eval": {
            "run_id": "r",
            "created": "2025-02-11T15:17:00-05:00",
            "task": "popularity",
            "task_id": "t",
            "model": "openai/gpt-4o-mini",
            "dataset": {"name": "popularity", "samples": 3, "sample_ids": [1, 2, 3]},
            "config": {"epochs": epochs},
            "scorers": [{"name": "match"}, {"name": "judge"}],
        },
        "results": {"scores": [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"value": 0.5}}}]},
    }


def inspect_eval(folder: Path, samples: list[dict[str, Any]] | None = None, status: str = "success") -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": inspect_header()["eval"]}))
        for sample in inspect_samples() if samples is None else samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        if status != "started":
            archive.writestr("header.json", json.dumps(inspect_header(status)))
    return path


def inspect_json(folder: Path) -> Path:
    return _write(folder / "log.json", {**inspect_header(), "samples": inspect_samples()})


ROWS = [
    {
        "episode": k,
        "seed": k,
        "reached_goal": success,
        "steps": 40 + k,
        "light": 0.1 * k,
        "surface": "ice" if k % 2 else "dry",
    }
    for k, success in enumerate(SUCCESSES)
]


def csv(folder: Path) -> Path:
    path = folder / "table.csv"
    lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n")
    return path


def tsv(folder: Path) -> Path:
    path = folder / "table.tsv"
    path.write_text(csv(folder).read_text().replace(",", "\t"))
    return path


def json_lines(folder: Path) -> Path:
    return _write_lines(folder / "table.jsonl", ROWS)


def json_list(folder: Path) -> Path:
    return _write(folder / "table.json", {"episodes": ROWS, "version": 3})


def parquet(folder: Path) -> Path:
    path = folder / "table.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


ALL: dict[str, Callable[[Path], Path]] = {
    "arena": arena,
    "episode_summary": episode_summary,
    "lerobot": lerobot,
    "lerobot_tasks": lerobot_tasks,
    "vla_eval": vla_eval,
    "inspect_eval": inspect_eval,
    "inspect_json": inspect_json,
    "csv": csv,
    "tsv": tsv,
    "json_lines": json_lines,
    "json_list": json_list,
    "parquet": parquet,
}


def _write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2))
    return path


def _write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
