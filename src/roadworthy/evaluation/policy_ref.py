"""The policy of a run: its spec, its configuration, the files that it consists of, and its name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from roadworthy.errors import CheckpointError, UsageError
from roadworthy.evaluation.config import Choice, EvaluatorConfig
from roadworthy.policy import protocol
from roadworthy.policy.checkpoint_files import CHECKPOINTS
from roadworthy.policy.coplayers import CoplayerPolicy
from roadworthy.policy.load import load_policy
from roadworthy.policy.protocol import Policy
from roadworthy.policy.spec import BASELINE, Kind, checkpoint_folder, kind_of


@dataclass(frozen=True)
class PolicyRef:
    """A policy, as run folders record it."""

    spec: str
    # What `load_policy` takes, with an absolute path.
    name: str
    # For people and folders: differs for two configurations and for checkpoints of two training runs.
    checkpoint: Mapping[str, Any] | None = None
    # Its path and sha256; None for policies without a checkpoint.
    step: int | None = None
    # Agent-steps that it was trained for.
    epoch: int | None = None
    # Updates that it was trained for.
    policy_config: Mapping[str, Any] = field(default_factory=dict)
    # Arguments of the policy's class.

    def header(self) -> dict[str, Any]:
        """Return what run.json records of it."""
        checkpoint = dict(self.checkpoint) if self.checkpoint is not None else None
        return {
            "checkpoint": checkpoint,
            "policy_spec": self.spec,
            "policy_config": dict(self.policy_config),
            "step": self.step,
            "epoch": self.epoch,
        }


def policy_ref(
    spec: str, policy_config: Mapping[str, Any] | None = None, step: int | None = None, epoch: int | None = None
) -> PolicyRef:
    """Return the policy that a spec names, after checking that it can be loaded.

    step, epoch: recorded instead of the checkpoint's own.
    """
    config = dict(policy_config or {})
    kind = kind_of(spec)
    if kind is not Kind.CHECKPOINT:
        protocol.close(load_policy(spec, config))  # raises what is wrong with it
        return PolicyRef(_absolute(spec, kind), _name_of(spec, kind) + _suffix(config), None, step, epoch, config)
    folder = checkpoint_folder(spec)
    assert folder is not None
    from roadworthy.policy.checkpoint import load_checkpoint  # imports torch, which scripted policies do without

    checkpoint = load_checkpoint(folder)
    path = checkpoint.path.absolute()
    return PolicyRef(
        spec if spec.startswith(BASELINE) else str(path),
        _checkpoint_name(path) + _suffix(config),
        {"path": str(path), "sha256": checkpoint.sha256},
        checkpoint.step if step is None else step,
        checkpoint.epoch if epoch is None else epoch,
        config,
    )


def recorded_policy(header: Mapping[str, Any], checkpoint: str | None = None) -> PolicyRef:
    """Return the policy of a run from its run.json.

    checkpoint: where its checkpoint is now, or the policy to use instead.
    """
    recorded = header.get("checkpoint")
    spec = checkpoint or header.get("policy_spec")
    if not spec:
        raise UsageError(
            f"run.json of {header.get('evaluator')!r} does not say which policy was run; name it with --policy"
        )
    has_config = checkpoint is None or recorded is not None  # another policy has other arguments
    config = header.get("policy_config") if has_config else None
    ref = policy_ref(str(spec), config, header.get("step"), header.get("epoch"))
    if recorded is not None and (ref.checkpoint is None or ref.checkpoint["sha256"] != recorded["sha256"]):
        raise CheckpointError(
            f"{spec} is not the policy of the run: its sha256 is {(ref.checkpoint or {}).get('sha256')}, the run's "
            f"was {recorded['sha256']}; name the checkpoint that was run"
        )
    return ref


def coplayer_files(config: EvaluatorConfig) -> list[dict[str, Any]]:
    """Return the spec of each co-player policy, with the sha256 of those that are checkpoints."""
    return [
        {"spec": spec, "sha256": checkpoint["sha256"] if (checkpoint := policy_ref(spec).checkpoint) else None}
        for spec in config.coplayers
    ]


def policy_maker(ref: PolicyRef, config: EvaluatorConfig) -> Callable[[], Policy]:
    """Return a picklable function that makes the policy of an evaluator, together with its co-players."""
    is_greedy = config.actions is Choice.GREEDY
    ego = partial(
        load_policy,
        ref.spec,
        ref.policy_config,
        is_greedy=is_greedy,
        device=config.device,
        conditioning=config.conditioning,
    )
    if not config.coplayers:
        return ego
    return partial(CoplayerPolicy, ego, [partial(load_policy, spec, device=config.device) for spec in config.coplayers])


def _absolute(spec: str, kind: Kind) -> str:
    """Return a spec that names the same policy from any folder."""
    file, _, name = spec.rpartition(":")
    return f"{Path(file).expanduser().resolve()}:{name}" if kind is Kind.CODE and file.endswith(".py") else spec


def _name_of(spec: str, kind: Kind) -> str:
    file, _, name = spec.rpartition(":")
    return f"{Path(file).stem}-{name}" if kind is Kind.CODE and file.endswith(".py") else spec.replace(":", "-")


def _checkpoint_name(path: Path) -> str:
    """Return the folder's name, after that of the training run if it belongs to one."""
    if path.parent.name != CHECKPOINTS:
        return path.name
    return f"{path.parent.parent.name}-{re.sub('^step_0*(?=[0-9])', 'step_', path.name)}"


def _suffix(config: Mapping[str, Any]) -> str:
    """Return the configuration as the end of a name: its values if they are short and plain, else a hash."""
    if not config:
        return ""
    text = ",".join(f"{key}={value}" for key, value in sorted(config.items()))
    if len(text) <= 32 and re.fullmatch(r"[A-Za-z0-9_.=,+-]+", text):
        return f"-{text}"
    return "-" + hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()[:8]
