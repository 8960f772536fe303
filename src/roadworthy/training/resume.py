"""Checkpoints of a training run: the policy, and beside it all that decides how training goes on.

<run>/checkpoints/step_<agent-steps>/policy.safetensors  policy.json     see policy/checkpoint.py
                                     trainer.safetensors trainer.json    optimiser, memory, worlds, counters

On a GPU, and with several processes, the worlds are not kept: training goes on there with its first episodes again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor

from roadworthy.config import plain
from roadworthy.errors import CheckpointError
from roadworthy.policy.checkpoint import copy_into, load_checkpoint, put_weights, save_policy, tensors_of
from roadworthy.record.files import write_whole
from roadworthy.sim.episodes import Episode
from roadworthy.sim.snapshot import Snapshot
from roadworthy.training.ppo import put_state, state_of

if TYPE_CHECKING:
    from roadworthy.training.loop import Trainer

TENSORS, FACTS = "trainer.safetensors", "trainer.json"
# What may differ where a run is resumed: how long it lasts, how it is saved, the cores that it has, and how often its
# figures are reported. All other keys decide what its weights mean, or how they came about.
MAY_CHANGE = ("steps", "checkpoint_interval", "keep", "threads", "env.log.report_interval")


def save(trainer: Trainer) -> Path:
    """Write a checkpoint of a run; older ones beyond those to keep are removed. Only the first process writes."""
    folder = checkpoints_of(trainer.folder) / f"step_{trainer.step:012d}"
    tensors, facts = _state(trainer)
    data = write_tensors(tensors)
    facts["tensors_sha256"] = hashlib.sha256(data).hexdigest()
    if trainer.processes.is_first:
        save_policy(
            folder,
            trainer.policy,
            counters={"step": trainer.step, "epoch": trainer.epoch},
            more={"train": plain(trainer.config), "pack_sha256": pack_digest(trainer.pack.path)},
            files={TENSORS: data, FACTS: (json.dumps(facts) + "\n").encode()},
        )
        for old in sorted(checkpoints_of(trainer.folder).glob("step_*"))[: -trainer.config.keep]:
            shutil.rmtree(old)
    return folder


def restore(trainer: Trainer, checkpoint: Path) -> None:
    """Bring a trainer to where a checkpoint was written."""
    saved = load_checkpoint(checkpoint)
    config = plain(trainer.config)
    changed = changed_keys(saved.about.get("train"), config)
    if changed:
        raise CheckpointError(
            f"{checkpoint} was written with another config (other: {', '.join(changed)}); give --new, or the config "
            "that it has"
        )
    if saved.about.get("pack_sha256") != pack_digest(trainer.pack.path):
        raise CheckpointError(
            f"{checkpoint} was trained in other scenarios: {trainer.pack.path} was replaced since; give --new to begin "
            "anew, or the pack that it was trained in"
        )
    try:
        data = (checkpoint / TENSORS).read_bytes()
        facts = json.loads((checkpoint / FACTS).read_bytes())
        tensors = parse_tensors(data)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{checkpoint} can't be trained on: {error}") from error
    if hashlib.sha256(data).hexdigest() != facts["tensors_sha256"]:
        raise CheckpointError(f"{checkpoint / TENSORS} is damaged: its checksum is not the one in {FACTS}")
    trainer.epoch, trainer.step = int(facts["epoch"]), int(facts["step"])
    if saved.about["train"] == config:
        trainer.saved = trainer.epoch, checkpoint
    if trainer.env.config.episode.trials != facts["trials"]:
        trainer.take_stage(int(facts["trials"]))
    trainer.last_report = facts.get("report", {})
    put_weights(trainer.policy, saved.policy.state_dict(), str(checkpoint))
    put_state(trainer.learner.optimizer, _below("optimizer", tensors))
    collector = trainer.collector
    with torch.no_grad():
        collector.clock.copy_(tensors["clock"])
        collector.begun.copy_(tensors["begun"])
        if "env" not in facts or not _keeps_worlds(trainer):
            collector.begun.copy_(collector.clock)  # all worlds have just begun, and have to get out of step again
            return
        collector.has_begun_anew = False
        collector.episode_counts.copy_(tensors["episode_counts"])
    copy_into(collector.memory, "memory", tensors)
    for digest, memory in trainer.coplayers.memories.items():
        if f"{digest}.length" in tensors:  # else its file was replaced since, and it remembers nothing
            copy_into(memory, digest, tensors)
    trainer.env.restore(_snapshot(tensors, facts["env"]))


def changed_keys(one: object, other: object, key: str = "") -> list[str]:
    """The dotted keys in which two plain configs differ, but for those that may."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [k for name in names for k in changed_keys(one.get(name), other.get(name), f"{key}.{name}".strip("."))]
    return [] if one == other or key in MAY_CHANGE else [key]


def checkpoints_of(folder: Path) -> Path:
    return folder / "checkpoints"


def forget_from(path: Path, epoch: int) -> None:
    """Drop the lines of a log that were written at this epoch or later, and one that was cut off."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["epoch"] >= epoch:
                break
        except (ValueError, KeyError, TypeError):
            break
        kept.append(line)
    write_whole(path, "".join(f"{line}\n" for line in kept).encode())


def last_progress(folder: Path) -> dict[str, Any]:
    """The last whole line of a run's log, empty before the first."""
    path = folder / "progress.jsonl"
    for line in reversed(path.read_text(encoding="utf-8").splitlines() if path.exists() else []):
        try:
            told: dict[str, Any] = json.loads(line)
            return told
        except ValueError:  # cut off
            continue
    return {}


def pack_digest(path: Path) -> str:
    """A pack's name in records: the hash of its bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    collector = trainer.collector
    tensors = {f"optimizer.{name}": tensor for name, tensor in state_of(trainer.learner.optimizer).items()}
    tensors["clock"], tensors["begun"] = collector.clock.cpu(), collector.begun.cpu()
    facts: dict[str, Any] = {
        "epoch": trainer.epoch,
        "step": trainer.step,
        "trials": trainer.env.config.episode.trials,
        "report": trainer.last_report,
    }
    if _keeps_worlds(trainer):
        tensors["episode_counts"] = collector.episode_counts
        tensors |= tensors_of(collector.memory, "memory")
        for digest, memory in trainer.coplayers.memories.items():
            tensors |= tensors_of(memory, digest)
        snapshot = trainer.env.snapshot()
        tensors |= {f"env.{name}": _as_tensor(array) for name, array in snapshot.arrays.items()}
        tensors["env.rounds"] = torch.from_numpy(snapshot.rounds.copy())
        facts["env"] = {
            "running": [_plain(episode) for episode in snapshot.running],
            "waiting": [[_plain(episode) for episode in queue] for queue in snapshot.waiting],
            "seed": snapshot.seed,
            "steps": snapshot.steps,
            "types": {name: str(array.dtype) for name, array in snapshot.arrays.items()},
        }
    return tensors, facts


def _keeps_worlds(trainer: Trainer) -> bool:
    return trainer.config.device == "cpu" and trainer.processes.count == 1


def _snapshot(tensors: dict[str, Tensor], facts: dict[str, Any]) -> Snapshot:
    types = facts["types"]
    return Snapshot(
        {name: tensors[f"env.{name}"].numpy().view(kind) for name, kind in types.items()},
        tuple(_episode(episode) for episode in facts["running"]),
        tuple(tuple(Episode(*episode) for episode in queue) for queue in facts["waiting"]),
        tensors["env.rounds"].numpy(),
        int(facts["seed"]),
        int(facts["steps"]),
    )


def _as_tensor(array: np.ndarray[Any, Any]) -> Tensor:
    """As a tensor; what torch has no full support for as the signed number of the same size."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)


def _plain(episode: Episode | None) -> list[int] | None:
    return None if episode is None else [episode.number, episode.scenario, episode.seed]


def _episode(plain_episode: list[int] | None) -> Episode | None:
    return None if plain_episode is None else Episode(*plain_episode)


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
