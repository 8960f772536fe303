"""Decide which policies of a recorded run may run without `--trust`.

A run folder from a stranger is data. Built-in policies and checkpoints hold no code: a checkpoint is numbers and a JSON
file that is checked. `module:Class`, `file.py:Class` and declared policies run code, and `ws://` sends observations to
a server: they need consent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roadworthy.errors import ConfigError, UsageError
from roadworthy.plugins import is_code
from roadworthy.policy.spec import Kind, kind_of
from roadworthy.sim.config import SimConfig
from roadworthy.sim.extensions import code_of


def danger_of(spec: str) -> str | None:
    """Return what would happen if a recorded policy ran; None if that executes nothing that the record names."""
    kind = kind_of(spec)
    if kind is Kind.REMOTE:
        return f"connect to {spec} and use the actions that it returns"
    if kind is Kind.CODE:
        module, _, name = spec.rpartition(":")
        return f"import {module} and run {name}"
    if kind is Kind.DECLARED:
        return f"run {spec}, which an installed package declares"
    return None


def require_trust(folder: object, specs: Iterable[str]) -> None:
    """Raise UsageError if any of these policies, which a run names, is code or an address."""
    dangers = {spec: danger for spec in specs if (danger := danger_of(spec)) is not None}
    if dangers:
        words = "; ".join(f"policy {spec!r} would {danger}" for spec, danger in dangers.items())
        raise UsageError(
            f"{folder}: run.json names code or an address: {words}. Roadworthy does not run code or contact "
            "addresses named in a run folder; if you trust its source, add --trust"
        )


def require_trusted_code(folder: object, what: str, names: Iterable[str]) -> None:
    """Raise UsageError if any of these extensions, which a run names, is code and not one of an installed package.

    what: the kind of extension, for the message, such as "metric".
    """
    code = [name for name in names if is_code(name)]
    if code:
        raise UsageError(
            f"{folder}: run.json names code: {what} {code[0]!r}. Roadworthy does not run code named in a run folder; "
            "if you trust its source, add --trust"
        )


def require_own_code(config: SimConfig, checkpoint: str, own: Iterable[Any]) -> None:
    """Raise ConfigError if a reward term or an observation block is code that only a checkpoint's settings name.

    Args:
        config: The settings of a simulation.
        checkpoint: The source of the checkpoint's settings, for the message.
        own: Tables `env` of the user's own layers; what these name may run.
    """
    named: set[str] = set()
    for env in own:
        named.update(_within(env, "reward", "terms") or (), _within(env, "observe", "blocks") or ())
    for name in code_of(config):
        if name not in named:
            what, key = ("reward term", "reward.terms") if name in config.reward.terms else ("block", "observe.blocks")
            raise ConfigError(
                f"{checkpoint}: it was trained with the {what} {name!r}, which is code, and code that a checkpoint "
                f"names does not run; if you trust it, name it in env.{key} yourself, or install it as an entry point "
                "and train with that name"
            )


def _within(values: Any, *keys: str) -> Any:
    """Return the value at a dotted key of plain values that were not checked; None if it is not there."""
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def recorded_specs(header: Mapping[str, Any], coplayers: Iterable[str], checkpoint: str | None) -> list[str]:
    """List the policies that a run names: its own, unless another one is given in its place, and its co-players."""
    own = header.get("policy_spec")
    return [str(spec) for spec in (*([] if checkpoint or not own else [own]), *coplayers)]
