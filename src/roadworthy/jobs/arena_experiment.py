"""Isaac Lab Arena's experiments in YAML, as entries of its older JSON form.

shared:                      # laid under every run
  environment: {type: pick_and_place, enable_cameras: true}
runs:
  blue_block:                # the job's name
    environment: {pick_up_object: blue_block}
    environment_builder: {num_envs: 4, language_instruction: Pick up the blue block.}
    policy: {type: zero_action}
    rollout_limit: {num_episodes: 3}
    num_rebuilds: 1
    variations: {light.intensity.enabled: true}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadworthy.errors import ConfigError

_TABLES = ("environment", "environment_builder", "policy", "rollout_limit")
_AS_THEY_ARE = ("num_rebuilds", "variations")


def read_experiment(path: Path) -> list[dict[str, Any]]:
    """Read the runs of an experiment; each becomes an entry with the keys of the JSON form.

    Raises:
        ConfigError: if the file can't be read, or is not an experiment.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"can't read jobs file {str(path)!r}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"jobs file {path}: not YAML: {' '.join(str(error).split())}") from error
    runs = content.get("runs") if isinstance(content, Mapping) else None
    shared = (content.get("shared") or {}) if isinstance(content, Mapping) else {}
    if not isinstance(runs, Mapping) or not isinstance(shared, Mapping):
        raise ConfigError(
            f"jobs file {path}: expected a table `runs` with a table for each run, and `shared` beside it"
        )
    return [_entry(f"{path}, run {name!r}", str(name), run, shared) for name, run in runs.items()]


def _entry(source: str, name: str, run: Any, shared: Mapping[str, Any]) -> dict[str, Any]:
    parts = {key: _table(source, key, run, shared) for key in _TABLES}
    environment, policy = parts["environment"], parts["policy"]
    arguments = {"environment": environment.pop("type", None), **environment, **parts["environment_builder"]}
    known = {*_TABLES, *_AS_THEY_ARE}
    others = {key: value for table in (shared, run) for key, value in table.items() if key not in known}
    return {
        "name": name,
        "language_instruction": arguments.pop("language_instruction", None),
        "arena_env_args": arguments,
        "policy_type": policy.pop("type", None),
        "policy_config_dict": policy,
        **parts["rollout_limit"],
        **{key: run.get(key, shared.get(key)) for key in _AS_THEY_ARE},
        **others,
    }


def _table(source: str, key: str, run: Any, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of a run with that of all runs under it."""
    if not isinstance(run, Mapping):
        raise ConfigError(f"{source} is {run!r}, expected a table")
    tables = [table.get(key) or {} for table in (shared, run)]
    for table in tables:
        if not isinstance(table, Mapping):
            raise ConfigError(f"{source}: {key} is {table!r}, expected a table")
    return {**tables[0], **tables[1]}
