"""Scenario URIs: packs, tags, and packs that are generated once."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.errors import ConfigError
from roadworthy.kernels import cache_folder
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.pack import Pack
from roadworthy.sources import CLASSES, ScenarioSource, parse_source


@pytest.mark.parametrize(
    ("text", "file", "tag"),
    [
        ("town.pack", "town.pack", None),
        ("packs/town.pack#hard_stop", "packs/town.pack", "hard_stop"),
        ("odd#folder/town.pack", "odd#folder/town.pack", None),
        ("~/town.pack#", "/home/somebody/town.pack", None),
        ("${PACKS}/town.pack", "/packs/town.pack", None),
    ],
)
def test_a_pack_is_named_by_its_place(text: str, file: str, tag: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("PACKS", "/packs")
    assert parse_source(text) == ScenarioSource(Path(file), None, tag)


def test_a_recipe_is_named_by_its_classes_and_numbers() -> None:
    source = parse_source("generate:town?count=256&seed=1#roundabout")
    assert source.recipe is not None
    assert (source.recipe.count, source.recipe.seed, source.recipe.classes) == (256, 1, CLASSES["town"])
    assert source.tag == "roundabout"
    every = parse_source("generate:").recipe
    assert every is not None
    assert every.classes == BEHAVIORS
    some = parse_source("generate:cut_in,merge?steps=120").recipe
    assert some is not None
    assert (some.classes, some.steps) == (("cut_in", "merge"), 120)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a pack"),
        ("#merge", "expected a pack"),
        ("$NOT_DEFINED/a.pack", "the variable NOT_DEFINED is not defined"),
        ("generate:twon", "class 'twon' is unknown; known: hard_stop"),
        ("generate:town?cout=3", "with cout=3, expected whole numbers for count, seed, steps"),
        ("generate:town?count=many", "with count=many"),
        ("generate:town?count=0", "count is 0, expected at least 1"),
        ("generate:town?count=", "with count="),
    ],
)
def test_a_word_that_makes_no_sense_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_source(text)
    assert words in str(caught.value)


def test_equal_recipes_share_a_pack_and_others_do_not() -> None:
    assert parse_source("generate:all?count=3").path == parse_source("generate:?count=3#merge").path
    paths = {parse_source(f"generate:{rest}").path for rest in ("town?count=3", "all?count=3", "all?count=3&seed=1")}
    assert len(paths) == 3


def test_a_pack_is_generated_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = cache_folder("scenario")
    monkeypatch.setattr("roadworthy.sources.cache_folder", lambda part: tmp_path / "numba" / kernels.name)
    source = parse_source("generate:hard_stop?count=1&seed=5")
    assert not source.is_there
    told: list[tuple[int, int]] = []
    path = source.fetch(lambda done, total: told.append((done, total)))
    assert told == [(1, 1)]
    with Pack(path) as pack:
        assert "hard_stop" in pack.tags(0)
    written = path.stat().st_mtime_ns
    assert source.fetch() == path
    assert path.stat().st_mtime_ns == written
