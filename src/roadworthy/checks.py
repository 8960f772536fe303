"""Checks of the numbers in a config, for `__post_init__`. A setting that is None is not checked."""

from __future__ import annotations

from typing import Any

from roadworthy.errors import ConfigError


def at_least(config: Any, low: float, *names: str) -> None:
    """Require settings to be `low` or more."""
    for name, value in _given(config, names):
        if not value >= low:
            raise ConfigError(f"{name} is {value}, expected at least {low}")


def above(config: Any, low: float, *names: str) -> None:
    """Require settings to be more than `low`."""
    for name, value in _given(config, names):
        if not value > low:
            raise ConfigError(f"{name} is {value}, expected above {low}")


def between(config: Any, low: float, high: float, *names: str) -> None:
    """Require settings to be in a range that includes its ends."""
    for name, value in _given(config, names):
        if not low <= value <= high:
            raise ConfigError(f"{name} is {value}, expected {low} to {high}")


def _given(config: Any, names: tuple[str, ...]) -> list[tuple[str, Any]]:
    values = [(name, getattr(config, name)) for name in names]
    return [(name, value) for name, value in values if value is not None]
