"""Checkpoints: loading returns what was saved, damage is named, and no code in a file is executed."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from roadworthy.errors import CheckpointError
from roadworthy.policy.checkpoint import load_checkpoint, put_weights, save_policy
from roadworthy.policy.checkpoint_files import ABOUT, WEIGHTS, newest, remove_partial_checkpoints, resolve_checkpoint
from roadworthy.policy.config import ActionDistribution, ConditioningConfig
from roadworthy.policy.network import PolicyNetwork
from roadworthy.sim.config import ObserveConfig
from tests.policy.networks import flat, random_observations, small_policy


def saved(folder: Path, step: int, core: str = "lstm", **settings: Any) -> Path:
    """A checkpoint after so many steps, in a folder of its own."""
    return save_policy(folder / f"step_{step}", small_policy(core, **settings), counters={"step": step, "epoch": 2})


def spoil(path: Path) -> None:
    """Change one byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def edit(folder: Path, **changes: Any) -> None:
    """Change entries of a checkpoint's JSON."""
    about = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(about | changes))


def said_by(policy: PolicyNetwork) -> torch.Tensor:
    observations, active = random_observations(policy, 3), torch.ones(3, dtype=torch.bool)
    conditioning = (
        torch.full((3, len(policy.config.conditioning.names)), 0.5) if policy.config.conditioning.names else None
    )
    with torch.no_grad():
        return flat(policy.step(observations, active, policy.memory(3), conditioning))


@pytest.mark.row("POLICY-5")
@pytest.mark.parametrize(
    ("core", "settings"),
    [
        ("mlp", {"actions": ActionDistribution.JOINT}),
        ("lstm", {"choices": None}),
        ("transformer", {"conditioning": ConditioningConfig(gamma=(0.9, 0.99))}),
    ],
)
def test_a_policy_comes_back_as_it_was(core: str, settings: Any, tmp_path: Path) -> None:
    policy = small_policy(core, **settings)
    counters = {"step": 12, "epoch": 3}
    folder = save_policy(tmp_path / "a", policy, counters=counters, more={"train": {"seed": 4}}, files={"more": b"1"})
    for path in (folder, str(folder), folder / WEIGHTS, folder / ABOUT):
        loaded = load_checkpoint(path)
        assert torch.equal(said_by(loaded.policy), said_by(policy))
        assert (loaded.policy.config, loaded.policy.layout) == (policy.config, policy.layout)
        assert (loaded.policy.choices, loaded.step, loaded.epoch) == (policy.choices, 12, 3)
        assert loaded.about["train"] == {"seed": 4}
        assert loaded.about["revision"].keys() == {"commit", "is_dirty"}
    assert (folder / "more").read_bytes() == b"1"


@pytest.mark.row("POLICY-5")
def test_equal_policies_have_equal_hashes_wherever_they_lie(tmp_path: Path) -> None:
    first, later = load_checkpoint(saved(tmp_path, 1)), load_checkpoint(saved(tmp_path, 2))
    other = load_checkpoint(saved(tmp_path / "other", 1, "mlp"))
    assert first.sha256 == later.sha256 != other.sha256
    assert (first.path / WEIGHTS).read_bytes() == (later.path / WEIGHTS).read_bytes()


@pytest.mark.row("POLICY-5")
def test_damaged_weights_are_named_with_the_last_complete_checkpoint_before_them(tmp_path: Path) -> None:
    folders = {step: saved(tmp_path, step) for step in (100, 200, 300, 400)}
    for step in (200, 300):
        spoil(folders[step] / WEIGHTS)
    with pytest.raises(CheckpointError, match="is damaged: its checksum is not the one in") as caught:
        load_checkpoint(folders[300])
    assert str(folders[300] / WEIGHTS) in str(caught.value)
    assert str(caught.value).endswith(f"; the last complete one before it is {folders[100]}")


@pytest.mark.row("POLICY-5")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"schema_version": 1, "weigh', "is damaged: Unterminated string"),
        (b"\xff\xfe\x00", "is damaged"),
        (b"[]", "has no schema_version, so it does not belong to a checkpoint"),
        (None, "can't read"),
    ],
)
def test_a_damaged_json_is_named_with_another_checkpoint(content: bytes | None, told: str, tmp_path: Path) -> None:
    whole, torn, also_torn = (saved(tmp_path, step) for step in (1, 2, 3))
    for folder in (torn, also_torn):
        (folder / ABOUT).unlink()
        if content is not None:
            (folder / ABOUT).write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(torn)
    assert str(torn / ABOUT) in str(caught.value)
    assert told in str(caught.value)
    assert str(caught.value).endswith(f"; the newest complete one beside it is {whole}")


@pytest.mark.row("POLICY-5")
def test_without_another_checkpoint_none_is_named(tmp_path: Path) -> None:
    folder = saved(tmp_path, 1)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"not the one in policy\.json$"):
        load_checkpoint(folder)


@pytest.mark.row("POLICY-5")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"policy": {"hidden": 0}}, "hidden is 0"),
        ({"policy": {"hiden": 8}}, "hiden"),
        ({"policy": 3}, "can't be read as a checkpoint"),
        ({"observation_layout": {}}, "can't be read as a checkpoint"),
        ({"observation_layout": {"blocks": []}}, "can't be read as a checkpoint"),
        ({"action_choices": [7]}, "can't be read as a checkpoint"),
        ({"schema_version": 99}, "has schema version 99; .* versions up to 1; update"),
    ],
)
def test_a_wrong_json_is_an_error_that_says_what_is_wrong(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    folder = saved(tmp_path, 1)
    edit(folder, **changes)
    with pytest.raises(CheckpointError, match=told):
        load_checkpoint(folder)


@pytest.mark.row("POLICY-5")
def test_weights_that_do_not_fit_are_an_error_that_names_every_part(tmp_path: Path) -> None:
    tensors = load_file(saved(tmp_path, 1) / WEIGHTS)
    without_lights = small_policy("lstm", choices=(4, 3), observe=ObserveConfig(3, 100.0, 5, 4, 0))
    with pytest.raises(CheckpointError) as caught:
        put_weights(without_lights, tensors, "that checkpoint")
    told = str(caught.value)
    assert told.startswith("that checkpoint does not fit this policy: ")
    assert "encoder.entries.lights.0.weight is not part of the policy" in told
    assert "head.scores.weight has shape (20, 16), expected (7, 16)" in told
    assert "core." not in told
    with pytest.raises(CheckpointError, match=r"core\.cell\.weight_ih is missing; .*core\.layer\.weight is not part"):
        put_weights(small_policy("lstm"), small_policy("mlp").state_dict(), "x")


@pytest.mark.row("POLICY-5")
def test_weights_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    policy, other = small_policy("mlp"), small_policy("mlp", choices=(4, 3))
    with torch.no_grad():
        other.value.bias.fill_(9.0)
    before = said_by(policy)
    with pytest.raises(CheckpointError):
        put_weights(policy, other.state_dict(), "x")
    assert torch.equal(said_by(policy), before)


class _Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self._mark),))


@pytest.mark.row("POLICY-5")
def test_loading_runs_no_code_from_a_file(tmp_path: Path) -> None:
    mark, folder = tmp_path / "it_ran", saved(tmp_path, 1)
    pickled = pickle.dumps(_Trap(mark))
    pickle.loads(pickled)
    assert mark.exists(), "the trap works"
    mark.rmdir()
    for name in (WEIGHTS, ABOUT):
        other = shutil.copytree(folder, tmp_path / f"with_{name}")
        (other / name).write_bytes(pickled)
        if name == WEIGHTS:
            edit(other, weights_sha256=hashlib.sha256(pickled).hexdigest())
        with pytest.raises(CheckpointError):
            load_checkpoint(other)
    edit(folder, policy={"core": f"__import__('os').mkdir({str(mark)!r})"})
    with pytest.raises(CheckpointError):
        load_checkpoint(folder)
    assert not mark.exists()


@pytest.mark.row("EVAL-5")
def test_the_newest_checkpoint_is_that_with_the_most_recorded_steps(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    folders = [save_policy(tmp_path / name, small_policy(), counters={"step": step}, files={"trainer": b"state"})
               for name, step in (("c", 9), ("a", 100), ("b", 20))]  # fmt: skip
    assert newest(tmp_path) == folders[1]
    spoil(folders[1] / "trainer")
    assert newest(tmp_path) == folders[2], "a checkpoint of which any file is damaged is passed over"
    spoil(folders[2] / WEIGHTS)
    assert newest(tmp_path) == folders[0]


@pytest.mark.row("POLICY-5")
def test_a_partially_written_folder_does_not_count_as_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = saved(tmp_path, 1)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            saved(tmp_path, 2)
    assert len(list(tmp_path.iterdir())) == 2, "all files of the second were written"
    assert newest(tmp_path) == whole
    spoil(whole / WEIGHTS)
    with pytest.raises(CheckpointError, match=r"policy\.json$"):
        load_checkpoint(whole)


@pytest.mark.row("POLICY-5")
@pytest.mark.row("PPO-4")
def test_leftovers_of_a_killed_writer_are_removed_and_a_replaced_checkpoint_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_policy(tmp_path / "step_1", small_policy("mlp"), counters={"step": 1})
    rename = Path.rename

    def dies(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", dies)
    with pytest.raises(KeyboardInterrupt):
        save_policy(path, small_policy("lstm"), counters={"step": 1})
    monkeypatch.undo()
    assert newest(tmp_path) is None
    remove_partial_checkpoints(tmp_path)
    assert newest(tmp_path) == path
    assert load_checkpoint(path).policy.config.core == "mlp"
    assert [left.name for left in tmp_path.iterdir()] == ["step_1"]


@pytest.mark.row("PPO-4")
def test_a_checkpoint_of_a_newer_version_does_not_count_as_damaged(tmp_path: Path) -> None:
    path = save_policy(tmp_path / "step_1", small_policy("mlp"), counters={"step": 1})
    about = json.loads((path / ABOUT).read_text())
    (path / ABOUT).write_text(json.dumps({**about, "schema_version": 2}))
    with pytest.raises(CheckpointError, match=r"has schema version 2; .* update Roadworthy"):
        newest(tmp_path)


def test_a_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    save_policy(tmp_path / "a", small_policy("mlp"), files={"old": b""})
    folder = save_policy(tmp_path / "a", small_policy("lstm"))
    assert load_checkpoint(folder).policy.config.core == "lstm"
    assert {path.name for path in folder.iterdir()} == {WEIGHTS, ABOUT}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A training folder with three checkpoints, the second of which is the best."""
    folder = tmp_path / "first"
    for step in (5, 1_000, 24_000_000):
        save_policy(folder / "checkpoints" / f"step_{step:012d}", small_policy("mlp"), counters={"step": step})
    (folder / "checkpoints" / "last").write_text("step_000024000000\n")
    (folder / "checkpoints" / "best").write_text("step_000000001000\n")
    return folder


@pytest.mark.row("POLICY-5")
@pytest.mark.parametrize(
    ("spec", "step"),
    [
        ("", 24_000_000),
        ("/checkpoints", 24_000_000),
        ("/checkpoints/last", 24_000_000),
        ("/checkpoints/best", 1_000),
        ("/checkpoints/step_000000000005", 5),
        ("/checkpoints/step_000000000005/policy.json", 5),
        ("@best", 1_000),
        ("@last", 24_000_000),
        ("@5", 5),
        ("@24_000_000", 24_000_000),
    ],
)
def test_a_training_folder_names_its_checkpoints(spec: str, step: int, trained: Path) -> None:
    assert resolve_checkpoint(f"{trained}{spec}").name == f"step_{step:012d}"
    assert load_checkpoint(f"{trained}{spec}").step == step


def test_a_training_folder_that_was_copied_names_its_own_checkpoints(trained: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(trained, tmp_path / "copy")
    shutil.rmtree(trained)
    assert resolve_checkpoint(f"{copy}@best") == copy / "checkpoints" / "step_000000001000"


def test_a_training_folder_means_its_newest_complete_checkpoint(trained: Path) -> None:
    spoil(trained / "checkpoints" / "step_000024000000" / WEIGHTS)
    assert resolve_checkpoint(trained).name == "step_000000001000"


def test_a_folder_with_an_at_sign_in_its_name_is_found(trained: Path) -> None:
    renamed = trained.rename(trained.with_name("first@best"))
    assert resolve_checkpoint(renamed).name == "step_000024000000"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("@7", "@7 is not a checkpoint; expected @last, @best or @STEP with one of: 24000000, 1000, 5"),
        ("@bset", "@bset is not a checkpoint; expected @last, @best or @STEP"),
        ("/nowhere", "nowhere is not a checkpoint; expected a checkpoint folder"),
    ],
)
def test_a_wrong_checkpoint_name_is_an_error_that_says_what_exists(spec: str, message: str, trained: Path) -> None:
    with pytest.raises(CheckpointError, match=message):
        resolve_checkpoint(f"{trained}{spec}")
