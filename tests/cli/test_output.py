"""What verbs write, and where."""

from __future__ import annotations

import json

import pytest

from roadworthy.cli.output import say_error, tell, tell_json

LONG_PATH = "/" + "/".join(["folder with [brackets]"] * 20)


def test_a_long_path_stays_on_one_line_and_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    tell(LONG_PATH)
    say_error(LONG_PATH)
    assert capsys.readouterr() == (f"{LONG_PATH}\n", f"error: {LONG_PATH}\n")


def test_json_is_one_line_of_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    tell_json({"pack": LONG_PATH, "lines": "a\nb", "name": "Zürich"})
    output = capsys.readouterr()
    assert output.out.count("\n") == 1
    assert json.loads(output.out) == {"pack": LONG_PATH, "lines": "a\nb", "name": "Zürich"}
    assert output.err == ""
