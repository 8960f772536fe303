"""Floors and ceilings: made once per ledger, kept apart from the runs, shown beside them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadworthy.evaluation import references
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.evaluators.human_replay import HumanReplay
from roadworthy.evaluation.runs import Outcome
from roadworthy.evaluation.sections import read_sections
from roadworthy.record import Run
from roadworthy.record.references import FOLDER, best, reference_runs
from roadworthy.record.run import run_folders
from roadworthy.report import write_report
from roadworthy.scenario.pack import Pack
from tests.evaluation.test_suite import Captured, command
from tests.report.made_up import drive, make_run
from tests.sim.scenes import pack_of

SECTION = """
[eval.{name}]
type = "{type}"
scenarios = "{pack}"
episodes = 3
episode.trial_steps = 20
env.control.rows = 4
worlds = 4
{more}
"""


def suite(folder: Path, pack: Pack, name: str = "street", type: str = "human_replay", more: str = "") -> Path:
    file = folder / "suite.toml"
    file.write_text(SECTION.format(name=name, type=type, pack=pack.path, more=more))
    return file


def evaluated(file: Path, out: Path, policy: str = "expert:drive") -> Outcome:
    (outcome,) = evaluate_sections(read_sections(file), policy, out, has_references=True)
    assert outcome.is_complete
    return outcome


@pytest.mark.row("CL-5")
def test_a_replayed_section_has_floors_and_ceilings_on_its_own_ledger(tmp_path: Path, streets: Pack) -> None:
    outcome = evaluated(suite(tmp_path, streets), tmp_path / "runs")
    assert outcome.run is not None
    roles = {run.header["policy_spec"]: run.header["role"] for run in outcome.references}
    assert roles == {"zero": "floor", "random": "floor", "expert:log": "ceiling"}, "expert:drive is not its own ceiling"
    for reference in outcome.references:
        assert reference.ledger.equals(outcome.run.ledger)
        assert reference.folder.is_relative_to(tmp_path / "runs" / FOLDER)
    assert run_folders(tmp_path / "runs") == [outcome.run.folder], "references are not among the runs"
    ceiling = best(outcome.references, "ceiling", "score")
    assert ceiling is not None
    assert ceiling.header["policy_spec"] == "expert:log", "the recorded motion reaches its own end"


@pytest.mark.row("CL-5")
def test_references_are_made_once_per_ledger_and_code(
    tmp_path: Path, streets: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = suite(tmp_path, streets, more='references = ["zero"]'), tmp_path / "runs"
    here = references.origin() | {"revision": {"commit": "abc", "is_dirty": False}}
    monkeypatch.setattr("roadworthy.evaluation.references.origin", lambda: here)
    monkeypatch.setattr("roadworthy.record.writer.origin", lambda: here)
    (first,) = evaluated(file, out).references
    (again,) = evaluated(file, out, "random").references
    assert again.folder == first.folder
    here = here | {"revision": {"commit": "def", "is_dirty": False}}
    (newer,) = evaluated(file, out, "random").references
    assert newer.folder != first.folder, "another commit may drive differently"
    suite(tmp_path, streets, more='references = ["zero"]\nseed = 5')
    (other,) = evaluated(file, out).references
    assert not other.ledger.equals(first.ledger)


def test_a_section_with_a_policy_of_its_own_and_an_empty_list_have_none(tmp_path: Path, streets: Pack) -> None:
    for number, more in enumerate(('policy = "zero"', "references = []")):
        assert evaluated(suite(tmp_path, streets, more=more), tmp_path / f"runs{number}").references == []


def test_open_worlds_have_no_recorded_motion(tmp_path: Path, streets: Pack) -> None:
    file = suite(tmp_path, streets, type="multi_scenario", more='env.mode = "open"\nenv.open.agents = 2')
    (section,) = read_sections(file)
    assert [p for _, p in references.reference_policies(section.config)] == ["zero", "random", "expert:drive"]


def test_a_reference_that_fails_is_listed_and_the_run_stands(tmp_path: Path, streets: Pack) -> None:
    outcome = evaluated(suite(tmp_path, streets, more='references = ["baseline:nobody", "zero"]'), tmp_path / "runs")
    assert outcome.run is not None
    assert [run.header["policy_spec"] for run in outcome.references] == ["zero"]
    errors = {a.name: a.error for a in outcome.run.artifacts if a.error}
    assert "baseline:nobody" in (errors["reference_baseline_nobody"] or "")


@pytest.mark.row("CL-5")
def test_json_lists_references_apart_from_runs_and_the_page_only_reads_them(
    tmp_path: Path, streets: Pack, capsys: Captured
) -> None:
    file, out = suite(tmp_path, streets, more='references = ["zero", "expert:log"]'), tmp_path / "runs"
    assert command(file, "--policy", "expert:drive", "--out", out, "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(told["runs"]) == 1
    assert [(r["role"], r["policy"]) for r in told["references"]] == [("floor", "zero"), ("ceiling", "expert:log")]
    run = Run(told["runs"][0]["folder"])
    before = sorted(out.rglob("*"))
    page = write_report([run], tmp_path / "page.html").read_text()
    assert "Floor and ceiling" in page
    assert sorted(out.rglob("*")) == before
    assert [reference.folder for reference in reference_runs(run)] == [Path(r["folder"]) for r in told["references"]]


def test_the_terminal_shows_the_floor_and_the_ceiling(tmp_path: Path, streets: Pack, capsys: Captured) -> None:
    file = suite(tmp_path, streets, more='references = ["zero", "expert:log"]')
    assert command(file, "--policy", "expert:drive", "--out", tmp_path / "runs") == 0
    shown = capsys.readouterr().out
    assert "floor" in shown
    assert "expert:log" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if "rate" in line)


def test_a_report_warns_where_a_floor_reaches_the_interval_of_the_policy(tmp_path: Path, streets: Pack) -> None:
    outcome = evaluated(suite(tmp_path, streets, more='references = ["zero"]'), tmp_path / "runs", "random")
    assert outcome.run is not None
    floor = best(outcome.references, "floor", "score")
    (own,) = (f for f in (outcome.run.metrics or {})["figures"] if f["name"] == "score")
    assert floor is not None
    assert own["low"] <= next(f for f in (floor.metrics or {})["figures"] if f["name"] == "score")["value"]
    assert "do not show that the policy is better" in write_report([outcome.run], tmp_path / "page.html").read_text()


def test_other_scenarios_of_equal_names_have_references_of_their_own(tmp_path: Path, streets: Pack) -> None:
    pack = tmp_path / "town.pack"
    shutil.copyfile(streets.path, pack)
    file = suite(tmp_path, streets, more='references = ["zero"]')
    file.write_text(file.read_text().replace(str(streets.path), str(pack)))
    out = tmp_path / "runs"
    before = evaluated(file, out)
    (first,) = before.references
    moved = [replace(scenario, positions=scenario.positions + np.float32(1.0)) for scenario in streets]
    pack_of(pack, *moved)
    outcome = evaluated(file, out)
    assert outcome.run is not None
    (second,) = outcome.references
    assert second.ledger.equals(first.ledger), "the ledger names scenarios, not what is in them"
    assert before.run is not None
    assert [found.folder for found in reference_runs(before.run)] == [first.folder]
    assert [found.folder for found in reference_runs(outcome.run)] == [second.folder]


def test_an_own_tag_or_an_open_world_is_no_exam_and_its_headline_is_the_score(tmp_path: Path, streets: Pack) -> None:
    for tag, mode, figure in (
        ("hard_stop", "replay", "passed"),
        ("mine", "replay", "score"),
        ("hard_stop", "open", "score"),
    ):
        more = f'tag = "{tag}"\nenv.mode = "{mode}"\nenv.open.agents = 2'
        (section,) = read_sections(suite(tmp_path, streets, type="behavior_class", more=more))
        assert section.config.summary.figure == figure


def test_policies_with_one_display_name_are_two_references(tmp_path: Path) -> None:
    results = [drive(k, [[float(k % 2)]]) for k in range(4)]
    run = make_run(tmp_path / "runs", results)
    for spec in ("runs/a/best", "runs/b/best"):
        make_run(tmp_path / "runs" / FOLDER, results, role="floor", policy_spec=spec)
    assert [found.header["policy_spec"] for found in reference_runs(run)] == ["runs/a/best", "runs/b/best"]


def test_with_respawn_there_are_no_figures_from_traces(tmp_path: Path, streets: Pack) -> None:
    """Egos that never failed would stand for all: a trace does not separate the attempts of the others."""
    for behavior, names in (("leave", ["closed_loop_figures"]), ("respawn", [])):
        (section,) = read_sections(suite(tmp_path, streets, more=f'env.goal.at_goal = "{behavior}"'))
        assert [function.__name__ for function in HumanReplay().trace_figures(section.config)] == names
