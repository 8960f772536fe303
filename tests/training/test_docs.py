"""docs/training.md agrees with the code."""

from __future__ import annotations

import re

import pytest

from roadworthy.cli.train import train
from roadworthy.training.train import PRESETS
from tests.policy.networks import CORES
from tools.settings import TRAINING


@pytest.mark.row("UI-6")
def test_every_setting_is_documented_with_its_default() -> None:
    assert TRAINING.path.read_text() == TRAINING.written(), "run python -m tools.settings"


@pytest.mark.row("UI-6")
def test_every_preset_core_and_option_is_documented() -> None:
    text = TRAINING.path.read_text()
    words = [path.stem for path in PRESETS.glob("*.toml")] + [*CORES]
    for name in words:
        assert f"`{name}`" in text, name
    names = set(train.__annotations__) - {"config", "overrides", "return"}
    options = {f"--{name.strip('_').replace('_', '-')}" for name in names}
    assert {"--set", *options} <= set(re.findall(r"--[a-z-]+", text))


@pytest.mark.row("UI-6")
def test_every_signal_is_in_the_table_of_what_it_does() -> None:
    text = TRAINING.path.read_text()
    rules = text[text.index("## What each signal does") :]
    rules = rules[: rules.index("\n## ", 5)]
    for name in ("active", "trial_ended", "episode_ended", "timed_out"):
        assert f"`{name}`" in rules
    for column in ("memory", "value chain", "loss", "figures"):
        assert column in rules.splitlines()[3], column
