"""Config files: strict, with errors that help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.config import Layer, load, parse, parse_overrides, plain, read, resolve
from roadworthy.errors import ConfigError, DeprecatedNameWarning
from roadworthy.evaluation.config import EvaluatorConfig


class AtGoal(Enum):
    RESPAWN = "respawn"
    LEAVE = "leave"


class Kind(IntEnum):
    VEHICLE = 1
    CYCLIST = 3


@dataclass(frozen=True)
class Render:
    scenarios: int = 3
    fps: float = 10.0
    size: tuple[int, int] = (640, 480)

    def __post_init__(self) -> None:
        if self.fps <= 0:
            raise ValueError(f"fps is {self.fps}, expected above 0")


@dataclass(frozen=True)
class Town:
    name: str = "town"
    count: int = 1
    is_clean: bool = False
    classes: tuple[str, ...] = ()
    folder: Path = Path(".")
    limit: float | None = 1.5
    view: Literal["map", "sdc"] = "map"
    at_goal: AtGoal = AtGoal.LEAVE
    kind: Kind = Kind.VEHICLE
    weights: dict[str, float] = field(default_factory=dict)
    render: Render = Render(fps=5.0)


@dataclass(frozen=True)
class Required:
    seed: int
    render: Render


@dataclass(frozen=True)
class Optionals:
    log: Path | None = None
    render: Render | None = None
    limit: int | str = 3


def fault_of(values: dict[str, Any], cls: type = Town) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(values, cls, source="town.toml")
    return str(caught.value)


def test_every_kind_of_value_arrives_with_its_type(tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text(
        """
        name = "old town"
        count = 7
        is_clean = true
        classes = ["merge", "cut_in"]
        folder = "packs"
        limit = 2
        view = "sdc"
        at_goal = "respawn"
        kind = "cyclist"
        weights.goal = 1
        render.size = [1920, 1080]
        """
    )
    assert load(file, Town) == Town(
        name="old town",
        count=7,
        is_clean=True,
        classes=("merge", "cut_in"),
        folder=Path("packs"),
        limit=2.0,
        view="sdc",
        at_goal=AtGoal.RESPAWN,
        kind=Kind.CYCLIST,
        weights={"goal": 1.0},
        render=Render(fps=5.0, size=(1920, 1080)),
    )


def test_what_is_not_given_in_a_section_comes_from_the_outer_default() -> None:
    assert parse({"render": {"scenarios": 9}}, Town).render == Render(scenarios=9, fps=5.0)


def test_an_unknown_key_names_the_nearest_known_one_and_its_file() -> None:
    fault = fault_of({"cuont": 3})
    assert fault.startswith("town.toml: cuont is unknown; did you mean count?")
    assert "known: name, count, is_clean" in fault


def test_an_unknown_key_of_a_section_is_named_with_its_path() -> None:
    assert "render.fsp is unknown; did you mean render.fps?" in fault_of({"render": {"fsp": 3}})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"count": "many"}, "count is 'many' (text), expected a whole number"),
        ({"count": 3.5}, "count is 3.5 (a number), expected a whole number"),
        ({"count": True}, "count is true, expected a whole number"),
        ({"render": {"fps": True}}, "render.fps is true, expected a number"),
        ({"is_clean": 1}, "is_clean is 1 (a whole number), expected true or false"),
        ({"name": 3}, "name is 3 (a whole number), expected text"),
        ({"classes": "merge"}, "classes is 'merge' (text), expected a list, each item text"),
        ({"classes": ["merge", 3]}, "classes[1] is 3 (a whole number), expected text"),
        ({"render": {"size": [3]}}, "with 1 items, expected a list of 2: a whole number, a whole number"),
        ({"view": "moon"}, "view is 'moon' (text), expected one of map, sdc"),
        ({"at_goal": "fly"}, "at_goal is 'fly' (text), expected one of respawn, leave"),
        ({"kind": 3}, "kind is 3 (a whole number), expected one of vehicle, cyclist"),
        ({"limit": "low"}, "limit is 'low' (text), expected a number or \"none\""),
        ({"weights": {"goal": "high"}}, "weights.goal is 'high' (text), expected a number"),
        ({"weights": 3}, "weights is 3 (a whole number), expected a table, each value a number"),
        ({"render": 3}, "render is 3 (a whole number), expected a section with scenarios, fps, size"),
    ],
)
def test_a_wrong_type_says_what_was_given_and_what_is_expected(values: dict[str, Any], expected: str) -> None:
    assert expected in fault_of(values)


def test_all_faults_are_told_at_once() -> None:
    fault = fault_of({"cuont": 1, "name": 2, "render": {"fps": "fast", "size": [1]}})
    assert len(fault.splitlines()) == 4
    assert all(line.startswith("town.toml: ") for line in fault.splitlines())


def test_a_missing_key_is_named_with_what_it_should_be() -> None:
    assert "seed is missing, expected a whole number" in fault_of({"render": {}}, Required)


def test_a_section_that_is_absent_is_an_empty_one() -> None:
    assert parse({"seed": 1}, Required) == Required(1, Render())


def test_a_fault_across_fields_is_told_with_its_section_and_file() -> None:
    assert fault_of({"render": {"fps": -1}}) == "town.toml: render: fps is -1.0, expected above 0"


def test_none_is_a_word() -> None:
    assert parse({"limit": "none"}, Town).limit is None


def test_home_and_variables_are_expanded_in_paths_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("PACKS", "/data")
    assert parse({"folder": "~/a"}, Town).folder == Path("/home/ada/a")
    assert parse({"folder": "$PACKS/a"}, Town).folder == Path("/data/a")
    assert parse({"folder": "${PACKS}_2"}, Town).folder == Path("/data_2")
    assert parse({"name": "~$PACKS"}, Town).name == "~$PACKS"


def test_an_undefined_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    fault = fault_of({"folder": "$NOWHERE/a"})
    assert "folder is '$NOWHERE/a', but the variable NOWHERE is not defined" in fault


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text("count = 3\nname = \n")
    with pytest.raises(ConfigError, match=r"town\.toml, line 2, column 8: Invalid value"):
        load(file, Town)


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't read config file '.*none\.toml': No such file"):
        load(tmp_path / "none.toml", Town)
    (tmp_path / "binary.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"binary\.toml' is not UTF-8 text \(byte 5\)"):
        load(tmp_path / "binary.toml", Town)


def test_one_section_of_a_file_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text("[eval.town]\ncount = 5\n[eval.other]\nx = 1\n")
    assert load(file, Town, section="eval.town").count == 5
    with pytest.raises(ConfigError, match=r"no section \[eval\.twon\]; did you mean eval\.town\? known: town, other"):
        load(file, Town, section="eval.twon")
    with pytest.raises(ConfigError, match=r"eval\.other\.x is 1 \(a whole number\), expected a section"):
        load(file, Town, section="eval.other.x")
    with pytest.raises(ConfigError, match=r"town\.toml \[eval\.other\]: x is unknown"):
        load(file, Town, section="eval.other")


@pytest.mark.parametrize(
    ("override", "values"),
    [
        ("count=3", {"count": 3}),
        ("render.fps = 2.5", {"render": {"fps": 2.5}}),
        ("is_clean=true", {"is_clean": True}),
        ("view=sdc", {"view": "sdc"}),
        ('view="sdc"', {"view": "sdc"}),
        ("name=old town", {"name": "old town"}),
        ("name=a=b", {"name": "a=b"}),
        ("name=", {"name": ""}),
        ("folder=~/town.pack#merge", {"folder": "~/town.pack#merge"}),
        ('classes=["merge", "cut_in"]', {"classes": ["merge", "cut_in"]}),
        ('weights."a.b"=1', {"weights": {"a.b": 1}}),
    ],
)
def test_an_override_is_read_as_toml_and_else_as_text(override: str, values: dict[str, Any]) -> None:
    assert parse_overrides([override]).values == values


@pytest.mark.parametrize("override", ["count", "=3", "a b=3", "count=1\nname=2", "a..b=1"])
def test_an_override_that_is_none_says_so(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        parse_overrides([override])


def test_the_last_override_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text("count = 3\nrender = { fps = 2, scenarios = 4 }\n")
    town = load(file, Town, overrides=["count=4", "count=5", "render.fps=7"])
    assert (town.count, town.render) == (5, Render(scenarios=4, fps=7.0))


def test_the_fault_of_an_override_names_it_and_not_the_file(tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text("count = 3\n")
    with pytest.raises(ConfigError, match=r"^--set: count is 'x'"):
        load(file, Town, overrides=["count=x"])


def test_every_value_knows_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text("count = 3\nrender = { fps = 2, scenarios = 4 }\n")
    layers = [read(file), parse_overrides(["render.fps=7"]), Layer("--clean", {"is_clean": True})]
    origins = resolve(Town, layers).origins
    assert origins == {"count": str(file), "render.scenarios": str(file), "render.fps": "--set", "is_clean": "--clean"}


def test_a_value_that_replaces_a_section_replaces_its_origins() -> None:
    layers = [Layer("a", {"weights": {"goal": 1.0}}), Layer("b", {"weights": {"goal": 2.0, "lane": 1.0}})]
    resolved = resolve(Town, layers)
    assert resolved.config.weights == {"goal": 2.0, "lane": 1.0}
    assert resolved.origins == {"weights.goal": "b", "weights.lane": "b"}


def test_a_section_that_replaces_a_value_replaces_its_origin() -> None:
    layers = [Layer("a", {"render": 3}), Layer("b", {"render": {"fps": 2}})]
    assert resolve(Town, layers).origins == {"render.fps": "b"}


def test_an_empty_table_on_top_changes_nothing() -> None:
    resolved = resolve(Town, [Layer("a", {"weights": {"goal": 1.0}}), Layer("b", {"weights": {}})])
    assert (resolved.config.weights, resolved.origins) == ({"goal": 1.0}, {"weights.goal": "a"})


def test_a_fault_inside_an_optional_value_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    assert "the variable NOWHERE is not defined" in fault_of({"log": "$NOWHERE"}, Optionals)
    assert "render.fsp is unknown; did you mean render.fps?" in fault_of({"render": {"fsp": 1}}, Optionals)
    assert "limit is true, expected a whole number or text" in fault_of({"limit": True}, Optionals)
    assert parse({"limit": "x", "log": "none"}, Optionals) == Optionals(limit="x")


towns = st.builds(
    Town,
    name=st.text(),
    count=st.integers(),
    is_clean=st.booleans(),
    classes=st.lists(st.text()).map(tuple),
    folder=st.sampled_from([Path("a"), Path("/b/c.pack")]),
    limit=st.none() | st.floats(allow_nan=False),
    view=st.sampled_from(["map", "sdc"]),
    at_goal=st.sampled_from(AtGoal),
    kind=st.sampled_from(Kind),
    weights=st.dictionaries(st.text(), st.floats(allow_nan=False)),
    render=st.builds(Render, fps=st.floats(0.1, 1e3), size=st.tuples(st.integers(), st.integers())),
)


@given(towns)
def test_plain_values_parse_back_to_the_same_config(town: Town) -> None:
    assert parse(plain(town), Town) == town


@dataclass(frozen=True)
class Inner:
    renamed_keys: ClassVar[Mapping[str, str]] = {"rate": "learning_rate"}
    learning_rate: float = 0.1


@dataclass(frozen=True)
class Outer:
    renamed_values: ClassVar[Mapping[str, Mapping[str, str]]] = {"mode": {"anew": "again"}}
    mode: str = "once"
    inner: Inner = field(default_factory=Inner)
    count: int = 1


def test_deprecated_keys_and_values_work_with_a_warning_that_names_the_new_word() -> None:
    layers = [
        Layer("a.toml", {"inner": {"rate": 0.5}, "mode": "anew"}),
        Layer("--set", {"inner": {"learning_rate": 1}}),
    ]
    with pytest.warns(DeprecatedNameWarning) as warned:
        found = resolve(Outer, layers)
    assert found.config == Outer(mode="again", inner=Inner(1.0))
    assert found.origins == {"inner.learning_rate": "--set", "mode": "a.toml"}
    assert [str(w.message) for w in warned] == [
        "a.toml: inner.rate is deprecated; use inner.learning_rate",
        "a.toml: mode = 'anew' is deprecated; use 'again'",
    ]


def test_a_deprecated_key_beside_its_new_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"inner\.rate is the deprecated name of learning_rate, and both are given"):
        parse({"inner": {"rate": 1.0, "learning_rate": 2.0}}, Outer)


def test_a_whole_number_may_be_written_with_an_exponent() -> None:
    assert parse_overrides(["count=1e6"]).values == {"count": 1e6}
    assert resolve(Outer, [parse_overrides(["count=1e6"])]).config.count == 1_000_000
    with pytest.raises(ConfigError, match=r"count is 1\.5"):
        resolve(Outer, [parse_overrides(["count=1.5"])])


def test_a_setting_with_nearly_the_name_of_a_section_is_suggested() -> None:
    with pytest.raises(ConfigError, match=r"episode is 10 \(a whole .* a section .*; did you mean episodes\?"):
        resolve(EvaluatorConfig, [parse_overrides(["episode=10"])])
