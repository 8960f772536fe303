"""The doctor finds what an evaluation would fail of, before it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.evaluation.doctor import Finding, State, examine_machine, examine_suite
from roadworthy.kernels import cache_folder
from roadworthy.scenario.pack import Pack
from tests.plugin_package import install_own


@pytest.fixture(autouse=True)
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_own(tmp_path / "site", monkeypatch)


def suite(folder: Path, text: str) -> Path:
    file = folder / "suite.toml"
    file.write_text(text)
    return file


def found(file: Path, *overrides: str, policy: str | None = None) -> dict[str, Finding]:
    return {f.what: f for f in examine_suite(file, file.parent / "runs", policy=policy, overrides=overrides)}


@pytest.mark.row("UI-5")
def test_the_machine_is_looked_at(tmp_path: Path) -> None:
    findings = {finding.what: finding for finding in examine_machine(tmp_path / "not" / "there")}
    assert list(findings) == ["libraries", "kernels", "gpu", "videos", "disk"]
    assert findings["libraries"].figures["numpy"] in findings["libraries"].message
    assert findings["videos"].state is State.OK
    assert findings["disk"].figures["free_gb"] > 0


def test_a_place_that_nothing_can_be_written_to_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    disk = next(finding for finding in examine_machine(tmp_path / "file" / "runs") if finding.what == "disk")
    assert disk.state is State.FAULT
    assert str(tmp_path / "file") in disk.message


@pytest.mark.row("UI-5")
def test_a_sound_suite_is_tried_and_weighed(tmp_path: Path, coins: Pack) -> None:
    text = f"""
    [eval.base]
    scenarios = "{coins.path}"
    episodes = 20
    replicates = 3
    worlds = 4
    env.init_steps = 0
    episode.trials = 2
    episode.trial_steps = 15
    [eval.one]
    type = "multi_scenario"
    inherits = "base"
    [eval.two]
    type = "multi_scenario"
    inherits = "base"
    episodes = 5
    [sinks.tensorboard]
    """
    findings = found(suite(tmp_path, text), policy="zero")
    assert {finding.state for finding in findings.values()} == {State.OK}
    assert findings["pack coins.pack"].figures["scenarios"] == 50
    step = findings["eval.one and 1 alike"].figures
    assert step["episodes"] == 3 * (20 + 5)
    assert step["steps"] == 30
    batches = 3 * 20 // 4 + -(-3 * 5 // 4)
    assert step["seconds"] == pytest.approx(batches * 30 * step["step_s"])
    assert 0 < step["world_bytes"] < step["process_bytes"]
    assert str(tmp_path / "runs" / "tensorboard") in findings["sink tensorboard"].message


@pytest.mark.row("UI-5")
@pytest.mark.parametrize(
    ("lines", "override", "what", "words"),
    [
        ("", "scenarios=gone.pack", "pack gone.pack", "there is no such file"),
        ("", "tag=hard_stop", "pack coins.pack", "no scenario has the tag 'hard_stop'"),
        ("", "checkpoint=gone", "policy gone", "unknown policy 'gone'"),
        ("", 'coplayers=["expert:lob"]', "policy expert:lob", "policy 'expert:lob'"),
        ("env.mode = 'open'", "checkpoint=expert:log", "eval.x", "expert:log follows recordings"),
        ("", "env.init_steps=500", "eval.x", "500"),
        ("", "device=tpu", "eval.x", "device is 'tpu', expected one of: cpu, cuda"),
        ("", "episods=3", "eval.x", "did you mean episodes?"),
        ("[sinks.tensorbord]", "seed=1", "sinks", "did you mean tensorboard?"),
        (
            "[sinks.tensorboard]\nfolder = '/proc/nowhere'",
            "seed=1",
            "sink tensorboard",
            "can't write to /proc",
        ),
    ],
)
def test_a_fault_is_found_before_the_run(
    lines: str, override: str, what: str, words: str, tmp_path: Path, coins: Pack
) -> None:
    text = f'[eval.x]\ntype = "multi_scenario"\nscenarios = "{coins.path}"\nworlds = 2\nenv.init_steps = 0\n{lines}\n'
    finding = found(suite(tmp_path, text), override)[what]
    assert finding.state is State.FAULT
    assert words in finding.message


def test_without_a_policy_the_step_is_driven_at_random(tmp_path: Path, coins: Pack) -> None:
    text = f'[eval.x]\ntype = "multi_scenario"\nscenarios = "{coins.path}"\nworlds = 2\nenv.init_steps = 0\n'
    findings = found(suite(tmp_path, text))
    assert findings["policy"].state is State.WARNING
    assert findings["eval.x"].state is State.OK


def test_a_suite_in_which_nothing_runs_is_worth_a_warning(tmp_path: Path) -> None:
    findings = found(suite(tmp_path, "[eval.template]\nseed = 3\n"))
    assert findings["sections"].state is State.WARNING


def test_a_pack_that_is_not_generated_yet_is_tried_with_one_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = cache_folder("scenario")
    monkeypatch.setattr("roadworthy.sources.cache_folder", lambda part: tmp_path / "numba" / kernels.name)
    text = '[eval.x]\ntype = "behavior_class"\ntag = "hard_stop"\nworlds = 2\nscenarios = "generate:all?count=120"\n'
    file = suite(tmp_path, text)
    findings = found(file, policy="zero")
    assert findings["eval.x"].state is State.OK
    assert findings["eval.x"].figures["episodes"] == 10
    assert "generated at first use" in next(f.message for what, f in findings.items() if what.startswith("pack "))
