"""The outcomes of an episode in a Gymnasium environment: what the environment reports, and what metrics compute."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy import plugins

METRIC = "metric "  # begins the names of the errors of metrics among the artifacts of an episode
SUCCESS_KEYS = ("success", "is_success")  # of the info of environments that have no `outcomes` in it


@dataclass(frozen=True)
class Ended:
    """What a metric is given: an episode that has ended."""

    steps: int
    rewards: NDArray[np.float64]  # (steps,)
    is_terminated: bool
    is_truncated: bool
    first_info: Mapping[str, Any]  # of the reset
    last_info: Mapping[str, Any]  # of the last step
    last_observation: Any
    factors: Mapping[str, Any]


Metric = Callable[[Ended], float | None]


def load_metrics(names: Sequence[str]) -> dict[str, Metric]:
    """Load metrics by their names in a config file."""
    return {name.rpartition(":")[2]: plugins.load("roadworthy.metrics", name, "metric") for name in names}


def measured(ended: Ended, metrics: Mapping[str, Metric]) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return all outcomes of an episode, and the errors of metrics; an error of a metric does not fail the episode."""
    outcomes, errors = reported(ended), {}
    for name, metric in metrics.items():
        try:
            value = metric(ended)
            outcomes[name] = None if value is None else float(value)
        except Exception as error:
            outcomes[name] = None
            errors[f"{METRIC}{name}"] = f"{type(error).__name__}: {error}"
    return outcomes, errors


def reported(ended: Ended) -> dict[str, float | None]:
    """Return the outcomes that every environment has, and those in the info of this one's last step."""
    outcomes: dict[str, float | None] = {
        "return": float(ended.rewards.sum()),
        "steps": float(ended.steps),
        "terminated": float(ended.is_terminated),
    }
    given = ended.last_info.get("outcomes")
    if isinstance(given, Mapping):
        return outcomes | {str(name): number(value) for name, value in given.items()}
    for key in SUCCESS_KEYS:
        if key in ended.last_info:
            return outcomes | {"success": number(ended.last_info[key])}
    return outcomes


def number(value: Any) -> float | None:
    """Return a finite number of any type as a float, or None for anything else."""
    try:
        found = float(np.asarray(value).item())
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None
