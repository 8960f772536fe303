"""What a policy spec names: reserved words come before files of the same name, wherever a spec is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.evaluation.subject import subject_of
from roadworthy.evaluation.training import training_of
from roadworthy.jobs.policies import RandomPolicy, ZeroPolicy, checkpoint_of
from roadworthy.jobs.policies import load_policy as load_job_policy
from roadworthy.policy.actor import load_actor
from roadworthy.policy.checkpoint import save_policy
from roadworthy.policy.coplayers import Coplayers
from roadworthy.policy.neural import NeuralActor
from roadworthy.policy.spec import checkpoint_folder, is_reserved
from roadworthy.training.config import CoplayerConfig
from tests.policy.networks import small_policy

RESERVED = ("zero", "random", "expert:drive", "expert:log")


@pytest.fixture(autouse=True)
def crowded_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder has a checkpoint by the name of each policy, as an experiment may leave them."""
    monkeypatch.chdir(tmp_path)
    for name in RESERVED:
        save_policy(tmp_path / name, small_policy(), more={"train": {"env": {}}})
    return tmp_path


@pytest.mark.parametrize("spec", RESERVED)
def test_a_folder_does_not_take_the_place_of_a_policy(spec: str) -> None:
    assert load_actor(spec).name == spec.replace(":", "-")
    subject = subject_of(spec)
    assert (subject.spec, subject.name, subject.checkpoint) == (spec, spec.replace(":", "-"), None)
    assert training_of(spec) is None
    assert checkpoint_of(spec) is None


@pytest.mark.parametrize("is_folder", [True, False])
def test_an_unrelated_folder_or_file_of_the_name_disturbs_nothing(
    is_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for name in RESERVED:
        place = tmp_path / "other" / name
        _ = place.mkdir() if is_folder else place.write_text("notes")
        assert load_actor(name).name == subject_of(name).name
        assert training_of(name) is None


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("prefix", ["./", "{here}/"])
def test_a_path_names_the_folder(name: str, prefix: str, crowded_folder: Path) -> None:
    spec = prefix.format(here=crowded_folder) + name
    assert isinstance(load_actor(spec), NeuralActor)
    subject = subject_of(spec)
    assert subject.checkpoint is not None
    assert subject.spec == str(crowded_folder / name)
    assert isinstance(load_actor(subject.spec), NeuralActor)
    assert training_of(spec) is not None
    assert checkpoint_of(spec) == Path(spec)


def test_jobs_take_the_built_in_policies() -> None:
    assert isinstance(load_job_policy("zero", {}), ZeroPolicy)
    assert isinstance(load_job_policy("random", {}), RandomPolicy)
    with pytest.raises(UsageError, match="needs an environment such as drive:town"):
        load_job_policy("./zero", {})


def test_partners_in_training_are_checkpoints_and_never_built_in_policies() -> None:
    assert Coplayers(CoplayerConfig(("./zero",)).checkpoints).distinct == 1
    with pytest.raises(RoadworthyError, match=r"a partner is 'zero'.*a folder of that name is \./zero"):
        Coplayers(CoplayerConfig(("zero",)).checkpoints)


def test_a_path_object_is_always_a_path() -> None:
    assert is_reserved("zero")
    assert not is_reserved(Path("zero"))
    assert checkpoint_folder(Path("zero")) == Path("zero")
    assert checkpoint_folder("zero") is None
