"""Pointers to the last and the best checkpoint of a training folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from roadworthy.policy.checkpoint import load_checkpoint
from roadworthy.policy.checkpoint_files import ABOUT, resolve_checkpoint
from roadworthy.scenario.pack import Pack
from roadworthy.training.best import point_at_checkpoints
from roadworthy.training.run import run_training
from tests.training.small import checkpoints_in, config


def give_training_score(checkpoint: Path, score: float | None) -> None:
    path = checkpoint / "trainer.json"
    values = json.loads(path.read_bytes())
    values["report"] = {**values["report"], "score": score}
    path.write_text(json.dumps(values))
    about = json.loads((checkpoint / ABOUT).read_bytes())
    about["files_sha256"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (checkpoint / ABOUT).write_text(json.dumps(about))


@pytest.fixture
def trained(pack: Pack, tmp_path: Path) -> Path:
    run_training(config(steps=400, checkpoint_interval=1, keep=3), pack.path, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.row("PPO-4")
def test_the_best_checkpoint_has_the_highest_training_score_and_the_later_one_of_equals(trained: Path) -> None:
    *older, first, second, third = checkpoints_in(trained)
    for scores, best in (
        ((0.5, 0.9, 0.2), second),
        ((0.5, 0.5, 0.2), second),
        ((0.5, None, None), first),
        ((None, None, None), third),
    ):
        for checkpoint in older:
            give_training_score(checkpoint, None)
        for checkpoint, score in zip((first, second, third), scores, strict=True):
            give_training_score(checkpoint, score)
        assert point_at_checkpoints(trained) == best
        assert (trained / "checkpoints" / "best").read_text() == f"{best.name}\n"
        assert (trained / "checkpoints" / "last").read_text() == f"{third.name}\n"
        assert resolve_checkpoint(f"{trained}@best") == best


@pytest.mark.row("PPO-4")
def test_old_checkpoints_are_removed_but_not_the_best_one(pack: Pack, tmp_path: Path) -> None:
    settings, folder = config(steps=100, checkpoint_interval=1, keep=1), tmp_path / "run"
    first = run_training(settings, pack.path, folder)
    give_training_score(first, 2.0)  # no real score is above 1
    last = run_training(config(steps=300, checkpoint_interval=1, keep=1), pack.path, folder)
    assert checkpoints_in(folder) == [first, last]
    assert load_checkpoint(f"{folder}@best").path == first
    assert load_checkpoint(folder).path == last


def test_a_folder_without_checkpoints_gets_no_pointers(tmp_path: Path) -> None:
    assert point_at_checkpoints(tmp_path) is None
    assert not list(tmp_path.iterdir())
