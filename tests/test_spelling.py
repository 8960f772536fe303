"""Guesses for wrong names in errors."""

from __future__ import annotations

import pytest

from roadworthy.spelling import closest

KEYS = ("episode", "episodes", "env", "seed", "engine", "replicates")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("episodse", "episodes"),
        ("epsiodes", "episodes"),
        ("episod", "episode"),
        ("sede", "seed"),
        ("replicate", "replicates"),
        ("xyz", None),
    ],
)
def test_a_wrong_name_leads_to_the_one_that_was_meant(wrong: str, meant: str | None) -> None:
    assert closest(wrong, KEYS) == meant
