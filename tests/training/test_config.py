"""Deprecated names of settings, in configs and in records."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from roadworthy.config import load, parse, plain
from roadworthy.errors import ConfigError, DeprecatedNameWarning
from roadworthy.evaluation.training import training_of
from roadworthy.policy.checkpoint import load_checkpoint
from roadworthy.policy.config import PolicyConfig
from roadworthy.policy.spec import BASELINES
from roadworthy.scenario.pack import Pack
from roadworthy.training.config import TrainConfig
from roadworthy.training.progress import last_progress, read_progress
from roadworthy.training.resume import recorded_config
from roadworthy.training.run import run_training
from roadworthy.training.train import PRESETS
from tests.training.small import config

OLD_PPO = {
    "minibatches": 3,
    "passes": 2,
    "discount": 0.9,
    "trace_decay": 0.8,
    "clip": 0.3,
    "value_clip": 0.4,
    "value_weight": 0.5,
    "entropy": 0.02,
    "max_gradient": 0.6,
    "ratio_clip": 1.1,
    "trace_clip": 1.2,
    "priority": 0.7,
}


def test_deprecated_keys_mean_the_new_ones_and_name_them() -> None:
    with pytest.warns(DeprecatedNameWarning) as caught:
        old = parse({"ppo": OLD_PPO, "policy": {"traits": {"discount": [0.9, 0.99]}, "actions": "parts"}}, TrainConfig)
    assert (old.ppo.num_minibatches, old.ppo.update_epochs, old.ppo.gamma, old.ppo.gae_lambda) == (3, 2, 0.9, 0.8)
    assert (old.ppo.clip_coef, old.ppo.vf_clip_coef, old.ppo.vf_coef, old.ppo.ent_coef) == (0.3, 0.4, 0.5, 0.02)
    assert (old.ppo.max_grad_norm, old.ppo.vtrace_rho_clip, old.ppo.vtrace_c_clip) == (0.6, 1.1, 1.2)
    assert old.ppo.prio_alpha == 0.7
    assert old.policy.conditioning.gamma == (0.9, 0.99)
    assert plain(old)["policy"]["actions"] == "multi_discrete"
    messages = [str(warning.message) for warning in caught]
    assert "config: ppo.trace_decay is deprecated; use ppo.gae_lambda" in messages
    assert "config: policy.traits is deprecated; use policy.conditioning" in messages
    assert "config: policy.conditioning.discount is deprecated; use policy.conditioning.gamma" in messages
    assert len(messages) == len(OLD_PPO) + 3


def test_an_old_and_a_new_name_together_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"ppo\.discount is the deprecated name of gamma, and both are given"):
        parse({"ppo": {"discount": 0.9, "gamma": 0.9}}, TrainConfig)


@pytest.mark.parametrize("path", sorted(PRESETS.glob("*.toml")), ids=lambda path: path.stem)
def test_presets_have_no_deprecated_names(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path, TrainConfig)


@pytest.mark.parametrize("name", ["town", "adaptive"])
def test_recorded_checkpoints_with_old_names_load_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecatedNameWarning)
        checkpoint = load_checkpoint(BASELINES / name)
        recorded = recorded_config(checkpoint.about["train"], "record")
        assert training_of(f"baseline:{name}") is not None
    assert "passes" in checkpoint.about["train"]["ppo"], "the record is an old one"
    assert recorded["ppo"]["update_epochs"] == 1
    assert recorded["ppo"]["gamma"] == 0.99
    assert parse(recorded["policy"], PolicyConfig) == checkpoint.policy.config


@pytest.mark.row("PPO-4")
def test_a_run_with_old_names_in_its_records_is_resumed(pack: Pack, tmp_path: Path) -> None:
    new = {"learning_rate": 1e-3, "final_learning_rate": 1e-3}
    folder, settings = tmp_path / "run", config(steps=100, **new)
    checkpoint = run_training(settings, pack.path, folder)
    whole = run_training(config(steps=300, **new), pack.path, tmp_path / "whole")
    names = {"num_minibatches": "minibatches", "gamma": "discount", "update_epochs": "passes", "ent_coef": "entropy"}
    for path, key in ((folder / "config.json", None), (checkpoint / "policy.json", "train")):
        record = json.loads(path.read_text())
        train = record if key is None else record[key]
        train["ppo"] = {names.get(name, name): value for name, value in train["ppo"].items()}
        train["policy"]["traits"] = train["policy"].pop("conditioning")
        del train["policy"]["core_config"]
        path.write_text(json.dumps(record))
    progress = folder / "progress.jsonl"
    old = {"update": "epoch", "learning_rate": "rate"}
    losses = {"policy_loss": "policy", "approx_kl": "divergence"}
    lines = [json.loads(line) for line in progress.read_text().splitlines()]
    for line in lines:
        line["losses"] = {losses.get(name, name): value for name, value in line["losses"].items()}
    texts = [json.dumps({old.get(name, name): value for name, value in line.items()}) for line in lines]
    progress.write_text("".join(f"{text}\n" for text in texts))
    assert last_progress(folder)["update"] == len(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecatedNameWarning)
        resumed = run_training(config(steps=300, **new), pack.path, folder)
    assert (resumed / "policy.safetensors").read_bytes() == (whole / "policy.safetensors").read_bytes()
    read = read_progress(progress)
    assert [line["update"] for line in read] == list(range(1, len(read) + 1))
    expected = read_progress(tmp_path / "whole" / "progress.jsonl")
    assert [line["losses"] for line in read] == [line["losses"] for line in expected]
