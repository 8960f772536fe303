"""Sections of a config file: inheritance, precedence, `clean`, the ini form, and faults that stay where they are."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.config import Layer, parse, plain
from roadworthy.errors import ConfigError
from roadworthy.evaluation.config import Choice, EvaluatorConfig
from roadworthy.evaluation.sections import Section, chosen, read_sections
from roadworthy.sim.config import Mode
from tests.plugin_package import install
from tools.settings import EVALUATION

EVALUATORS = """
from dataclasses import dataclass
from roadworthy.evaluation.config import EvaluatorConfig

@dataclass(frozen=True, kw_only=True)
class PatientConfig(EvaluatorConfig):
    patience: int = 3

class Plain:
    config_type = EvaluatorConfig

class Patient:
    config_type = PatientConfig

class Odd:
    config_type = dict

@dataclass(frozen=True, kw_only=True)
class ShakyConfig(EvaluatorConfig):
    def __post_init__(self):
        raise TypeError("a fault of somebody else's code")

class Shaky:
    config_type = ShakyConfig
"""


@pytest.fixture(autouse=True)
def evaluators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluators of another package, some of which are of no use."""
    parts = {
        "plain": "parts:Plain",
        "patient": "parts:Patient",
        "odd": "parts:Odd",
        "shaky": "parts:Shaky",
        "gone": "no_such_module:Gone",
    }
    monkeypatch.delitem(sys.modules, "parts", raising=False)
    install(tmp_path / "site", monkeypatch, "roadworthy.evaluators", parts, EVALUATORS)


def write(folder: Path, text: str, name: str = "suite.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def by_name(sections: tuple[Section, ...]) -> dict[str, Section]:
    return {section.name: section for section in sections}


def one(folder: Path, text: str, *overrides: str, training: Layer | None = None) -> EvaluatorConfig:
    """The config of the section `x`."""
    return by_name(read_sections(write(folder, text), training=training, overrides=overrides))["x"].config


def fault(folder: Path, text: str, *overrides: str) -> str:
    """What is wrong with the section `x`."""
    error = by_name(read_sections(write(folder, text), overrides=overrides))["x"].error
    assert error is not None
    return str(error)


FOUR_LEVELS = """
[eval.root]
scenarios = "town.pack"
episodes = 1
replicates = 1
env.init_steps = 1
render.max_steps = 100

[eval.branch]
inherits = "root"
replicates = 2
env.init_steps = 2
env.goal.radius_m = 2.5

[eval.twig]
inherits = "eval.branch"
env.init_steps = 3
render.scenarios = 3

[eval.leaf]
type = "plain"
inherits = "twig"
env.init_steps = 4

[eval.other_leaf]
type = "plain"
inherits = "twig"
env.goal.speed_mps = 7.0
render.scenarios = 9
"""


@pytest.mark.row("EVAL-1")
def test_each_level_of_inheritance_wins_over_the_one_above_it(tmp_path: Path) -> None:
    section = by_name(read_sections(write(tmp_path, FOUR_LEVELS)))["leaf"]
    config = section.config
    assert section.chain == ("root", "branch", "twig", "leaf")
    assert (config.episodes, config.replicates, config.env.init_steps) == (1, 2, 4)
    assert config.env.goal.radius_m == 2.5
    assert config.render is not None
    assert (config.render.max_steps, config.render.scenarios) == (100, 3)


@pytest.mark.row("EVAL-1")
def test_siblings_share_nothing_but_what_they_inherit(tmp_path: Path) -> None:
    sections = by_name(read_sections(write(tmp_path, FOUR_LEVELS)))
    leaf, other = sections["leaf"].config, sections["other_leaf"].config
    assert (other.env.init_steps, other.env.goal.speed_mps) == (3, 7.0)
    assert leaf.env.goal.speed_mps == EvaluatorConfig(type="plain", scenarios="p").env.goal.speed_mps
    assert leaf.render is not None
    assert leaf.render.scenarios == 3
    alone = by_name(read_sections(write(tmp_path, FOUR_LEVELS.partition("[eval.other_leaf]")[0])))["leaf"].config
    assert alone == leaf


@pytest.mark.row("EVAL-1")
def test_a_section_without_a_type_of_its_own_is_a_template(tmp_path: Path) -> None:
    text = '[eval.a]\ntype = "plain"\nscenarios = "p"\n[eval.b]\ninherits = "a"\n'
    sections = read_sections(write(tmp_path, text))
    assert [section.is_template for section in sections] == [False, True]
    assert [section.name for section in chosen(sections)] == ["a"]
    with pytest.raises(ConfigError, match=r"eval\.b has no type: it is a template"):
        chosen(sections, ["b"])


@pytest.mark.row("EVAL-1")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[eval.x]\ninherits = "y"\n[eval.y]\ninherits = "z"\n[eval.z]\ninherits = "y"', "cycle: x -> y -> z -> y"),
        ('[eval.x]\ninherits = "x"', "cycle: x -> x"),
        ('[eval.x]\ninherits = "defautls"\n[eval.defaults]', "did you mean defaults?"),
        ('[eval.x]\ninherits = "y"\n[eval.y]\ninherits = "none_such"', "not a section (x -> y -> none_such)"),
        ("[eval.x]\ninherits = 3", "inherits is 3, expected the name of one section"),
        ("[eval]\nx = 3", "eval.x is 3, expected a section"),
        ("[eval.x]\ntype = 3", "type is 3, expected an evaluator's name"),
        ('[eval.x]\ntype = "plian"', "unknown evaluator 'plian'; did you mean plain? known: "),
        ('[eval.x]\ntype = "gone"', "can't load evaluator 'gone' from no_such_module:Gone of parts"),
        ('[eval.x]\ntype = "shaky"\nscenarios = "p"', 'TypeError("a fault of somebody else\'s code")'),
        ('[eval.x]\ntype = "odd"', "no config_type that extends EvaluatorConfig"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nepisods = 3', "episods is unknown; did you mean episodes?"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nenv.gaol.radius_m = 3', "did you mean env.goal?"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nenv.episode.trials = 3', "write episode.trials"),
        ('[eval.x]\ntype = "plain"', 'scenarios is missing, expected a pack, as "town.pack", or "generate:'),
        ('[eval.x]\ntype = "plain"\nscenarios = "p#merge"\ntag = "cut_in"', "leave out one of them"),
        ('[eval.x]\ntype = "plain"\nscenarios = "$NO_SUCH/p"', "the variable NO_SUCH is not defined"),
        ('[eval.x]\ntype = "plain"\nscenarios = "generate:town?cuont=3"', "whole numbers for count, seed, steps"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nreplicates = 0', "replicates is 0, expected at least 1"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nworkers = 0', "workers is 0, expected at least 1"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\ntime_limit_s = 0', "time_limit_s is 0.0, expected above 0"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nsummary.weight = -1', "summary: weight is -1.0"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nrender.episodes = 3', "render.max_steps is missing"),
        ('[eval.x]\ntype = "plain"\nscenarios = "p"\nactions = "best"', "expected one of sample, greedy"),
    ],
)
def test_a_fault_is_told_with_its_remedy_and_stays_in_its_section(text: str, words: str, tmp_path: Path) -> None:
    text += '\n[eval.good]\ntype = "plain"\nscenarios = "p"\n'
    assert words in fault(tmp_path, text)
    good = by_name(read_sections(tmp_path / "suite.toml"))["good"]
    assert good.error is None
    assert good.config.scenarios == "p"


def test_all_faults_of_a_section_are_told_at_once_with_their_sources(tmp_path: Path) -> None:
    text = '[eval.base]\nepisods = 3\n[eval.x]\ninherits = "base"\ntype = "plain"\nscenarios = "p"\nenv.mode = "opn"'
    told = fault(tmp_path, text).splitlines()
    assert len(told) == 2
    assert any("[eval.base]: episods is unknown" in line for line in told)
    assert any("[eval.x]: env.mode is 'opn'" in line for line in told)


@pytest.mark.row("EVAL-1")
def test_precedence_goes_from_training_over_clean_and_the_chain_to_the_command_line(tmp_path: Path) -> None:
    checkpoint = Layer("policy.json", {"env": {"init_steps": 1, "goal": {"radius_m": 1.0, "speed_mps": 1.0}}})
    text = """
    [env]
    goal.speed_mps = 2.0
    disturb.dropout = 0.2
    disturb.action_noise = 0.2
    episode.trials = 4
    [episode]
    trial_steps = 20
    [eval.base]
    clean = true
    env.disturb.dropout = 0.3
    episode.trial_steps = 30
    [eval.x]
    inherits = "base"
    type = "plain"
    scenarios = "p"
    episode.trial_steps = 40
    env.open.goals = 4
    """
    section = by_name(
        read_sections(
            write(tmp_path, text),
            training=checkpoint,
            overrides=["env.open.goals=5", "eval.x.env.open.agents=6", "eval.base.env.open.traffic=7"],
        )
    )["x"]
    env = section.config.env
    assert (env.init_steps, env.goal.radius_m) == (1, 1.0)  # the checkpoint's
    assert (env.goal.speed_mps, section.config.episode.trials, env.episode.trials) == (
        2.0,
        4,
        4,
    )  # the file's training config
    assert env.disturb.action_noise == 0.0  # clean
    assert env.disturb.dropout == 0.3  # said by the chain, so it stays
    assert env.episode.trial_steps == 40
    assert (env.open.goals, env.open.agents, env.open.traffic) == (5, 6, 7)  # the command line
    assert section.resolved is not None
    origins = section.resolved.origins
    file = tmp_path / "suite.toml"
    assert origins["env.init_steps"] == "policy.json (training)"
    assert origins["env.goal.speed_mps"] == f"{file} (training)"
    assert origins["env.disturb.action_noise"] == "clean"
    assert origins["env.disturb.dropout"] == f"{file} [eval.base]"
    assert origins["episode.trial_steps"] == f"{file} [eval.x]"
    assert origins["env.open.goals"] == "--set"
    assert origins["env.open.agents"] == "--set eval.x"


@pytest.mark.row("EVAL-1")
@pytest.mark.row("SIM-9")
def test_clean_switches_off_every_disturbance_and_fixes_random_weights_at_their_middle(tmp_path: Path) -> None:
    training = """
    [env]
    disturb = { blind_rate = 0.1, phantom_brake_rate = 0.1, dropout = 0.1, action_noise = 0.1, blind_s = 2.0 }
    reward = { goal = [0.5, 1.5], collision = [-3.0, -1.0], off_road = -2.0 }
    hidden.grip = [0.5, 1.0]
    """
    section = '[eval.x]\ntype = "plain"\nscenarios = "p"\n'
    noisy = one(tmp_path, training + section).env
    assert noisy.disturb.dropout == 0.1
    assert noisy.reward.goal == (0.5, 1.5)
    clean = one(tmp_path, training + section + "clean = true\n").env
    assert all(
        getattr(clean.disturb, name) == 0.0 for name in ("blind_rate", "phantom_brake_rate", "dropout", "action_noise")
    )
    assert (clean.reward.goal, clean.reward.collision, clean.reward.off_road) == (1.0, -2.0, -2.0)
    assert clean.hidden.grip == (0.5, 1.0)  # what there is to adapt to is no disturbance
    assert one(tmp_path, training + section, "clean=true").env == clean
    kept = one(tmp_path, training + section + "clean = true\nenv.reward.goal = [0.0, 4.0]\n").env
    assert kept.reward.goal == (0.0, 4.0)


def test_clean_undone_by_a_child_leaves_the_training_as_it_was(tmp_path: Path) -> None:
    text = """
    [env]
    disturb.dropout = 0.1
    [eval.base]
    clean = true
    [eval.x]
    inherits = "base"
    type = "plain"
    scenarios = "p"
    clean = false
    """
    assert one(tmp_path, text).env.disturb.dropout == 0.1


@pytest.mark.row("EVAL-1")
def test_places_of_packs_know_home_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKS", "/packs")
    monkeypatch.setenv("HOME", "/home/somebody")
    text = (
        '[eval.x]\ntype = "plain"\nscenarios = "$PACKS/town.pack#hard_stop"\ncoplayers = ["~/a.ckpt", "expert:drive"]'
    )
    config = one(tmp_path, text)
    assert (config.source.path, config.source.tag) == (Path("/packs/town.pack"), "hard_stop")
    assert config.coplayers == ("/home/somebody/a.ckpt", "expert:drive")
    assert config.env.hidden.partners == 2
    other = one(tmp_path, text, "scenarios=~/other.pack", "tag=merge")
    assert (other.source.path, other.source.tag) == (Path("/home/somebody/other.pack"), "merge")


def test_an_evaluator_may_have_keys_of_its_own(tmp_path: Path) -> None:
    text = '[eval.x]\ntype = "patient"\nscenarios = "p"\npatience = 7\n'
    assert one(tmp_path, text).as_plain()["patience"] == 7
    assert "patience is unknown" in fault(tmp_path, text.replace('"patient"', '"plain"'))


INI = """
[env]
goal.radius_m = 3.5
[env.disturb]
dropout = 0.1  ; of training
[eval]
[eval.base]
clean = true
env.mode = open
env.control.rows = 32        # as many as there are
Interval = 3
[eval.x]
inherits = base
type = plain
scenarios = ~/town.pack#hard_stop   ; the class comes after the hash
replicates = 2
actions = "greedy"
coplayers = ["expert:drive",
    "a;b.ckpt"]
render.max_steps = 50
render.scenarios = 3
"""


@pytest.mark.row("EVAL-1")
def test_the_ini_form_gives_the_same_evaluators(tmp_path: Path) -> None:
    toml = """
    [env]
    goal.radius_m = 3.5
    disturb.dropout = 0.1
    [eval.base]
    clean = true
    env.mode = "open"
    env.control.rows = 32
    [eval.x]
    inherits = "base"
    type = "plain"
    scenarios = "~/town.pack#hard_stop"
    replicates = 2
    actions = "greedy"
    coplayers = ["expert:drive", "a;b.ckpt"]
    render.max_steps = 50
    render.scenarios = 3
    """
    ini = by_name(read_sections(write(tmp_path, INI.replace("Interval = 3\n", ""), "suite.ini")))
    assert ini["x"].config == one(tmp_path, toml)
    assert ini["x"].config.env.mode is Mode.OPEN
    assert ini["x"].config.actions is Choice.GREEDY
    error = by_name(read_sections(write(tmp_path, INI, "suite.ini")))["x"].error
    assert "Interval is unknown; did you mean interval?" in str(error)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[eval.x]\ntype = ,\n", "a.toml, line 2"),
        ("a.toml", "[env]\ninit_steps = 3", "there is no section [eval.<name>]"),
        ("a.toml", "eval = 3", "eval is 3, expected sections [eval.<name>]"),
        ("a.toml", '[eval]\ninclude = "town"', "eval.include is 'town', expected a list"),
        ("a.toml", '[eval]\ninclude = ["twon"]', "'twon' is neither a file nor a suite; did you mean town?"),
        ("a.toml", '[eval]\ninclude = ["a.toml"]', "a file includes itself"),
        ("a.toml", '[eval]\ninclude = ["b.toml"]', "can't read config file"),
        ("a.ini", "[eval.x]\na = 1\na = 2\n", "a.ini"),
        ("a.ini", "a = 1\n", "a.ini"),
        ("a.ini", "[eval.x]\na b = 1\n", "'eval.x.a b' is not a key"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_as_a_whole(name: str, text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_sections(write(tmp_path, text, name))
    assert words in str(caught.value)


@pytest.mark.parametrize("override", ["eval.y.seed=3", "eval=3", "eval.x=3", "type=plain", "eval.x.inherits=y"])
def test_the_command_line_can_set_keys_of_known_sections_alone(override: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        read_sections(write(tmp_path, '[eval.x]\ntype = "plain"\nscenarios = "p"'), overrides=[override])


def test_a_file_lies_on_top_of_what_it_includes(tmp_path: Path) -> None:
    write(tmp_path, '[eval.base]\nseed = 1\nreplicates = 2\n[eval.x]\ninherits = "base"\ntype = "plain"', "lower.toml")
    config = one(tmp_path, '[eval]\ninclude = ["lower.toml"]\n[eval.base]\nscenarios = "mine.pack"\nseed = 5\n')
    assert (config.scenarios, config.seed, config.replicates) == ("mine.pack", 5, 2)


def test_a_folder_does_not_hide_the_suite_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "town").mkdir()
    monkeypatch.chdir(tmp_path)
    assert [section.name for section in read_sections("town")] == ["town"]


def test_disabled_sections_run_when_they_are_asked_for_by_name(tmp_path: Path) -> None:
    text = '[eval.x]\ntype = "plain"\nscenarios = "p"\nenabled = false\n[eval.broken]\ntype = "plain"\n'
    sections = read_sections(write(tmp_path, text))
    assert [section.name for section in chosen(sections)] == ["broken"]
    assert [section.name for section in chosen(sections, ["eval.x"])] == ["x"]
    with pytest.raises(ConfigError, match=r"no section \[eval.brokn\]; did you mean broken"):
        chosen(sections, ["brokn"])


def test_the_digest_is_of_what_decides_the_episodes() -> None:
    config = EvaluatorConfig(type="plain", scenarios="p")
    where = EvaluatorConfig(type="plain", scenarios="p", engine="workers", workers=3, retries=5, interval=9)
    what = EvaluatorConfig(type="plain", scenarios="p", actions=Choice.GREEDY)
    assert config.digest == where.digest
    assert config.digest != what.digest


def test_a_config_in_plain_values_reads_back_as_itself() -> None:
    config = EvaluatorConfig(type="plain", scenarios="generate:merge?count=4", coplayers=("expert:drive",))
    assert parse(config.as_plain(), EvaluatorConfig) == config
    assert set(config.as_plain()) == {f.name for f in fields(EvaluatorConfig)}


def test_every_setting_is_documented_with_its_default() -> None:
    assert EVALUATION.path.read_text() == EVALUATION.written(), "run python -m tools.settings"


@given(depth=st.integers(1, 12), setters=st.dictionaries(st.integers(0, 11), st.integers(0, 99), max_size=6))
def test_the_nearest_ancestor_that_sets_a_key_wins_at_any_depth(depth: int, setters: dict[int, int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = ""
        for level in range(depth):
            text += f"[eval.s{level}]\n" + (f'inherits = "s{level - 1}"\n' if level else "")
            text += f"seed = {setters[level]}\n" if level in setters else ""
        text += f'[eval.x]\ntype = "plain"\nscenarios = "p"\ninherits = "s{depth - 1}"\n'
        expected = [setters[level] for level in sorted(setters) if level < depth]
        assert one(Path(folder), text).seed == (expected[-1] if expected else 0)


def test_plain_keeps_the_trials_in_one_place() -> None:
    config = EvaluatorConfig(type="plain", scenarios="p")
    assert "episode" not in config.as_plain()["env"]
    assert plain(config)["env"]["episode"] == config.as_plain()["episode"]
