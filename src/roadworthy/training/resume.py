"""Checkpoints of a training run: the policy, and the state of the trainer that resuming needs.

<run>/checkpoints/step_<agent-steps>/policy.safetensors  policy.json     see policy/checkpoint.py
                                     trainer.safetensors trainer.json    optimizer, memory, worlds, counters
<run>/checkpoints/last  best                                             see best.py

On a GPU, and with several processes, worlds are not saved: a resumed run starts new episodes there.
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

from roadworthy.config import parse, plain
from roadworthy.errors import CheckpointError
from roadworthy.policy.checkpoint import copy_into, load_checkpoint, put_weights, save_policy, tensors_of
from roadworthy.policy.checkpoint_files import CHECKPOINTS
from roadworthy.sim.episodes import Episode
from roadworthy.sim.snapshot import Snapshot
from roadworthy.training.best import TRAINER, point_at_checkpoints
from roadworthy.training.config import TrainConfig
from roadworthy.training.ppo import optimizer_tensors, restore_optimizer

if TYPE_CHECKING:
    from roadworthy.training.loop import Trainer

TENSORS = "trainer.safetensors"
# Keys that a resumed run may change: they concern its length, checkpoints, cores and reports. All other keys decide
# what the weights mean or how they were learned.
MAY_CHANGE = ("steps", "checkpoint_interval", "keep", "threads", "env.log.report_interval")


def save(trainer: Trainer) -> Path:
    """Write a checkpoint and remove old ones, but never the best one. Only the first process writes."""
    checkpoints = trainer.folder / CHECKPOINTS
    folder = checkpoints / f"step_{trainer.step:012d}"
    tensors, facts = _state(trainer)
    data = write_tensors(tensors)
    facts["tensors_sha256"] = hashlib.sha256(data).hexdigest()
    if trainer.processes.is_first:
        save_policy(
            folder,
            trainer.policy,
            counters={"step": trainer.step, "epoch": trainer.updates},
            more={"train": plain(trainer.config), "pack_sha256": pack_digest(trainer.pack.path)},
            files={TENSORS: data, TRAINER: (json.dumps(facts) + "\n").encode()},
        )
        best = point_at_checkpoints(trainer.folder)
        for old in sorted(checkpoints.glob("step_*"))[: -trainer.config.keep]:
            if old != best:
                shutil.rmtree(old)
    return folder


def restore(trainer: Trainer, checkpoint: Path) -> None:
    """Bring a trainer to the state in which a checkpoint was written."""
    saved = load_checkpoint(checkpoint, trusts_code=True)  # the user's own config names the same core
    recorded, config = recorded_config(saved.about.get("train"), str(checkpoint)), plain(trainer.config)
    changed = changed_keys(recorded, config)
    if changed:
        raise CheckpointError(
            f"{checkpoint} was written with a different config (different: {', '.join(changed)}); give --new to start "
            "again, or the config of the checkpoint"
        )
    if saved.about.get("pack_sha256") != pack_digest(trainer.pack.path):
        raise CheckpointError(
            f"{checkpoint} was trained in other scenarios: {trainer.pack.path} was replaced since; give --new to start "
            "again, or restore the pack"
        )
    try:
        data = (checkpoint / TENSORS).read_bytes()
        facts = json.loads((checkpoint / TRAINER).read_bytes())
        tensors = parse_tensors(data)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{checkpoint} cannot be resumed: {error}") from error
    if hashlib.sha256(data).hexdigest() != facts["tensors_sha256"]:
        raise CheckpointError(f"{checkpoint / TENSORS} is damaged: its checksum is not the one in {TRAINER}")
    trainer.updates, trainer.step = int(facts["epoch"]), int(facts["step"])
    if recorded == config:
        trainer.saved = trainer.updates, checkpoint
    if trainer.env.config.episode.trials != facts["trials"]:
        trainer.take_stage(int(facts["trials"]))
    trainer.last_report = facts.get("report", {})
    put_weights(trainer.policy, saved.policy.state_dict(), str(checkpoint))
    restore_optimizer(trainer.learner.optimizer, _below("optimizer", tensors))
    collector = trainer.collector
    with torch.no_grad():
        collector.clock.copy_(tensors["clock"])
        collector.begun.copy_(tensors["begun"])
        if "env" not in facts or not _keeps_worlds(trainer):
            collector.begun.copy_(collector.clock)  # all worlds have just started, and must be staggered again
            return
        collector.all_were_reset = False
        collector.episode_counts.copy_(tensors["episode_counts"])
    copy_into(collector.memory, "memory", tensors)
    for digest, memory in trainer.coplayers.memories.items():
        if f"{digest}.length" in tensors:  # otherwise its file was replaced since, and its memory is empty
            copy_into(memory, digest, tensors)
    trainer.env.restore(_snapshot(tensors, facts["env"]))


def recorded_config(values: Any, source: str) -> Any:
    """Return a recorded config as plain values with current names and with the defaults of keys added since."""
    return plain(parse(values, TrainConfig, source, is_record=True)) if isinstance(values, dict) else values


def changed_keys(one: object, other: object, key: str = "") -> list[str]:
    """Return the dotted keys in which two plain configs differ, except those that a resumed run may change."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [k for name in names for k in changed_keys(one.get(name), other.get(name), f"{key}.{name}".strip("."))]
    return [] if one == other or key in MAY_CHANGE else [key]


def pack_digest(path: Path) -> str:
    """Return the hash of a pack's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    collector = trainer.collector
    tensors = {f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(trainer.learner.optimizer).items()}
    tensors["clock"], tensors["begun"] = collector.clock.cpu(), collector.begun.cpu()
    facts: dict[str, Any] = {
        "epoch": trainer.updates,
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
    """Return an array as a tensor; uint64, which torch does not fully support, as int64."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)


def _plain(episode: Episode | None) -> list[int] | None:
    return None if episode is None else [episode.number, episode.scenario, episode.seed]


def _episode(plain_episode: list[int] | None) -> Episode | None:
    return None if plain_episode is None else Episode(*plain_episode)


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
