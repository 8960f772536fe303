"""Checkpoints: folders with the weights of a policy (safetensors) and a readable JSON, written atomically.

<checkpoint>/policy.safetensors   the weights
<checkpoint>/policy.json          config, observation layout, action choices, counters, revision, checksum

Loading never runs code from a file: weights are numbers, the JSON is checked against dataclasses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_weights
from safetensors.torch import save as write_weights
from torch import Tensor

from roadworthy import __version__
from roadworthy.config import parse, plain
from roadworthy.errors import CheckpointError, UsageError
from roadworthy.plugins import is_code
from roadworthy.policy import checkpoint_files
from roadworthy.policy.checkpoint_files import ABOUT, WEIGHTS, DamagedCheckpoint, resolve_checkpoint
from roadworthy.policy.config import CORES, PolicyConfig
from roadworthy.policy.network import PolicyNetwork
from roadworthy.revision import revision
from roadworthy.sim.layout import Block, Feature, ObservationLayout


@dataclass(frozen=True)
class Checkpoint:
    """A loaded policy and its metadata."""

    policy: PolicyNetwork
    path: Path
    about: Mapping[str, Any]  # policy.json
    sha256: str  # of the weights and of what gives them meaning: equal for equal policies

    @property
    def step(self) -> int:
        """Agent-steps of training."""
        return int(self.about.get("counters", {}).get("step", 0))

    @property
    def epoch(self) -> int:
        """Updates of training, which records call epoch."""
        return int(self.about.get("counters", {}).get("epoch", 0))


def save_policy(
    folder: Path,
    policy: PolicyNetwork,
    *,
    counters: Mapping[str, int] | None = None,
    more: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a checkpoint folder atomically; return it.

    Args:
        folder: The checkpoint folder; an existing one is replaced.
        policy: The policy.
        counters: `step` (agent-steps), `epoch` (updates), and others.
        more: More keys of policy.json, such as the training config.
        files: More files, by name.
    """
    weights = write_weights({name: tensor.detach().cpu().contiguous() for name, tensor in policy.state_dict().items()})
    about = {
        "schema_version": checkpoint_files.SCHEMA_VERSION,
        "roadworthy": __version__,
        "revision": revision(),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "files_sha256": {name: hashlib.sha256(data).hexdigest() for name, data in (files or {}).items()},
        "counters": dict(counters or {}),
        "policy": plain(policy.config),
        "action_choices": list(policy.choices) if policy.choices else None,
        "observation_layout": policy.layout.plain(),
        **(more or {}),
    }
    contents = {WEIGHTS: weights, ABOUT: (json.dumps(about, indent=1) + "\n").encode(), **(files or {})}
    return checkpoint_files.write_folder(Path(folder), contents)


def load_checkpoint(path: str | Path, *, trusts_code: bool = False) -> Checkpoint:
    """Load the checkpoint that a path names, see `resolve_checkpoint`.

    trusts_code: Accept a memory core that is `module:Name`, which runs code that the checkpoint names. Cores that are
        entry points of installed packages are always accepted.
    """
    folder = resolve_checkpoint(path)
    try:
        return _load(folder, trusts_code)
    except DamagedCheckpoint as error:
        raise CheckpointError(f"{error}{_offer(folder)}") from error


def _load(folder: Path, trusts_code: bool) -> Checkpoint:
    about, weights = checkpoint_files.read_about(folder), checkpoint_files.read_bytes(folder / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != about.get("weights_sha256"):
        raise DamagedCheckpoint(f"{folder / WEIGHTS} is damaged: its checksum is not the one in {ABOUT}")
    core = about["policy"].get("core") if isinstance(about.get("policy"), dict) else None
    if isinstance(core, str) and is_code(core) and not trusts_code:
        raise CheckpointError(
            f"{folder} has the core {core!r}, which is code that loading would run; install it as an entry point of "
            f"{CORES} and train with that name"
        )
    try:
        tensors = parse_weights(weights)
        config = parse(about["policy"], PolicyConfig, str(folder / ABOUT), is_record=True)
        layout = _layout(about["observation_layout"])
        choices = about["action_choices"]
        policy = PolicyNetwork(config, layout, (int(choices[0]), int(choices[1])) if choices else None)
    except (AttributeError, LookupError, TypeError, ValueError, UsageError, SafetensorError) as error:
        raise DamagedCheckpoint(f"{folder} can't be read as a checkpoint: {error}") from error
    put_weights(policy, tensors, str(folder))
    meaning = json.dumps([about["policy"], about["observation_layout"], about["action_choices"]], sort_keys=True)
    return Checkpoint(policy.eval(), folder, about, hashlib.sha256(weights + meaning.encode()).hexdigest())


def put_weights(policy: PolicyNetwork, tensors: Mapping[str, Tensor], source: str) -> None:
    """Load weights into a policy; if they do not fit, the error names every part that differs."""
    wanted = policy.state_dict()
    faults = [f"{name} is missing" for name in wanted if name not in tensors]
    faults += [f"{name} is not part of the policy" for name in tensors if name not in wanted]
    faults += [
        f"{name} has shape {tuple(tensors[name].shape)}, expected {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in tensors and tensors[name].shape != tensor.shape
    ]
    if faults:
        raise CheckpointError(f"{source} does not fit this policy: {'; '.join(faults)}")
    policy.load_state_dict(dict(tensors))


def _offer(folder: Path) -> str:
    """Return the end of an error, which names the last complete checkpoint before a damaged one."""
    try:
        step, found = checkpoint_files.recorded_step(folder), checkpoint_files.by_steps(folder.parent)
    except CheckpointError:  # another one has a newer version
        return ""
    others = [(other, path) for other, path in found if path.name != folder.name]
    if step is not None:
        others = [(other, path) for other, path in others if other <= step]
    complete = next((path for _, path in others if checkpoint_files.is_complete(path)), None)
    if complete is None:
        return ""
    return (
        f"; {'the newest complete one beside it' if step is None else 'the last complete one before it'} is {complete}"
    )


def _layout(about: Mapping[str, Any]) -> ObservationLayout:
    return ObservationLayout(
        tuple(
            Block(
                block["name"],
                int(block["start"]),
                int(block["entries"]),
                tuple(Feature(f["name"], float(f["scale"]), f["unit"]) for f in block["features"]),
            )
            for block in about["blocks"]
        )
    )


def tensors_of(part: Any, prefix: str) -> dict[str, Tensor]:
    """Return the tensors of a NamedTuple by name, for a file."""
    return {f"{prefix}.{name}": tensor.detach().cpu().contiguous() for name, tensor in part._asdict().items()}


def copy_into(part: Any, prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors of `tensors_of` back into a NamedTuple."""
    for name, tensor in part._asdict().items():
        with torch.no_grad():
            tensor.copy_(tensors[f"{prefix}.{name}"])
