"""Read jobs files: TOML, and the JSON files and YAML experiments of Isaac Lab Arena.

[defaults]                      {"jobs": [{"name": "dim", "policy_type": "zero_action", "num_episodes": 20,
envs = 4                                   "arena_env_args": {"environment": "table_top", "num_envs": 4,
[[jobs]]                                                      "light_intensity": 200}}]}
name = "dim"
...
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from roadworthy.config import Layer, read, resolve
from roadworthy.errors import ConfigError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.arena_experiment import read_experiment
from roadworthy.jobs.record import Status

# The keys of the JSON form, and ours.
_SAME = {
    "name": "name",
    "policy_type": "policy",
    "policy_config_dict": "policy_config",
    "policy_args": "policy_config",
    "num_envs": "envs",
    "num_steps": "steps",
    "num_episodes": "episodes",
    "num_rebuilds": "rebuilds",
    "language_instruction": "instruction",
    "seed": "seed",
}
_WORDS = {"zero_action": "zero", "random_action": "random"}  # policies with another name there


@dataclass(frozen=True)
class JobsFile:
    """The jobs of a file in its order, and notes on keys that are not used."""

    path: Path
    jobs: tuple[Job, ...]
    notes: tuple[str, ...] = ()


def read_jobs(path: str | Path) -> JobsFile:
    """Read a jobs file; its suffix decides its form. One error lists all faults."""
    path = Path(path)
    ending = path.suffix.lower()
    notes: list[str] = []
    if ending == ".toml":
        entries = _toml_entries(path)
    elif ending == ".json":
        entries, notes = _json_entries(path)
    elif ending in (".yaml", ".yml"):
        entries, notes = _from_json_entries(read_experiment(path), path, Layer(str(path), {}))
    else:
        raise ConfigError(f"jobs file {str(path)!r} ends in {ending or 'nothing'!r}, expected .toml, .json or .yaml")
    jobs: list[Job] = []
    faults: list[str] = []
    for layers in entries:
        try:
            jobs.append(resolve(Job, layers).config)
        except ConfigError as error:
            faults.append(str(error))
    names = [job.name for job in jobs]
    faults += [
        f"{path}: {names.count(name)} jobs have the name {name!r}; names must be unique"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not entries:
        faults.append(f"{path}: it has no jobs; expected a list `jobs`")
    if faults:
        raise ConfigError("\n".join(faults))
    return JobsFile(path, tuple(jobs), tuple(notes))


def _toml_entries(path: Path) -> list[list[Layer]]:
    values = dict(read(path).values)
    defaults, jobs = values.pop("defaults", {}), values.pop("jobs", [])
    if values:
        raise ConfigError(f"{path}: {next(iter(values))} is unknown; known: defaults, jobs")
    if not isinstance(defaults, Mapping) or not _is_list_of_tables(jobs):
        raise ConfigError(f"{path}: expected tables [[jobs]], and [defaults] for settings that they share")
    defaults = dict(defaults)
    if "seed" in defaults:  # shared by all jobs, so each derives its own from it
        defaults["file_seed"] = defaults.pop("seed")
    shared = Layer(f"{path} [defaults]", defaults)
    return [[shared, Layer(f"{path}, job {_called(entry, k)}", entry)] for k, entry in enumerate(jobs)]


def _json_entries(path: Path) -> tuple[list[list[Layer]], list[str]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"can't read jobs file {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, Mapping) or not _is_list_of_tables(content.get("jobs")):
        raise ConfigError(f'{path}: expected {{"jobs": [...]}} with an object for each job')
    shared = Layer(f"{path}, seed", {"file_seed": content["seed"]} if content.get("seed") is not None else {})
    entries, notes = _from_json_entries(content["jobs"], path, shared)
    return entries, [*(f"{path}: {key} is not used" for key in content if key not in ("jobs", "seed")), *notes]


def _from_json_entries(
    jobs: Sequence[Mapping[str, Any]], path: Path, shared: Layer
) -> tuple[list[list[Layer]], list[str]]:
    """Return the layers of jobs in the JSON form, and notes on keys that are not used."""
    entries: list[list[Layer]] = []
    notes: list[str] = []
    for number, entry in enumerate(jobs):
        source = f"{path}, job {_called(entry, number)}"
        values, unknown = _from_json_form(entry, source)
        notes += [f"{source}: {key} is not used" for key in unknown]
        entries.append([shared, Layer(source, values)])
    return entries, notes


def _from_json_form(entry: Mapping[str, Any], source: str) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a job under our keys, and the unknown keys. Our keys are accepted as well."""
    own = {field.name for field in fields(Job)}
    values = {_SAME.get(key, key): value for key, value in entry.items() if value is not None}
    status = values.pop("status", Status.PENDING.value)
    arguments = dict(values.pop("arena_env_args", {})) | dict(values.get("arguments", {}))
    if arguments.get("environment") is not None:
        values.setdefault("environment", arguments.pop("environment"))
    count = arguments.pop("num_envs", None)
    if count is not None:
        values.setdefault("envs", count)
    if values.pop("variations", None):
        arguments["variations"] = entry["variations"]
    values["arguments"] = {name: value for name, value in arguments.items() if value is not None}
    if values.get("policy") in _WORDS:
        values["policy"] = _WORDS[values["policy"]]
    known = [member.value for member in Status]
    if status not in known:
        raise ConfigError(f"{source}: status is {status!r}, expected one of {', '.join(known)}")
    if status in (Status.COMPLETED.value, Status.SKIPPED.value):
        values["skip"] = True
    unknown = [key for key in values if key not in own]
    return {key: value for key, value in values.items() if key in own}, unknown


def _called(entry: Mapping[str, Any], number: int) -> str:
    name = entry.get("name")
    return repr(name) if isinstance(name, str) and name else str(number)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
