"""Factors files: valid content, and errors for invalid content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.errors import ConfigError
from roadworthy.sensitivity.factors import Categorical, Continuous, parse_factors, read_factors, spread_units

FACTORS = (Continuous("light", 0.0, 2000.0), Categorical("object", ("box", "can", "ball")))
YAML = """
factors:
  light: {type: continuous, range: [0, 2000]}
  object: {type: categorical, choices: [box, can, ball]}
"""
NESTED = YAML.replace("[0, 2000]", "[[0, 2000]]")  # a pair for each dimension, as other tools write it
TOML = """
[factors]
light = {type = "continuous", range = [0, 2000]}
object = {type = "categorical", choices = ["box", "can", "ball"]}
"""


@pytest.mark.row("SENS-1")
@pytest.mark.parametrize(("name", "text"), [("f.yaml", YAML), ("f.yml", YAML), ("f.yaml", NESTED), ("f.toml", TOML)])
def test_yaml_and_toml_say_the_same(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_factors(path) == FACTORS


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"type": "continous", "range": [0, 1]}, "type is 'continous', expected continuous or categorical"),
        ({"type": "continuous", "range": [1, 1]}, "range is [1, 1], expected [low, high] with low below high"),
        ({"type": "continuous", "range": [0, float("inf")]}, "expected [low, high]"),
        ({"type": "continuous", "range": [[0, 1], [0, 2]]}, "use one factor per dimension of a vector"),
        ({"type": "continuous", "range": [["a", "b"]]}, "range is ['a', 'b'], expected [low, high]"),
        ({"type": "continuous", "rnage": [0, 1]}, "did you mean 'range'"),
        ({"type": "continuous", "choices": [0, 1]}, "key 'choices' is unknown"),
        ({"type": "categorical", "choices": ["box"]}, "expected two or more"),
        ({"type": "categorical", "choices": ["box", "box"]}, "expected each of them once"),
        ({"type": "categorical", "choices": "box"}, "expected a list"),
        ([0, 1], "expected type: continuous with a range"),
    ],
)
def test_a_fault_is_named_with_what_is_expected(entry: object, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_factors({"factors": {"light": entry}}, "f.yaml")
    assert "f.yaml: factors.light: " in str(error.value)
    assert words in str(error.value)


def test_one_error_reports_all_faults() -> None:
    with pytest.raises(ConfigError) as error:
        parse_factors({"factors": {"a": 1, "b": 2}})
    assert "factors.a" in str(error.value)
    assert "factors.b" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("f.json", "{}", "expected .yaml, .yml or .toml"),
        ("f.yaml", "factors: [", "f.yaml"),
        ("f.toml", "factors = ", "f.toml"),
        ("f.yaml", "light: 1", "expected a table 'factors'"),
    ],
)
def test_a_file_that_is_not_a_factors_file_is_refused(name: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_factors(path)
    assert words in str(error.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"can't read factors file 'nowhere\.yaml'"):
        read_factors("nowhere.yaml")


def test_values_and_units_are_each_others_inverse() -> None:
    light, kind = FACTORS
    assert light.value(light.unit(500)) == 500.0
    assert [kind.value(kind.unit(choice)) for choice in kind.choices] == list(kind.choices)
    assert Categorical("flag", (False, 1)).unit(1) == 1.0


def test_spread_units_are_uniform_over_choices() -> None:
    units = spread_units(FACTORS, np.random.default_rng(0).random((3000, 2)))
    assert np.bincount(units[:, 1].astype(int)).tolist() == pytest.approx([1000] * 3, abs=100)
    assert spread_units(FACTORS, np.array([[0.5, 1.0]])).tolist() == [[0.5, 2.0]]
