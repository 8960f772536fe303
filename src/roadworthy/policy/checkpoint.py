"""Checkpoints: a folder with a policy's weights (safetensors) and a readable JSON beside them, written atomically.

<checkpoint>/policy.safetensors   the weights
<checkpoint>/policy.json          config, observation layout, action choices, counters, revision, checksum

Loading never runs code from a file: weights are numbers, the JSON is checked against dataclasses.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
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
from roadworthy.policy.config import PolicyConfig
from roadworthy.policy.network import Policy
from roadworthy.revision import revision
from roadworthy.sim.layout import Block, Feature, ObservationLayout

SCHEMA_VERSION = 1
WEIGHTS, ABOUT = "policy.safetensors", "policy.json"


@dataclass(frozen=True)
class Checkpoint:
    """A policy as it was saved, and what is known about it."""

    policy: Policy
    path: Path
    about: Mapping[str, Any]  # policy.json
    sha256: str  # of the weights and of what they mean: equal for equal policies

    @property
    def step(self) -> int:
        """Agent-steps that it was trained for."""
        return int(self.about.get("counters", {}).get("step", 0))

    @property
    def epoch(self) -> int:
        """Updates that it was trained for."""
        return int(self.about.get("counters", {}).get("epoch", 0))


def save_policy(
    folder: Path,
    policy: Policy,
    *,
    counters: Mapping[str, int] | None = None,
    more: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a checkpoint folder, whole or not at all.

    counters: step (agent-steps), epoch (updates) and the like.
    more: further facts for policy.json, such as the training config.
    files: further files, by name.
    """
    weights = write_weights({name: tensor.detach().cpu().contiguous() for name, tensor in policy.state_dict().items()})
    about = {
        "schema_version": SCHEMA_VERSION,
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
    return write_folder(Path(folder), contents)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint: its folder, or one of the two files in it."""
    folder = Path(path).expanduser()
    folder = folder.parent if folder.name in (WEIGHTS, ABOUT) else folder
    try:
        return _load(folder)
    except _Damaged as error:
        raise CheckpointError(f"{error}{_offer(folder)}") from error


class _Damaged(CheckpointError):
    """A checkpoint in whose place another one could be taken."""


def _load(folder: Path) -> Checkpoint:
    about, weights = _read_about(folder), _read(folder / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != about.get("weights_sha256"):
        raise _Damaged(f"{folder / WEIGHTS} is damaged: its checksum is not the one in {ABOUT}")
    try:
        tensors = parse_weights(weights)
        config = parse(about["policy"], PolicyConfig, str(folder / ABOUT))
        layout = _layout(about["observation_layout"])
        choices = about["action_choices"]
        policy = Policy(config, layout, (int(choices[0]), int(choices[1])) if choices else None)
    except (AttributeError, LookupError, TypeError, ValueError, UsageError, SafetensorError) as error:
        raise _Damaged(f"{folder} can't be read as a checkpoint: {error}") from error
    put_weights(policy, tensors, str(folder))
    meaning = json.dumps([about["policy"], about["observation_layout"], about["action_choices"]], sort_keys=True)
    return Checkpoint(policy.eval(), folder, about, hashlib.sha256(weights + meaning.encode()).hexdigest())


def put_weights(policy: Policy, tensors: Mapping[str, Tensor], source: str) -> None:
    """Put weights into a policy; if they don't fit, the error names every part that differs."""
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


def newest(folder: Path) -> Path | None:
    """The checkpoint of a folder with the most recorded steps; damaged ones are passed over."""
    return next((path for _, path in _by_steps(folder) if _is_whole(path)), None)


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> Path:
    """Write files into a folder that appears whole or not at all; one that is there is replaced."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name, data in contents.items():
        with (partial / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    if folder.exists():
        old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
        folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old)
    else:
        partial.rename(folder)
    return folder


def tidy(folder: Path) -> None:
    """Remove what writers that were killed left in a folder of checkpoints; one that was being replaced comes back."""
    for left in folder.glob(".*.partial"):
        shutil.rmtree(left, ignore_errors=True)
    for old in folder.glob(".*.old"):
        name = old.name[1:].rsplit(".", 2)[0]
        if (folder / name).exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(folder / name)


def _by_steps(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a folder, those with the most recorded steps first; what was left half written is hidden."""
    found = [(step, path) for path in folder.glob("[!.]*/") if (step := _recorded_step(path)) is not None]
    return sorted(found, reverse=True)


def _recorded_step(folder: Path) -> int | None:
    """The steps of a checkpoint, None if it is damaged; one of a newer version is no less whole, and an error."""
    try:
        return int(_read_about(folder)["counters"]["step"])
    except (_Damaged, KeyError, TypeError, ValueError):
        return None


def _read_about(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads(_read(folder / ABOUT))
    except ValueError as error:
        raise _Damaged(f"{folder / ABOUT} is damaged: {error}") from error
    version = about.get("schema_version") if isinstance(about, dict) else None
    if not isinstance(version, int):
        raise _Damaged(f"{folder / ABOUT} has no schema_version: it is not of a checkpoint")
    if version > SCHEMA_VERSION:
        raise CheckpointError(
            f"{folder} is of schema version {version}, this is Roadworthy {__version__}, which reads up to "
            f"{SCHEMA_VERSION}; update it"
        )
    return about


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        told = f"can't read {path}: {error.strerror}; a checkpoint is a folder with {ABOUT} and {WEIGHTS}"
        raise _Damaged(told) from error


def _offer(folder: Path) -> str:
    """Which checkpoint beside a damaged one could be taken instead: the last one before it, if that can be told."""
    try:
        step, found = _recorded_step(folder), _by_steps(folder.parent)
    except CheckpointError:  # one beside it is of a newer version
        return ""
    others = [(other, path) for other, path in found if path.name != folder.name]
    if step is not None:
        others = [(other, path) for other, path in others if other <= step]
    whole = next((path for _, path in others if _is_whole(path)), None)
    if whole is None:
        return ""
    return f"; {'the newest whole one beside it' if step is None else 'the last whole one before it'} is {whole}"


def _is_whole(folder: Path) -> bool:
    """Whether all files of a checkpoint are as they were written."""
    try:
        about = _read_about(folder)
        sums = {WEIGHTS: about.get("weights_sha256"), **about.get("files_sha256", {})}
        return all(hashlib.sha256(_read(folder / name)).hexdigest() == known for name, known in sums.items())
    except _Damaged:
        return False


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
    """The tensors of a NamedTuple by name, for a file."""
    return {f"{prefix}.{name}": tensor.detach().cpu().contiguous() for name, tensor in part._asdict().items()}


def copy_into(part: Any, prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """Put tensors that `tensors_of` wrote back to where they came from."""
    for name, tensor in part._asdict().items():
        with torch.no_grad():
            tensor.copy_(tensors[f"{prefix}.{name}"])
