"""Extensions are named by entry point, module:Name or file.py:Name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from roadworthy import plugins
from roadworthy.errors import ConfigError


def test_code_in_a_file_and_in_the_current_folder_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_in_folder.py").write_text("class Mine: answer = 42\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    by_file = plugins.load("roadworthy.policies", "mine_in_folder.py:Mine", "policy")
    by_path = plugins.load("roadworthy.policies", str(tmp_path / "mine_in_folder.py:Mine"), "policy")
    by_module = plugins.load("roadworthy.policies", "mine_in_folder:Mine", "policy")
    assert by_file is by_path
    assert by_file.answer == by_module.answer == 42


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("no_such_module:Name", "can't load policy 'no_such_module:Name': ModuleNotFoundError"),
        ("json:NoSuchName", "can't load policy 'json:NoSuchName': AttributeError"),
        ("missing.py:Name", "there is no file"),
        ("scripted_piker", "unknown policy 'scripted_piker'; did you mean scripted_picker?"),
    ],
)
def test_errors_name_the_extension_and_what_is_wrong(name: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plugins.load("roadworthy.policies", name, "policy")
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", ["town", "baseline:town-1", "ws://host:80", "expert:drive:", ""])
def test_a_name_without_an_attribute_is_not_code(name: str) -> None:
    assert not plugins.is_code(name)
