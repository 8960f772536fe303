"""`roadworthy config check` and `explain`, and `roadworthy doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from tests.plugin_package import install_own

Captured = pytest.CaptureFixture[str]

TEXT = """
[env]
disturb.dropout = 0.5
[eval.base]
clean = true
scenarios = "town.pack"
seed = 3
[eval.good]
type = "multi_scenario"
inherits = "base"
[eval.off]
type = "multi_scenario"
inherits = "base"
enabled = false
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install_own(tmp_path / "site", monkeypatch)
    path = tmp_path / "suite.toml"
    path.write_text(TEXT)
    return path


def states(captured: Captured) -> dict[str, str]:
    told = json.loads(captured.readouterr().out.splitlines()[-1])
    return {section["name"]: section["state"] for section in told["sections"]}


@pytest.mark.row("EVAL-1")
def test_check_shows_all_sections(file: Path, capsys: Captured) -> None:
    assert main(["config", "check", str(file)]) == 0
    assert "eval.good" in capsys.readouterr().out
    assert main(["config", "check", str(file), "--json"]) == 0
    assert states(capsys) == {"base": "template", "good": "runs", "off": "disabled"}


@pytest.mark.row("EVAL-1")
def test_check_shows_every_fault_and_exits_with_2(file: Path, capsys: Captured) -> None:
    file.write_text(f'{TEXT}[eval.bad]\ntype = "colision"\n[eval.worse]\ntype = "multi_scenario"\nepisods = 3\n')
    assert main(["config", "check", str(file)]) == 2
    output = capsys.readouterr()
    assert "eval.bad: unknown evaluator 'colision'; known: " in output.out
    assert "did you mean episodes?" in output.out
    assert "2 of 5 sections can't run: bad, worse" in output.err
    assert main(["config", "check", str(file), "--json"]) == 2
    assert states(capsys)["worse"] == "fault"


@pytest.mark.row("EVAL-1")
def test_explain_tells_where_every_value_came_from(file: Path, capsys: Captured) -> None:
    assert main(["config", "explain", "eval.good", str(file), "--set", "seed=5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["settings"]
    assert told["seed"] == {"value": 5, "source": "--set", "covered": [[f"{file} [eval.base]", 3]]}
    assert told["env.disturb.dropout"]["source"] == "clean"
    assert told["env.disturb.dropout"]["covered"] == [[f"{file} (training)", 0.5]]
    assert told["type"]["source"] == f"{file} [eval.good]"
    assert told["replicates"]["source"] == "default"
    assert {"env.goal.radius_m", "episode.trials", "render", "summary.weight"} <= set(told)
    assert not any(key.startswith("env.episode") for key in told)


def test_explain_writes_lines_that_toml_can_read(file: Path, capsys: Captured) -> None:
    import tomllib

    assert main(["config", "explain", "good", str(file), "--given"]) == 0
    output = capsys.readouterr().out
    told = tomllib.loads(output)["eval"]["good"]
    assert told == {
        "type": "multi_scenario",
        "clean": True,
        "scenarios": "town.pack",
        "seed": 3,
        "env": {"disturb": {"dropout": 0.0}},
    }
    assert f"# {file} [eval.base]" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "eval.god"], "there is no section [eval.god]; did you mean good?"),
        (["explain", "eval.base"], "eval.base has no type: it is a template"),
        (["explain", "eval.good", "--set", "sede=3"], "sede is unknown; did you mean seed?"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: str, file: Path, capsys: Captured) -> None:
    assert main(["config", *arguments[:2], str(file), *arguments[2:]]) == 2
    assert words in capsys.readouterr().err


def test_the_training_config_of_a_checkpoint_is_the_base(file: Path, tmp_path: Path, capsys: Captured) -> None:
    about = {"train": {"worlds": 64, "env": {"init_steps": 4, "episode": {"trials": 6}}}}
    (tmp_path / "policy.json").write_text(json.dumps(about))
    assert main(["config", "explain", "good", str(file), "--checkpoint", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["settings"]
    assert told["env.init_steps"]["value"] == 4
    assert told["episode.trials"] == {"value": 6, "source": f"{tmp_path / 'policy.json'} (training)", "covered": []}


@pytest.mark.row("UI-5")
def test_doctor_exits_with_1_where_an_evaluation_would_fail(file: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["doctor", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["faults"] == 0
    assert main(["doctor", str(file), "--out", str(tmp_path), "--checkpoint", "zero"]) == 1
    output = capsys.readouterr()
    assert "fault   pack town.pack: " in output.out
    assert "an evaluation would fail" in output.err
