"""Several processes: they learn the same as one that has all their rows."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from roadworthy.errors import ConfigError
from roadworthy.policy.checkpoint import load_checkpoint
from roadworthy.policy.checkpoint_files import newest
from roadworthy.scenario.pack import Pack
from roadworthy.training.config import PpoConfig, TrainConfig
from roadworthy.training.loop import Trainer
from roadworthy.training.ppo import Learner
from roadworthy.training.processes import Processes
from roadworthy.training.run import run_training
from roadworthy.training.segment import Segment, make_segment
from tests.policy.networks import small_policy
from tests.training.small import command_of, config, sim


def weights(folder: Path) -> Tensor:
    checkpoint = newest(folder / "checkpoints")
    assert checkpoint is not None
    return torch.cat([p.detach().flatten() for p in load_checkpoint(checkpoint).policy.parameters()])


@pytest.mark.row("PPO-1")
def test_two_processes_learn_the_same_as_one_with_two_shards(pack: Pack, tmp_path: Path) -> None:
    """To rounding: two sums of a half each are not the sum of all. Weights move a thousand times as far."""
    settings = config("lstm", env=sim(3, ego_share=0.7), steps=300, shards=2, scenarios=str(pack.path))
    both = tmp_path / "both"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, *command_of(settings, tmp_path), "--out", str(both), "--trace", str(tmp_path / "trace")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained:") == 1
    run_training(settings, pack.path, tmp_path / "one", trace=tmp_path / "whole")
    together, alone = weights(both), weights(tmp_path / "one")
    start = torch.cat([p.detach().flatten() for p in Trainer(settings, pack, tmp_path).policy.parameters()])
    moved = (alone - start).abs().max()
    assert moved > 1e-3
    assert (together - alone).abs().max() < 1e-3 * moved
    # Each process traces its own rows, which are numbered throughout.
    told = [(tmp_path / name).read_text().splitlines() for name in ("trace", "trace.1", "whole")]
    assert all(told)
    assert sorted(told[0] + told[1]) == sorted(told[2])
    # What several processes leave, one can take over, and the other way round.
    assert run_training(settings, pack.path, both) == newest(both / "checkpoints")


def learner(shards: int, priority: float) -> Learner:
    ppo = PpoConfig(num_minibatches=3, prio_alpha=priority)
    return Learner(small_policy("mlp"), ppo, 1, Processes(), shards)


@pytest.mark.row("PPO-1")
@pytest.mark.parametrize("priority", [0.0, 0.8])
def test_minibatches_take_from_each_shard_what_its_own_process_would_take(priority: float) -> None:
    rows = 14
    whole = make_segment(4, rows, 1, 2, 0, torch.device("cpu"), torch.float32)
    whole.loss_mask.fill_(True)
    advantages = torch.randn(rows, 4, generator=torch.Generator().manual_seed(0))
    halves = [slice(0, rows // 2), slice(rows // 2, rows)]
    parts = [
        learner(1, priority)._minibatches(Segment(*(x[half] for x in whole)), advantages[half], 5) for half in halves
    ]
    together = learner(2, priority)._minibatches(whole, advantages, 5)
    for k, dealt in enumerate(together):
        assert torch.equal(dealt, torch.cat([parts[0][k], parts[1][k] + rows // 2]))


@pytest.mark.parametrize("shards", [3, 8])
def test_worlds_that_shards_cannot_share_equally_are_an_error(shards: int, pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"worlds is 4 and ppo\.shards {shards}, with 1 processes"):
        Trainer(config(shards=shards), pack, tmp_path)


def test_more_minibatches_than_rows_are_an_error(pack: Pack, tmp_path: Path) -> None:
    settings: TrainConfig = config(num_minibatches=16)
    Trainer(settings, pack, tmp_path)
    with pytest.raises(ConfigError, match=r"ppo\.num_minibatches is 17, but there are only 16 rows; lower it"):
        Trainer(replace(settings, ppo=replace(settings.ppo, num_minibatches=17)), pack, tmp_path)


def test_one_gpu_for_several_processes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="device is 'cuda:1' with 2 processes, of which each has a GPU of its own"):
        Processes("cuda:1")
