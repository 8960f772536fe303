"""Run folders: created atomically, resumed after a kill, sealed once, readable anywhere."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from roadworthy.errors import RecordError, RoadworthyError, UsageError
from roadworthy.record import Run, RunWriter
from roadworthy.record.episodes import PLACE_FIELDS
from roadworthy.record.files import folder_name, safe_name
from roadworthy.record.run import run_folders
from roadworthy.record.schema import VERSION
from roadworthy.scenario.pack import Pack, encode_map, encode_scenario
from tests.record.made_up import HEADER, ids, ledger, result
from tests.scenario.example import example_map, example_scenario
from tests.sim.scenes import pack_of

METRICS: dict[str, Any] = {"figures": []}


def start(root: Path, **changes: Any) -> RunWriter:
    given = {"evaluator": "town", "policy_name": "random", "header": HEADER, "ledger_table": ledger()} | changes
    return RunWriter.start(root, **given)


def completed(root: Path, order: int = 1, **changes: Any) -> Run:
    """Return a sealed run whose episodes ended in the order of the ledger, or in reverse."""
    writer = start(root, **changes)
    for name in ids(ledger())[::order]:
        writer.append(result(name))
    writer.seal(METRICS)
    return Run(writer.folder)


@pytest.mark.row("REC-1")
def test_a_sealed_run_holds_the_appended_episodes(tmp_path: Path) -> None:
    run = completed(tmp_path)
    episodes, agents, trials = run.episodes().to_pylist(), run.agents().to_pylist(), run.trials().to_pylist()
    assert (run.status, len(episodes), len(agents), len(trials)) == ("completed", 6, 12, 12)
    assert [row["episode_id"] for row in episodes] == ids(run.ledger)
    assert episodes[1] == {
        **{name: value for name, value in vars(result("town-1-r0").episode).items() if name in episodes[1]},
        "tags": ["merge", "hard_stop"],
        "factors.grip": 0.8,
        "factors.object": "box",
        "outcomes.score": 1.0,
        "outcomes.comfort": None,
        "artifacts": [("trace", "traces/town-1-r0.trace")],
        "artifact_errors": [],
        "more": None,
    }
    assert (agents[3]["episode_id"], agents[3]["episode"], agents[3]["figures.distance_m"]) == ("town-1-r0", 1, 200.0)
    assert run.trace("town-4-r0").episode_id == "town-4-r0"
    assert run.metrics == {"schema_version": VERSION, "figures": []}
    assert not [path for path in run.folder.rglob("*") if path.name.startswith(".")]


@pytest.mark.row("REC-2")
def test_tables_do_not_depend_on_the_order_in_which_episodes_ended(tmp_path: Path) -> None:
    one, other = completed(tmp_path / "one"), completed(tmp_path / "other", order=-1)
    for table in ("episodes", "agents", "trials"):
        assert getattr(one, table)().equals(getattr(other, table)())
    assert set(PLACE_FIELDS) <= set(one.episodes().column_names)


def test_an_unfinished_run_gives_the_same_tables_as_a_sealed_one(tmp_path: Path) -> None:
    sealed, writer = completed(tmp_path / "one"), start(tmp_path / "other")
    for name in ids(ledger())[::-1]:
        writer.append(result(name))
    running = Run(writer.folder)
    assert running.status == "running"
    for table in ("episodes", "agents", "trials"):
        assert getattr(running, table)().equals(getattr(sealed, table)())
        assert running.column_names(table) == sealed.column_names(table)
    writer.interrupt()


@pytest.mark.row("REC-3")
def test_the_same_command_resumes_the_unfinished_run(tmp_path: Path) -> None:
    writer = start(tmp_path)
    writer.append(result("town-2-r0"))
    writer.interrupt()
    assert Run(writer.folder).status == "interrupted"
    again = start(tmp_path)
    assert (again.folder, again.done) == (writer.folder, {"town-2-r0"})
    for name in sorted(set(ids(ledger())) - again.done):
        again.append(result(name))
    again.seal(METRICS)
    assert len(Run(again.folder).header["sessions"]) == 2
    later = start(tmp_path)  # the first one is completed
    assert later.folder != writer.folder
    later.interrupt()


@pytest.mark.row("REC-3")
@pytest.mark.parametrize(
    "change",
    [
        {"header": {**HEADER, "config": {"episodes": 7}}},
        {"header": {**HEADER, "checkpoint": {"path": "a.safetensors", "sha256": "b" * 64}}},
        {"ledger_table": ledger(5)},
        {"policy_name": "zero"},
        {"new": True},
    ],
)
def test_another_config_checkpoint_or_ledger_starts_another_run(tmp_path: Path, change: dict[str, Any]) -> None:
    first = start(tmp_path)
    first.interrupt()
    other = start(tmp_path, **change)
    assert other.folder != first.folder
    other.interrupt()
    assert run_folders(tmp_path) == sorted([first.folder, other.folder])


@pytest.mark.row("REC-5")
def test_runs_that_start_in_the_same_moment_have_folders_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        writers = list(pool.map(lambda _: start(tmp_path, new=True), range(16)))
    assert len({writer.folder for writer in writers}) == 16
    for writer in writers:
        writer.append(result("town-0-r0"))
        writer.interrupt()
    assert all(Run(folder).episodes().num_rows == 1 for folder in run_folders(tmp_path))


@pytest.mark.row("REC-5")
def test_a_run_that_is_being_written_is_refused_to_a_second_writer(tmp_path: Path) -> None:
    writer = start(tmp_path)
    with pytest.raises(RoadworthyError, match=r"is writing to this run; wait for it, stop it, or .*--new"):
        start(tmp_path)
    writer.interrupt()


@pytest.mark.row("REC-1")
def test_a_moved_folder_can_be_resumed(tmp_path: Path) -> None:
    writer = start(tmp_path / "here")
    writer.append(result("town-2-r0"))
    writer.interrupt()
    (tmp_path / "there").mkdir()
    shutil.move(tmp_path / "here" / "town", tmp_path / "there" / "town")
    again = start(tmp_path / "there")
    assert again.done == {"town-2-r0"}
    assert Run(again.folder).trace("town-2-r0").scenario_id == "town-2"
    again.interrupt()
    assert str(tmp_path) not in (again.folder / "run.json").read_text()


@pytest.mark.row("REC-1")
def test_a_run_carries_its_scenarios_with_the_tables_of_their_maps(tmp_path: Path) -> None:
    maps = [example_map(), example_map(10.0)]
    scenarios = [example_scenario(f"town-{number}", road_map=maps[number % 2]) for number in range(4)]
    pack = pack_of(tmp_path / "all.pack", *scenarios)
    writer = start(tmp_path, pack=pack.path, scenarios=[3, 1])
    writer.interrupt()
    with Pack(writer.pack) as copy:
        assert copy.ids == ("town-3", "town-1")
        assert encode_scenario(copy[0]) == encode_scenario(pack[3])
        assert encode_map(copy.map_of(1)) == encode_map(pack.map_of(1))
        assert (copy.packed_tables(0).words == pack.packed_tables(pack.map_number(3)).words).all()


def test_a_run_is_sealed_only_when_every_planned_episode_has_ended(tmp_path: Path) -> None:
    with start(tmp_path) as writer:
        writer.append(result("town-2-r0"))
        with pytest.raises(UsageError, match="5 of 6 planned episodes have not ended, such as 'town-0-r0'"):
            writer.seal(METRICS)
        with pytest.raises(UsageError, match="episode 'town-9-r0' is not one of the 6 in the ledger"):
            writer.append(result("town-9-r0"))
    assert Run(writer.folder).missing == tuple(name for name in ids(ledger()) if name != "town-2-r0")


@pytest.mark.row("REC-3")
def test_a_failed_run_keeps_its_episodes_its_error_and_its_traceback(tmp_path: Path) -> None:
    writer = start(tmp_path)
    writer.append(result("town-2-r0"))
    with pytest.raises(ZeroDivisionError), writer:
        raise ZeroDivisionError("no road")
    run = Run(writer.folder)
    assert (run.status, run.episodes().num_rows) == ("failed", 1)
    assert run.header["errors"][0]["error"] == "ZeroDivisionError: no road"
    assert "raise ZeroDivisionError" in run.header["errors"][0]["traceback"]
    with pytest.raises(UsageError, match="this writer is closed"):
        writer.append(result("town-3-r0"))


def test_a_metric_that_raises_leaves_a_run_that_can_be_sealed_later(tmp_path: Path) -> None:
    def raising(run: Run) -> dict[str, Any]:
        raise ValueError(f"{run.episodes().num_rows} rows are too many")

    writer = start(tmp_path)
    for name in ids(ledger()):
        writer.append(result(name))
    with pytest.raises(ValueError, match="6 rows"), writer:
        writer.seal(raising)
    assert Run(writer.folder).status == "failed"
    again = start(tmp_path)
    again.seal(METRICS)
    assert (again.folder, Run(again.folder).status) == (writer.folder, "completed")


@pytest.mark.row("REC-4")
def test_artifacts_and_their_errors_can_be_added_after_the_seal(tmp_path: Path) -> None:
    writer = start(tmp_path)
    for name in ids(ledger()):
        writer.append(result(name))
    writer.add_artifact("town-1-r0", "bev", error="no encoder")
    writer.add_artifact(None, "report", error="no space")
    writer.seal(METRICS)
    run = Run(writer.folder)
    (run.folder / "videos").mkdir()
    (run.folder / "videos" / "a.mp4").touch()
    run.add_artifact("town-1-r0", "bev", run.folder / "videos" / "a.mp4")
    run.add_artifact("town-2-r0", "bev", "videos/none.mp4")
    rows = run.episodes().to_pylist()
    assert dict(rows[1]["artifacts"])["bev"] == "videos/a.mp4"
    assert dict(rows[1]["artifact_errors"]) == {}
    assert dict(rows[2]["artifact_errors"]) == {"bev": "videos/none.mp4 was not written"}
    assert [row["status"] for row in rows] == ["completed"] * 6
    assert [(a.name, a.error) for a in run.artifacts if a.episode_id is None] == [("report", "no space")]
    with pytest.raises(UsageError, match="outside of its run folder"):
        run.add_artifact(None, "secret", "../../other.txt")


def test_an_incomplete_artifact_line_does_not_affect_others(tmp_path: Path) -> None:
    run = completed(tmp_path)
    run.add_artifact("town-1-r0", "bev", error="no encoder")
    with open(run.folder / "artifacts.jsonl", "ab") as file:
        file.write(b'{"schema_ver')
    run.add_artifact("town-2-r0", "bev", error="no encoder")
    assert [artifact.episode_id for artifact in run.artifacts] == ["town-1-r0", "town-2-r0"]


@pytest.mark.row("REC-1")
def test_unknown_fields_survive_a_resume_and_a_seal(tmp_path: Path) -> None:
    writer = start(tmp_path)
    writer.append(result("town-0-r0"))
    writer.interrupt()
    header = json.loads((writer.folder / "run.json").read_text()) | {"schema_version": "1.9", "site": {"name": "here"}}
    (writer.folder / "run.json").write_text(json.dumps(header))
    line = json.loads((writer.folder / "episodes.jsonl").read_text()) | {"schema_version": "1.9", "weather": "rain"}
    (writer.folder / "episodes.jsonl").write_text(json.dumps(line) + "\n")
    again = start(tmp_path)
    for name in ids(ledger())[1:]:
        again.append(result(name))
    again.seal(METRICS)
    run = Run(again.folder)
    assert run.header["site"] == {"name": "here"}
    assert json.loads(run.episodes()["more"][0].as_py()) == {"weather": "rain"}


@pytest.mark.row("REC-1")
def test_a_newer_major_version_is_refused_and_never_resumed(tmp_path: Path) -> None:
    writer = start(tmp_path)
    writer.interrupt()
    path = writer.folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": "2.0"}))
    with pytest.raises(RecordError, match=r"run\.json: has version 2\.0, .* up to 1\.x; update Roadworthy"):
        Run(writer.folder)
    other = start(tmp_path)
    assert other.folder != writer.folder
    other.interrupt()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run folder: it has no run\.json"):
        Run(tmp_path)
    with pytest.raises(UsageError, match="is not a run folder: there is no such folder"):
        Run(tmp_path / "none")
    run = completed(tmp_path)
    with pytest.raises(UsageError, match="the run has no episode 'x'"):
        run.trace("x")


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "~x", "-rf", "", "ü" * 300, "a b%c", "con:1"])
def test_different_ids_have_different_file_names(name: str, tmp_path: Path) -> None:
    safe = safe_name(name)
    (tmp_path / f"{safe}.trace").touch()
    assert [path.name for path in tmp_path.iterdir()] == [f"{safe}.trace"]
    assert safe_name(f"{name}x") != safe


WRITE = """
import signal, sys
from pathlib import Path
from roadworthy.record import RunWriter
from tests.record.made_up import HEADER, ids, ledger, result
owed = ledger(40)
writer = RunWriter.start(sys.argv[1], "town", "random", HEADER, owed)
print("started", flush=True)
for name in sorted(set(ids(owed)) - writer.done):
    writer.append(result(name))
if sys.argv[2] == "to be killed":
    signal.pause()  # a late kill still finds a run that is not sealed
writer.seal({"figures": []})
"""


def _write(root: Path, kill_after_s: float | None = None) -> None:
    """Let a process write the run to its end, or kill it after some time."""
    end = "to be sealed" if kill_after_s is None else "to be killed"
    process = subprocess.Popen([sys.executable, "-c", WRITE, str(root), end], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) == (0 if kill_after_s is None else -signal.SIGKILL)


@pytest.mark.row("REC-3")
def test_a_writer_killed_again_and_again_ends_with_the_tables_of_an_undisturbed_one(tmp_path: Path) -> None:
    _write(tmp_path / "undisturbed")
    for kill in range(5):
        _write(tmp_path / "killed", 0.004 * (kill + 1))
    _write(tmp_path / "killed")
    (expected,), runs = run_folders(tmp_path / "undisturbed"), run_folders(tmp_path / "killed")
    assert len(runs) == 1
    assert len(Run(runs[0]).header["sessions"]) == 6
    for table in ("episodes", "agents", "trials"):
        assert getattr(Run(runs[0]), table)().equals(getattr(Run(expected), table)())
    assert not [path for path in runs[0].rglob("*") if path.name.startswith(".")]


def test_leftovers_of_a_process_killed_at_the_start_are_removed(tmp_path: Path) -> None:
    left = tmp_path / "town" / ".beginning-1234"
    left.mkdir(parents=True)
    (left / ".lock-0123").write_text(json.dumps({"pid": 1, "started": "0", "boot": _own_boot(), "host": "here"}))
    (left / "scenarios.pack").write_bytes(bytes(100))
    fresh = tmp_path / "town" / ".beginning-5678"  # made a moment ago, not locked yet
    fresh.mkdir()
    start(tmp_path).interrupt()
    assert (left.exists(), fresh.exists()) == (False, True)


@pytest.mark.row("REC-3")
def test_a_trace_without_a_line_is_removed_on_resume(tmp_path: Path) -> None:
    writer = start(tmp_path)
    writer.append(result("town-0-r0"))
    half = writer.folder / "traces" / "town-1-r0.trace"
    half.write_bytes(b"RWTR")
    writer.interrupt()
    start(tmp_path).interrupt()
    assert [path.name for path in half.parent.iterdir()] == ["town-0-r0.trace"]
    with pytest.raises(UsageError, match="'town-1-r0' has no trace; it did not end"):
        Run(writer.folder).trace("town-1-r0")


def test_tables_are_the_same_however_many_episodes_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for at_once in (1, 2, 6, 1000):
        monkeypatch.setattr("roadworthy.record.tables._EPISODES_AT_ONCE", at_once)
        writer = start(tmp_path / str(at_once))
        for name in ids(ledger()):
            writer.append(result(name))
        writer.seal({"figures": []})
        run = Run(writer.folder)
        tables.append([table.to_pylist() for table in (run.episodes(), run.agents(), run.trials())])
    assert all(other == tables[0] for other in tables[1:])
    assert [row["episode"] for row in tables[0][1]] == [number for number in range(6) for _ in range(2)]


@pytest.mark.parametrize("at_once", [4, 1000])
def test_figures_are_made_of_the_tables_that_are_read_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("roadworthy.record.tables._EPISODES_AT_ONCE", at_once)  # of 6: tables are kept, or read back
    seen: dict[str, Any] = {}

    def metrics(run: Run) -> dict[str, Any]:
        seen["tables"] = [run.ledger, run.episodes(), run.agents(), run.trials(["trial", "figures.score"])]
        seen["columns"] = [run.column_names(table) for table in ("episodes", "agents", "trials")]
        return METRICS

    with start(tmp_path) as writer:
        for name in ids(ledger()):
            writer.append(result(name))
        writer.seal(metrics)
    run = Run(writer.folder)
    assert seen["tables"] == [run.ledger, run.episodes(), run.agents(), run.trials(["trial", "figures.score"])]
    assert seen["columns"] == [run.column_names(table) for table in ("episodes", "agents", "trials")]


def test_a_folder_under_its_temporary_name_is_not_a_run(tmp_path: Path) -> None:
    start(tmp_path).interrupt()
    (folder,) = run_folders(tmp_path)
    shutil.copytree(folder, folder.parent / ".beginning-1234")
    assert run_folders(tmp_path) == [folder]


def _own_boot() -> str | None:
    from roadworthy.record.lock import _boot

    return _boot()


def test_names_of_folders_have_no_percent_signs_and_stay_different() -> None:
    names = ["openai/gpt-4o", "openai_gpt-4o", "openai:gpt-4o", "pi0", "", "é"]
    folders = [folder_name(name) for name in names]
    assert folders[0].startswith("openai_gpt-4o-")
    assert folders[1] == "openai_gpt-4o"
    assert folders[3] == "pi0"
    assert len(set(folders)) == len(names)
    assert not any("%" in folder or "/" in folder for folder in folders)
