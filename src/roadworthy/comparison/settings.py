"""The settings in which two runs differ, without those that can't change the figures that are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from roadworthy.record import Run

FEW = 3  # differing settings that are named
_REWARD, _LOG = "env.reward.", "log."
_RETURN = "return"  # the figure that rewards decide
_OF_POLICY = ("policy", "policy_config")


def differing_settings(reference: Run, run: Run, metrics: Collection[str]) -> dict[str, tuple[Any, Any]]:
    """Return the values of the settings that differ, by dotted key: in the reference, and in the run.

    Weights of rewards change nothing but `return`, unless they are ranges: then policies observe what was drawn.
    """
    ours, theirs = _settings(reference), _settings(run)
    found = {}
    for name in {**ours, **theirs}:
        values = ours.get(name), theirs.get(name)
        if values[0] == values[1] or name.startswith(_LOG):
            continue
        if _RETURN in metrics or not _is_weight(name, values):
            found[name] = values
    return found


def settings_notes(reference: Run, run: Run, differing: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    """Yield what a reader should know about the settings of two runs: other suites, and values that differ."""
    suites = [_suite(each) for each in (reference, run)]
    if differing and None not in suites and suites[0] != suites[1]:
        yield f"the runs come from different suites: {suites[0]} and {suites[1]}"
    weights = [name for name, values in differing.items() if _is_weight(name, values)]
    if weights:
        yield f"the rewards differ, which changes {_RETURN} and no other figure of the same behavior"
    others = [name for name in differing if name not in weights]
    if others:
        listed = [f"{name} {_shown(differing[name][0])} and {_shown(differing[name][1])}" for name in others[:FEW]]
        rest = f"; and {len(others) - FEW} more, see --json" if len(others) > FEW else ""
        yield f"the settings differ: {'; '.join(listed)}{rest}"


def _is_weight(name: str, values: tuple[Any, Any]) -> bool:
    """Return whether a setting is the weight of a reward that no policy observes."""
    return name.startswith(_REWARD) and not any(isinstance(value, list | tuple) for value in values)


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings with dotted keys."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _settings(run: Run) -> dict[str, Any]:
    """Return the settings that decide what happens, without those of the policy."""
    config = run.header.get("config") or {}
    return {name: value for name, value in leaves(config) if name.partition(".")[0] not in _OF_POLICY}


def _suite(run: Run) -> str | None:
    """Return where the section of a run is declared; None if that was not recorded."""
    source = (run.header.get("origins") or {}).get("type")
    return None if source is None else str(source)


def _shown(value: Any) -> str:
    return "unset" if value is None else str(value)
