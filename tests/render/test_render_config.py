"""A section with videos must give their number and length."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from roadworthy.config import parse
from roadworthy.errors import ConfigError
from roadworthy.render.config import RenderConfig


@pytest.mark.row("VID-3")
@pytest.mark.parametrize("number", [{"episodes": 3}, {"scenarios": 3}, {"choose": ["a-r0", "b-r0"]}])
def test_a_number_and_a_length_are_sufficient(number):
    config = parse({"max_steps": 200, **number}, RenderConfig)
    assert config.views == ("ego",)


@pytest.mark.row("VID-3")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"episodes": 3}, "max_steps is missing"),
        ({"max_steps": 200}, "neither is given"),
        ({"max_steps": 200, "episodes": 3, "scenarios": 3}, "both are given"),
        ({"max_steps": 200, "episodes": 3, "choose": ["a-r0"]}, "choose lists 1 episodes and episodes is given"),
        ({"max_steps": 200, "choose": []}, "choose lists 0 episodes"),
        ({"max_steps": 200, "episodes": -1}, "episodes is -1, expected a number of videos, or 0 for none"),
        ({"max_steps": 0, "episodes": 3}, "max_steps is 0"),
        ({"max_steps": 200, "episodes": 3, "choose": "best"}, "one of first, random, worst, failed"),
        ({"max_steps": 200, "episodes": 3, "views": ["bev", "side"]}, "one of bev, ego, obs"),
        ({"max_steps": 200, "episodes": 3, "views": ["bev", "bev"]}, "each once"),
        ({"max_steps": 200, "episodes": 3, "size": [1281, 720]}, "two even numbers"),
        ({"max_steps": 200, "episodes": 3, "speed_up": 0.0}, "speed_up is 0.0"),
        ({"max_steps": 200, "episodes": 3, "agent": -1}, "agent is -1"),
        ({"max_step": 200, "episodes": 3}, "did you mean max_steps"),
    ],
)
def test_missing_and_invalid_settings_are_named(given, words):
    with pytest.raises(ConfigError, match=words):
        parse(given, RenderConfig)


@pytest.mark.row("UI-6")
def test_every_setting_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "videos.md").read_text()
    assert [f.name for f in fields(RenderConfig) if f"| `{f.name}` |" not in text] == []
