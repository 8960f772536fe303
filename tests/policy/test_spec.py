"""What a policy spec names: reserved words come before files of the same name, and training folders are checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.errors import CheckpointError, RoadworthyError
from roadworthy.evaluation.policy_ref import policy_ref
from roadworthy.evaluation.training import training_of
from roadworthy.policy.checkpoint import save_policy
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.load import load_policy
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.spec import Kind, checkpoint_folder, is_reserved, kind_of
from roadworthy.training.config import CoplayerConfig
from tests.policy.networks import small_policy

RESERVED = ("zero", "random", "expert:drive", "expert:log")


@pytest.fixture(autouse=True)
def crowded_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder has a checkpoint with the name of each policy, as an experiment may leave them."""
    monkeypatch.chdir(tmp_path)
    for name in RESERVED:
        save_policy(tmp_path / name, small_policy(), more={"train": {"env": {}}})
    return tmp_path


@pytest.mark.parametrize("spec", RESERVED)
def test_a_folder_does_not_replace_a_policy(spec: str) -> None:
    assert kind_of(spec) is Kind.BUILT_IN
    assert not isinstance(load_policy(spec), NeuralPolicy)
    ref = policy_ref(spec)
    assert (ref.spec, ref.name, ref.checkpoint) == (spec, spec.replace(":", "-"), None)
    assert training_of(spec) is None


@pytest.mark.parametrize("is_folder", [True, False])
def test_an_unrelated_folder_or_file_of_the_name_changes_nothing(
    is_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for name in RESERVED:
        place = tmp_path / "other" / name
        _ = place.mkdir() if is_folder else place.write_text("notes")
        assert policy_ref(name).name == name.replace(":", "-")
        assert training_of(name) is None


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("prefix", ["./", "{here}/"])
def test_a_path_names_the_folder(name: str, prefix: str, crowded_folder: Path) -> None:
    spec = prefix.format(here=crowded_folder) + name
    assert isinstance(load_policy(spec), NeuralPolicy)
    ref = policy_ref(spec)
    assert ref.checkpoint is not None
    assert ref.spec == str(crowded_folder / name)
    assert isinstance(load_policy(ref.spec), NeuralPolicy)
    assert training_of(spec) is not None


def test_partners_in_training_are_checkpoints_and_never_built_in_policies() -> None:
    assert CoplayerNetworks(CoplayerConfig(("./zero",)).checkpoints).distinct == 1
    with pytest.raises(RoadworthyError, match=r"a partner is 'zero'.*a folder of that name is \./zero"):
        CoplayerNetworks(CoplayerConfig(("zero",)).checkpoints)


def test_a_path_object_is_always_a_path() -> None:
    assert is_reserved("zero")
    assert not is_reserved(Path("zero"))
    assert checkpoint_folder(Path("zero")) == Path("zero")
    assert checkpoint_folder("zero") is None
    assert kind_of(Path("zero")) is Kind.CHECKPOINT


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training folder with three checkpoints, which were written in another order than they were trained."""
    for step in (3000, 12000, 500):
        counters = {"step": step, "epoch": step // 100}
        save_policy(tmp_path / "runs/first/checkpoints" / f"step_{step:012d}", small_policy(), counters=counters)
    return tmp_path / "runs/first"


@pytest.mark.parametrize(
    ("spec", "step"),
    [("runs/first", 12000), ("runs/first@last", 12000), ("runs/first@3000", 3000), ("runs/first/", 12000)],
)
def test_a_training_folder_names_its_newest_checkpoint_or_one_of_its_steps(
    training: Path, spec: str, step: int
) -> None:
    ref = policy_ref(spec)
    assert ref.step == step
    assert ref.name == f"first-step_{step}"
    assert ref.spec == str(training / "checkpoints" / f"step_{step:012d}")
    assert isinstance(load_policy(spec), NeuralPolicy)


def test_the_best_checkpoint_is_a_policy(training: Path) -> None:
    (training / "checkpoints" / "best").write_text("step_000000000500\n")
    assert policy_ref("runs/first@best").step == 500
    assert policy_ref("runs/first@best").name == "first-step_500"


def test_a_checkpoint_that_a_training_folder_does_not_have_is_an_error(training: Path) -> None:
    with pytest.raises(CheckpointError, match="expected @last, @best or @STEP with one of: 12000, 3000, 500"):
        policy_ref("runs/first@3001")
    (training.parent / "empty" / "checkpoints").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="runs/empty is not a checkpoint"):
        policy_ref("runs/empty")


def test_names_tell_training_runs_and_configurations_apart(training: Path, tmp_path: Path) -> None:
    training.rename(training.with_name("second"))
    save_policy(tmp_path / "runs/first/checkpoints/step_000000012000", small_policy(), counters={"step": 12000})
    save_policy(tmp_path / "mine", small_policy())
    assert policy_ref("runs/first").name == "first-step_12000"
    assert policy_ref("runs/second").name == "second-step_12000"
    assert policy_ref("mine").name == "mine"
    assert policy_ref("mine", {"is_greedy": True}).name == "mine-is_greedy=True"
    long = [policy_ref("mine", {"conditioning": {}, "is_greedy": value}).name for value in (True, False)]
    assert len(set(long)) == 2
    assert all(name.startswith("mine-") and len(name) < 20 for name in long)
    assert policy_ref("expert:drive", {"settling_s": 1.5}).name == "expert-drive-settling_s=1.5"
    assert policy_ref("baseline:town").name == "town"
