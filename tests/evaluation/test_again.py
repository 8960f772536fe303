"""Runs taken up again: re-scored, replayed, audited, and asked for their hardest scenarios."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer

from roadworthy.cli.audit import audit as audit_verb
from roadworthy.cli.replay import replay as replay_verb
from roadworthy.cli.rescore import rescore as rescore_verb
from roadworthy.cli.scenarios.hardness import hardness as hardness_verb
from roadworthy.errors import UsageError
from roadworthy.evaluation.audit import audit
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.hardness import Hardness, hardness_of, read_hardness, write_hardest, write_hardness
from roadworthy.evaluation.recorded import open_run
from roadworthy.evaluation.replay import first_difference, replay
from roadworthy.evaluation.rescore import rescore
from roadworthy.evaluation.sections import read_sections
from roadworthy.metrics import driving
from roadworthy.metrics.closed_loop import FIGURES
from roadworthy.record import EpisodeResult, Run, read_trace, write_trace
from roadworthy.record.run import trace_path
from roadworthy.scenario.pack import Pack
from roadworthy.sim.state import EVENT_AT_FAULT
from tests.evaluation.built_in import declare
from tests.sim.scenes import Actor, pack_of, scene

Captured = pytest.CaptureFixture[str]
SECTIONS = {
    "recorded": """
env.control.rows = 4
env.control.ego_share = 0.5
episode.trials = 2
episode.trial_steps = 25
""",
    "reactive": """
env.control.others = "idm"
env.control.rows = 1
env.infraction.collision = "stop"
episode.trial_steps = 40
""",
    "open": """
env.mode = "open"
env.open.agents = 4
env.open.traffic = 4
env.open.goals = 1
env.open.goal_spacing_m = 10.0
env.goal.at_goal = "respawn"
env.hidden.grip = [0.4, 1.0]
env.disturb.action_noise = 0.2
episode.trial_steps = 60
""",
    "onwards": """
env.mode = "open"
env.open.agents = 4
env.open.traffic = 4
env.open.goals = 1
env.open.goal_spacing_m = 10.0
env.goal.at_goal = "new_goal"
env.infraction.off_road = "remove"
episode.trial_steps = 60
""",
}
HEAD = '[eval.{name}]\ntype = "multi_scenario"\nscenarios = "{pack}"\nworlds = 5\n'


@pytest.fixture(autouse=True, scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        declare(tmp_path_factory.mktemp("site") / "plugins", monkeypatch)
        yield


@pytest.fixture(scope="module")
def make_run(tmp_path_factory: pytest.TempPathFactory, streets: Pack) -> Callable[[str], Run]:
    """Makes a run of one of the sections above."""
    made: dict[str, Run] = {}

    def make(name: str) -> Run:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            (folder / "suite.toml").write_text(HEAD.format(name=name, pack=streets.path) + SECTIONS[name])
            sections = read_sections(folder / "suite.toml")
            (outcome,) = evaluate_sections(sections, "tests.evaluation.actors:Wander", folder)
            assert outcome.is_complete, outcome.error
            assert outcome.run is not None
            made[name] = outcome.run
        return made[name]

    return make


def command(verb: Any, *arguments: str | Path) -> int:
    app = typer.Typer()
    app.command()(verb)
    return app([str(argument) for argument in arguments], standalone_mode=False) or 0


@pytest.mark.row("EVAL-7")
@pytest.mark.parametrize("name", SECTIONS)
def test_every_figure_comes_out_the_same_from_the_traces(make_run: Callable[[str], Run], name: str) -> None:
    run = make_run(name)
    result = rescore(open_run(run))
    assert result.episodes == len(run.ledger)
    assert result.agrees
    assert not result.moved
    assert run.metrics is not None
    assert result.metrics["figures"] == run.metrics["figures"]
    assert result.metrics["by_class"] == run.metrics["by_class"]


def test_a_row_that_was_tampered_with_is_found(
    make_run: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    run = make_run("recorded")
    results = list(run.results())
    figures = {**results[3].agents[0].figures, "distance_m": 1.0}
    forged = replace(results[3], agents=(replace(results[3].agents[0], figures=figures), *results[3].agents[1:]))
    monkeypatch.setattr(Run, "results", lambda _: iter([*results[:3], forged, *results[4:]]))
    assert rescore(open_run(run)).differing == (forged.episode.episode_id,)
    assert command(rescore_verb, run.folder) == 1
    assert forged.episode.episode_id in capsys.readouterr().out


def test_motion_is_judged_as_traced_and_not_as_the_simulator_would_have_it(
    make_run: Callable[[str], Run], tmp_path: Path
) -> None:
    run = make_run("reactive")
    name = run.ledger["episode_id"].to_pylist()[0]
    path = run.folder / trace_path(name)
    original = path.read_bytes()
    trace = run.trace(name)
    shifted = trace.y.copy()
    shifted[5:, 0] += np.float32(30.0)  # the ego is beside the road from the fifth step on
    try:
        write_trace(path, replace(trace, y=shifted))
        result = rescore(open_run(run))
        assert result.moved == (name,)
        assert result.differing == (name,)
        assert {"off_road_rate"} <= {change.name for change in result.changes}
    finally:
        path.write_bytes(original)


@pytest.mark.row("CL-1")
def test_rescoring_tells_who_was_at_fault_from_the_traces(tmp_path: Path) -> None:
    """A car that drives into a standing one, and one that is hit from behind while it drives."""
    crash = scene(Actor(10.0), Actor(20.0, speed=0.0), id="crash")
    hit = scene(Actor(40.0, speed=5.0), Actor(33.0, speed=10.0), id="hit")
    pack = pack_of(tmp_path / "crashes.pack", crash, hit)
    settings = 'env.control.who = "sdc"\nenv.control.rows = 1\nenv.init_steps = 0\nepisode.trial_steps = 20\n'
    (tmp_path / "suite.toml").write_text(HEAD.format(name="crashes", pack=pack.path) + settings)
    (outcome,) = evaluate_sections(read_sections(tmp_path / "suite.toml"), "zero", tmp_path)
    assert outcome.run is not None
    rows = outcome.run.agents().to_pylist()
    told = {row["scenario_id"]: (row["figures.collisions"], row["figures.at_fault_collisions"]) for row in rows}
    assert told == {"crash": (1.0, 1.0), "hit": (1.0, 0.0)}
    assert {row["scenario_id"]: row["figures.at_fault_collision_rate"] for row in rows} == {"crash": 1.0, "hit": 0.0}
    events = {id: int(np.bitwise_or.reduce(outcome.run.trace(id).events[:, 0])) for id in _names(outcome.run)}
    assert [bool(bits & EVENT_AT_FAULT) for _, bits in sorted(events.items())] == [True, False]
    result = rescore(open_run(outcome.run))
    assert result.agrees
    rates = {figure["name"]: figure["value"] for figure in result.metrics["figures"]}
    assert (rates["at_fault_collision_rate"], rates["collision_rate"]) == (0.5, 1.0)


def _names(run: Run) -> list[str]:
    names: list[str] = run.ledger["episode_id"].to_pylist()
    return names


@pytest.mark.row("CL-1")
def test_a_run_of_an_earlier_version_is_read_and_rescored(
    make_run: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run without the setting, without columns of at-fault collisions, and with traces that do not have the event."""
    run = Run(shutil.copytree(make_run("recorded").folder, tmp_path / "run"))
    header = json.loads((run.folder / "run.json").read_text())
    del header["config"]["env"]["score"]["collisions"]
    (run.folder / "run.json").write_text(json.dumps(header))
    for name in run.ledger["episode_id"].to_pylist():
        path = run.folder / trace_path(name)
        trace = read_trace(path)
        path.unlink()
        write_trace(path, replace(trace, events=trace.events & ~np.uint16(EVENT_AT_FAULT), judges_fault=False))
    run = Run(run.folder)
    before = [_without_fault(result) for result in run.results()]
    monkeypatch.setattr(Run, "results", lambda _: iter(before))
    result = rescore(open_run(run))
    assert not result.differing
    assert result.metrics["figures"] == (run.metrics or {})["figures"]
    name = run.ledger["episode_id"].to_pylist()[0]
    again = replay(open_run(run, trust=True), name).trace
    assert again is not None
    assert first_difference(run.trace(name), again) is None


def _without_fault(result: EpisodeResult) -> EpisodeResult:
    agents, trials = (
        tuple(replace(row, figures={n: v for n, v in row.figures.items() if "at_fault" not in n}) for row in rows)
        for rows in (result.agents, result.trials)
    )
    return replace(result, agents=agents, trials=trials)


def test_a_metric_of_another_version_is_told_as_such(
    make_run: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    run = make_run("recorded")
    newer = tuple(replace(m, version=m.version + 1) if m.name == "score" else m for m in driving.TRIAL_METRICS)
    monkeypatch.setattr(driving, "TRIAL_METRICS", newer)
    result = rescore(open_run(run))
    assert not result.differing
    changed = {change.name: change for change in result.changes}
    assert changed["score"].is_other_version
    assert command(rescore_verb, run.folder) == 1
    assert "by version 4 of the metric" in capsys.readouterr().out


def test_a_run_from_before_clusters_agrees_although_its_intervals_had_other_methods(
    make_run: Callable[[str], Run], tmp_path: Path
) -> None:
    """The old run has a ledger without clusters, and figures of before missing data and maps."""
    run = make_run("recorded")
    folder = tmp_path / run.folder.name
    shutil.copytree(run.folder, folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["by_cluster"], metrics["num_clusters"]
    for figure in metrics["figures"]:
        figure |= {"low": None, "high": None, "level": None, "method": None, "clusters": 12, "note": "not enough data"}
        for key in ("missing", "worst_low", "worst_high"):
            del figure[key]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    pq.write_table(run.ledger.drop_columns(["cluster"]), folder / "ledger.parquet")
    old = Run(folder)
    assert old.clusters == run.clusters
    result = rescore(open_run(old))
    assert result.agrees
    assert result.metrics["figures"] == (run.metrics or {})["figures"]


@pytest.mark.row("CL-2")
def test_a_run_from_before_the_closed_loop_score_gets_one(
    make_run: Callable[[str], Run], tmp_path: Path, capsys: Captured
) -> None:
    """The old run is a copy without the score's columns and figures, as such a run was recorded."""
    run = make_run("recorded")
    folder = tmp_path / run.folder.name
    shutil.copytree(run.folder, folder)
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    for k, line in enumerate(lines):
        entry = json.loads(line)
        for table in ("agent_rows", "trial_rows"):
            figures = entry[table]["figures"]
            entry[table]["figures"] = {name: figures[name] for name in figures if name not in FIGURES}
        lines[k] = json.dumps(entry)
    (folder / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["figures"] = [figure for figure in metrics["figures"] if figure["name"] not in FIGURES]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    result = rescore(open_run(Run(folder)))
    assert not result.differing
    assert result.agrees
    given = {figure["name"]: figure for figure in (run.metrics or {})["figures"]}
    assert [change.name for change in result.changes] == [name for name in given if name in FIGURES]
    assert all(change.is_new and change.recomputed == given[change.name] for change in result.changes)
    assert command(rescore_verb, folder) == 0
    assert f"closed_loop_score: {given['closed_loop_score']['value']}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["recorded", "open"])
def test_an_episode_runs_again_bit_for_bit(make_run: Callable[[str], Run], name: str, capsys: Captured) -> None:
    run = make_run(name)
    for episode in run.ledger["episode_id"].to_pylist()[::5]:
        assert command(replay_verb, run.folder, episode, "--verify", "--json", "--trust") == 0
        assert json.loads(capsys.readouterr().out)["identical"] is True


def test_the_first_difference_is_told(make_run: Callable[[str], Run], capsys: Captured) -> None:
    run = make_run("recorded")
    name = run.ledger["episode_id"].to_pylist()[1]
    trace = run.trace(name)
    again = replay(open_run(run, trust=True), name).trace
    assert again is not None
    assert first_difference(trace, again) is None
    x = trace.x.copy()
    frame = int(trace.trial_starts[1]) + 7
    x[frame:, 1] = np.nextafter(x[frame:, 1], np.float32(1e9))
    difference = first_difference(replace(trace, x=x), again)
    assert difference is not None
    assert (difference.trial, difference.step, difference.agent, difference.column) == (1, 7, 1, "x")
    assert command(replay_verb, run.folder, name, "--verify", "--policy", "tests.evaluation.actors:Cruise") == 1
    assert "the motion differs, first at trial 0, step 1" in capsys.readouterr().out


@pytest.mark.row("EVAL-6")
def test_an_audit_counts_what_flips(make_run: Callable[[str], Run], capsys: Captured) -> None:
    run = make_run("recorded")
    assert command(audit_verb, run.folder, "--episodes", "5", "--workers", "1", "--json", "--trust") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["flips"] == 0
    assert [way["episodes"] for way in told["ways"]] == [5, 5, 5]
    assert not any(way["other_rows"] or way["other_motion"] for way in told["ways"])
    # Another policy is what a policy whose arithmetic depends on the batch may become.
    other = audit(open_run(run), 12, workers=0, checkpoint="tests.evaluation.actors:Cruise")
    assert len(other) == 2
    assert all(way.other_rows and way.other_motion for way in other)


@pytest.mark.row("SCEN-5")
def test_hardness_is_written_accepted_and_made_a_pack_of(
    make_run: Callable[[str], Run], tmp_path: Path, streets: Pack, capsys: Captured
) -> None:
    run = make_run("recorded")
    scenarios = hardness_of([run])
    assert {scenario.id for scenario in scenarios} == set(streets.ids)
    for scenario in scenarios:
        (score,) = [r.episode.outcomes["score"] for r in run.results() if r.episode.scenario_id == scenario.id]
        assert score is not None
        assert scenario.rate == pytest.approx(1.0 - score)
        assert (scenario.n, scenario.low <= scenario.rate <= scenario.high) == (1, True)
    assert [scenario.rate for scenario in scenarios] == sorted((s.rate for s in scenarios), reverse=True)
    file, pack = tmp_path / "hard.csv", tmp_path / "hard.pack"
    assert command(hardness_verb, run.folder, "--csv", file, "--pack", pack, "--hardest", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["hardest"] == [scenario.id for scenario in scenarios[:3]]
    assert read_hardness(file) == scenarios
    with Pack(pack) as made:
        assert made.ids == tuple(scenario.id for scenario in scenarios[:3])
    again = tmp_path / "again.pack"
    assert command(hardness_verb, file, "--from", streets.path, "--pack", again, "--hardest", "3") == 0
    assert again.read_bytes() == pack.read_bytes()


def test_a_foreign_or_faulty_csv_is_explained(tmp_path: Path, streets: Pack) -> None:
    file = tmp_path / "hard.csv"
    file.write_text("rate,id,n,high,low,comment\n0.5,a,4,0.9,0.1,mine\n")
    assert read_hardness(file) == [Hardness("a", 4, 0.5, 0.1, 0.9)]
    write_hardness(file, [Hardness("a", 4, 0.5, 0.1, 0.9)])
    with pytest.raises(UsageError, match="has 0 of the 1 scored ones"):
        write_hardest(streets.path, read_hardness(file), 1, tmp_path / "x.pack")
    for text, words in (
        ("id,n,rate,low\na,1,0,0\n", "no column 'high'"),
        ("id,n,rate,low,high\na,one,0,0,1\n", "line 2"),
        ("id,n,rate,low,high\na,1,0.5,0.6,1\n", "low <= rate <= high"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=words):
            read_hardness(file)


def test_hardness_is_of_one_policy(make_run: Callable[[str], Run]) -> None:
    run, other = make_run("recorded"), Run(make_run("open").folder)
    other.header["policy"] = "somebody else"
    with pytest.raises(UsageError, match="runs of different policies"):
        hardness_of([run, other])
