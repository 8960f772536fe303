"""Resuming: the same bytes as without an interruption, and damaged checkpoints."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from roadworthy.errors import CheckpointError, ConfigError, RoadworthyError, UsageError
from roadworthy.policy.checkpoint import load_checkpoint, save_policy
from roadworthy.policy.checkpoint_files import ABOUT, WEIGHTS, resolve_checkpoint
from roadworthy.policy.config import ConditioningConfig
from roadworthy.record.lock import is_abandoned
from roadworthy.scenario.pack import Pack
from roadworthy.training import loop, resume
from roadworthy.training.config import CoplayerConfig, TrainConfig, TrialsStage
from roadworthy.training.progress import Progress
from roadworthy.training.resume import MAY_CHANGE, TENSORS
from roadworthy.training.run import run_training
from tests.policy.networks import CORES, small_policy
from tests.sim.scenes import Actor, pack_of, scene
from tests.training.small import checkpoints_in, command_of, config, network, sim, trainer


class Died(Exception):
    """Simulates the death of a process."""


def dying_at(update: int) -> Callable[[Progress], None]:
    def die(progress: Progress) -> None:
        if progress.update == update:
            raise Died

    return die


def run(settings: TrainConfig, pack: Pack, folder: Path, **keys: Any) -> bytes:
    """Train or resume to the end; return the bytes of the last checkpoint."""
    return policy_bytes(run_training(settings, pack.path, folder, **keys))


def policy_bytes(checkpoint: Path) -> bytes:
    """All that a checkpoint holds."""
    return b"".join(path.read_bytes() for path in sorted(checkpoint.iterdir()))


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def updates(folder: Path) -> list[int]:
    return [json.loads(line)["update"] for line in (folder / "progress.jsonl").read_text().splitlines()]


def everything(tmp_path: Path, core: str) -> TrainConfig:
    """All features with state: a partner with memory, conditioning, a curriculum, several epochs, priorities."""
    partner = tmp_path / "partner"
    if not partner.exists():
        save_policy(partner, small_policy("lstm", observe=sim().observe))
    return config(
        env=sim(3, ego_share=0.6),
        policy=network(core, conditioning=ConditioningConfig(ent_coef=(0.0, 0.1), gamma=(0.9, 0.99))),
        coplayers=CoplayerConfig((partner,)),
        trials=(TrialsStage(0.0, 1), TrialsStage(0.4, 3)),
        steps=450,
        update_epochs=2,
        prio_alpha=0.5,
    )


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(pack: Pack, tmp_path: Path) -> None:
    settings = config("transformer", env=sim(2))
    one, same = (run(settings, pack, tmp_path / name) for name in ("one", "same"))
    assert one == same
    other = run(replace(settings, seed=2), pack, tmp_path / "other")
    assert one != other


@pytest.mark.row("PPO-4")
@pytest.mark.parametrize("core", CORES)
def test_a_run_that_died_resumes_to_the_same_bytes(core: str, pack: Pack, tmp_path: Path) -> None:
    settings = everything(tmp_path, core)
    whole = run(settings, pack, tmp_path / "whole")
    last = updates(tmp_path / "whole")[-1]
    for update in (1, 3, last):  # before the first checkpoint, in the middle, and before the last one
        with pytest.raises(Died):
            run_training(settings, pack.path, tmp_path / "torn", report=dying_at(update))
    assert run(settings, pack, tmp_path / "torn") == whole
    assert updates(tmp_path / "torn") == list(range(1, last + 1))
    assert run(settings, pack, tmp_path / "torn") == whole  # there is nothing left to do


@pytest.mark.row("PPO-4")
def test_a_run_that_was_stopped_resumes_to_the_same_bytes(pack: Pack, tmp_path: Path) -> None:
    settings = everything(tmp_path, "mlp")
    whole = run(settings, pack, tmp_path / "whole")
    for count in (1, 2, 3):  # updates in each go
        seen: list[Progress] = []
        folder = tmp_path / f"stopped-{count}"
        stops = partial(lambda seen, count: len(seen) >= count, seen, count)
        checkpoint = run_training(settings, pack.path, folder, report=seen.append, should_stop=stops)
        assert load_checkpoint(checkpoint).epoch == count
        assert run(settings, pack, folder) == whole


@pytest.mark.row("PPO-4")
def test_a_killed_process_resumes_to_the_same_bytes(pack: Pack, tmp_path: Path) -> None:
    settings = config("lstm", env=sim(2), steps=3000, scenarios=str(pack.path))
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, *command_of(settings, tmp_path), "--out", str(folder)])
    try:
        progress = folder / "progress.jsonl"
        while process.poll() is None and not (progress.exists() and len(progress.read_bytes().splitlines()) >= 5):
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert is_abandoned(folder)  # its lock is left, and in nobody's way
    torn = len(updates(folder))
    told: list[Progress] = []
    killed = run(settings, pack, folder, report=told.append)
    assert 0 < told[0].update - 1 <= torn
    assert killed == run(settings, pack, tmp_path / "whole")


def test_a_partner_whose_file_was_replaced_resumes_with_an_empty_memory(pack: Pack, tmp_path: Path) -> None:
    settings = everything(tmp_path, "mlp")
    with pytest.raises(Died):
        run_training(settings, pack.path, tmp_path / "run", report=dying_at(3))
    save_policy(tmp_path / "partner", small_policy("transformer", observe=sim().observe))
    assert load_checkpoint(run_training(settings, pack.path, tmp_path / "run")).step >= settings.steps


@pytest.mark.row("PPO-4")
@pytest.mark.parametrize("name", [WEIGHTS, ABOUT, TENSORS])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(name: str, pack: Pack, tmp_path: Path) -> None:
    settings = config(env=sim(2))
    whole = run(settings, pack, tmp_path / "whole")
    folder = tmp_path / "run"
    with pytest.raises(Died):
        run_training(settings, pack.path, folder, report=dying_at(5))
    before, newest = checkpoints_in(folder)
    spoil(newest / name)
    if name == ABOUT:
        (newest / name).write_text("{")
    told: list[str] = []
    assert run(settings, pack, folder, say=told.append) == whole
    assert told[0] == f"damaged: {newest}; the checkpoint before is used"
    assert told[1].endswith(f"({before})")


@pytest.mark.row("PPO-4")
def test_a_run_whose_checkpoints_are_all_damaged_does_not_restart_by_itself(pack: Pack, tmp_path: Path) -> None:
    settings = config(steps=100)
    checkpoint = run_training(settings, pack.path, tmp_path)
    for path in checkpoints_in(tmp_path):
        spoil(path / WEIGHTS)
    with pytest.raises(CheckpointError, match=r"all checkpoints in .* are damaged; give --new"):
        run_training(settings, pack.path, tmp_path)
    assert checkpoint.exists()


def test_a_folder_with_a_different_config_is_an_error_that_names_the_keys(pack: Pack, tmp_path: Path) -> None:
    run_training(config(steps=100), pack.path, tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(CheckpointError) as caught:
        run_training(config(steps=100, clip_coef=0.3, seed=4), pack.path, tmp_path)
    assert "has a run with a different config (different: ppo.clip_coef, seed); give --new" in str(caught.value)
    assert str(caught.value).endswith(f"A resumed run may only change: {', '.join(MAY_CHANGE)}")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.row("PPO-4")
def test_a_finished_run_continues_with_more_steps(pack: Pack, tmp_path: Path) -> None:
    """With a learning rate that does not fall, to the same bytes as if all had been asked for at once."""
    settings = config("lstm", env=sim(2), steps=500, learning_rate=1e-3, final_learning_rate=1e-3)
    whole = run(settings, pack, tmp_path / "whole")
    folder = tmp_path / "longer"
    run(replace(settings, steps=200, checkpoint_interval=3, keep=1), pack, folder)
    few = updates(folder)
    assert run(settings, pack, folder) == whole
    assert updates(folder) == updates(tmp_path / "whole")
    assert len(few) < len(updates(folder))
    assert json.loads((folder / "config.json").read_text())["steps"] == 500


def test_a_second_trainer_in_a_folder_is_refused_and_does_not_disturb_the_first(pack: Pack, tmp_path: Path) -> None:
    settings = config()
    refused: list[str] = []

    def intrude(_: Progress) -> None:
        for is_new in (False, True):
            with pytest.raises(UsageError) as caught:
                run_training(settings, pack.path, tmp_path / "run", is_new=is_new)
            refused.append(str(caught.value))

    first = run(settings, pack, tmp_path / "run", report=intrude)
    assert first == run(settings, pack, tmp_path / "alone")
    assert set(refused) == {
        f"{tmp_path / 'run'}: process {os.getpid()} on {socket.gethostname()} is training there; wait for it, stop it, "
        "or give another --out"
    }
    assert run(settings, pack, tmp_path / "run") == first  # who is done leaves no lock


def test_a_run_that_cannot_start_leaves_no_folder(pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo\.num_minibatches is 99"):
        run_training(config(num_minibatches=99), pack.path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_new_run_moves_the_old_one_and_keeps_its_own_checkpoints(pack: Pack, tmp_path: Path) -> None:
    """Older checkpoints with more steps would be taken for this run's newest, and its own be pruned as old ones."""
    long, short = config(steps=400, keep=1), config(steps=100, keep=1, seed=3)
    old = policy_bytes(run_training(long, pack.path, tmp_path))
    checkpoint = run_training(short, pack.path, tmp_path, is_new=True)
    assert load_checkpoint(checkpoint).about["train"]["seed"] == 3
    assert updates(tmp_path)[0] == 1
    aside = (tmp_path / "before-1" / "checkpoints").glob("step_*")  # the newest, and the best if it is another one
    assert old in map(policy_bytes, aside)
    assert run_training(short, pack.path, tmp_path) == checkpoint


def test_only_the_newest_checkpoints_and_the_best_one_are_kept(pack: Pack, tmp_path: Path) -> None:
    settings = config(checkpoint_interval=1, keep=2)
    last = run_training(settings, pack.path, tmp_path)
    steps = [json.loads(line)["step"] for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    newest_two = {checkpoints_in(tmp_path)[0].with_name(f"step_{step:012d}") for step in steps[-2:]}
    assert last in newest_two
    assert set(checkpoints_in(tmp_path)) == newest_two | {resolve_checkpoint(f"{tmp_path}@best")}
    assert not [name for name in os.listdir(tmp_path / "checkpoints") if name.startswith(".")]


@pytest.mark.row("PPO-4")
def test_calling_a_finished_run_again_does_not_rewrite_its_checkpoint(pack: Pack, tmp_path: Path) -> None:
    first = run_training(config(), pack.path, tmp_path / "run").stat()
    again = run_training(config(), pack.path, tmp_path / "run").stat()
    assert (again.st_ino, again.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


@pytest.mark.row("PPO-4")
def test_a_replaced_pack_is_an_error_when_a_run_resumes(pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "mine.pack"
    path.write_bytes(pack.path.read_bytes())
    run_training(config(), path, tmp_path / "run")
    path.unlink()
    pack_of(path, *(scene(Actor(10.0), id=f"other-{k}", steps=41) for k in range(5)))
    with pytest.raises(CheckpointError, match=r"mine\.pack was replaced since; give --new"):
        run_training(config(steps=800), path, tmp_path / "run")


@pytest.mark.row("PPO-4")
def test_weights_that_are_not_finite_end_the_run_and_are_not_saved(pack: Pack, tmp_path: Path) -> None:
    made, seen = trainer(config(steps=4000, checkpoint_interval=1), pack, tmp_path), []
    made.run(seen.append, lambda: len(seen) == 2)
    kept = checkpoints_in(tmp_path)
    with torch.no_grad():
        made.policy.value.bias.fill_(float("nan"))
    with pytest.raises(RoadworthyError, match=rf"update 3: not finite: .*value.*{kept[-1].name}, is from"):
        made.run(seen.append)
    assert len(seen) == 2
    assert checkpoints_in(tmp_path) == kept


@pytest.mark.row("PPO-6")
def test_worlds_that_are_not_saved_start_again_and_are_staggered_again(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "_keeps_worlds", lambda trainer: False)  # as on a GPU
    settings, trace = config(env=sim(3)), tmp_path / "trace.jsonl"
    run_training(settings, pack.path, tmp_path / "run", trace=trace)
    first = updates(tmp_path / "run")[-1]
    run_training(replace(settings, steps=1200), pack.path, tmp_path / "run", trace=trace)
    begun: dict[int, int] = {}
    for line in map(json.loads, trace.read_text().splitlines()):
        if line["event"] == "reset":
            begun[line["update"] - first] = begun.get(line["update"] - first, 0) + 1
    rows = settings.worlds * 4
    assert begun[0] == rows, "memory was cleared where the run resumed"
    assert {count for update, count in begun.items() if update > 0} <= set(range(1, rows))
    assert any(update > 0 for update in begun), "some worlds are reset, so that not all end together"


@pytest.mark.row("TRIAL-8")
@pytest.mark.row("PPO-6")
def test_a_stage_of_the_curriculum_continues_with_the_next_episodes_and_draws(pack: Pack, tmp_path: Path) -> None:
    made = trainer(
        config(env=sim(3), policy=network(conditioning=ConditioningConfig(gamma=(0.9, 0.99)))), pack, tmp_path
    )
    for _ in range(6):
        made.collector.collect()
    drawn = made.env.drawn_episodes
    conditioning = made.collector._conditioning()
    made.take_stage(2)
    numbers = [episode.number for episode in made.env.episodes if episode]
    assert numbers == [world + int(drawn[world]) * made.env.world_count for world in range(made.env.world_count)]
    assert min(drawn) > 0
    later = made.collector._conditioning()
    assert conditioning is not None
    assert later is not None
    assert not (conditioning == later).any()
    assert made.collector.collect().was_reset.all()
    assert not made.collector.collect().was_reset.all()


def test_zero_threads_means_all_cores_even_after_a_run_with_fewer(pack: Pack, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        trainer(config(threads=1), pack, tmp_path / "one")
        trainer(config(threads=0), pack, tmp_path / "all")
        assert torch.get_num_threads() == loop._ALL_THREADS
    finally:
        torch.set_num_threads(before)


def test_two_processes_can_write_the_same_table_at_once(tmp_path: Path) -> None:
    code = f"""
from functools import partial
from pathlib import Path
from roadworthy.training.grid import write_table
for k in range(2000):
    write_table([], Path({str(tmp_path / "grid.csv")!r}))
"""
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert (tmp_path / "grid.csv").read_text() == "checkpoint,error\n"
    assert [path.name for path in tmp_path.iterdir()] == ["grid.csv"]
