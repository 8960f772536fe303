"""Run folders of strangers: nothing that is named in one is executed, read or sent unasked."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from roadworthy.cli.audit import audit as audit_verb
from roadworthy.cli.render import render as render_verb
from roadworthy.cli.replay import replay as replay_verb
from roadworthy.cli.report import report as report_verb
from roadworthy.cli.rescore import rescore as rescore_verb
from roadworthy.cli.scenarios.hardness import hardness as hardness_verb
from roadworthy.errors import ConfigError, RecordError, UsageError
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.finish import finish
from roadworthy.evaluation.sections import read_sections
from roadworthy.evaluation.trust import danger_of
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack
from tests.evaluation.built_in import declare
from tests.evaluation.test_again import command

Captured = pytest.CaptureFixture[str]
SECTION = """
[eval.short]
type = "multi_scenario"
scenarios = "{pack}"
episodes = 2
worlds = 2
env.control.rows = 2
env.control.ego_share = 0.5
episode.trial_steps = 10
coplayers = ["zero"]
"""
EVIL = """
import pathlib
pathlib.Path({mark!r}).write_text("imported")

class Policy:
    name = "evil"
    def __init__(self): pathlib.Path({mark!r}).write_text("made")
"""
SECRET = b"the content of a private file"


@pytest.fixture(autouse=True, scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        declare(tmp_path_factory.mktemp("site") / "plugins", monkeypatch)
        yield


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, streets: Pack) -> Run:
    """A run of a built-in policy among co-players that do nothing."""
    folder = tmp_path_factory.mktemp("honest")
    (folder / "suite.toml").write_text(SECTION.format(pack=streets.path))
    (outcome,) = evaluate_sections(read_sections(folder / "suite.toml"), "zero", folder)
    assert outcome.run is not None
    assert outcome.is_complete, outcome.error
    return outcome.run


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that appears when the module `evil_policy`, which can be imported here, is executed."""
    mark = tmp_path / "executed"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "evil_policy.py").write_text(EVIL.format(mark=str(mark)))
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield mark
    sys.modules.pop("evil_policy", None)


def forged(honest: Run, to: Path, **changes: Any) -> Run:
    """A copy of a run whose run.json names something else."""
    shutil.copytree(honest.folder, to)
    header = json.loads((to / "run.json").read_text())
    config = header["config"] | changes.pop("config", {})
    (to / "run.json").write_text(json.dumps(header | changes | {"config": config}))
    return Run(to)


def episode_of(run: Run) -> str:
    return str(run.ledger["episode_id"][0].as_py())


HOSTILE: dict[str, dict[str, Any]] = {
    "policy": {"policy_spec": "evil_policy:Policy"},
    "co-player": {"config": {"coplayers": ["evil_policy:Policy"]}},
    "metrics and environment": {
        "policy_spec": "evil_policy:Policy",
        "config": {"metrics": ["evil_policy:Policy"], "environment": "evil_policy:Policy"},
        "job": {"environment": "evil_policy:Policy", "metrics": ["evil_policy:Policy"]},
    },
    "evaluator": {"config": {"type": "evil_policy:Policy"}},
    "reward term": {"config": {"env": {"reward": {"terms": {"evil_policy:Policy": 1.0}}}}},
    "observation block": {"config": {"env": {"observe": {"blocks": ["evil_policy:Policy"]}}}},
}


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_verb_executes_code_that_a_run_folder_names(
    honest: Run, tmp_path: Path, mark: Path, name: str, capsys: Captured
) -> None:
    run = forged(honest, tmp_path / "run", **HOSTILE[name])
    episode = episode_of(run)
    for verb, *arguments in (
        (replay_verb, run.folder, episode),
        (audit_verb, run.folder, "--episodes", "1", "--workers", "0"),
        (rescore_verb, run.folder),
        (report_verb, run.folder),
        (render_verb, run.folder, "--first", "1", "--max-steps", "2", "--size", "320x240", "--view", "bev,obs"),
        (hardness_verb, run.folder, "--csv", tmp_path / "hard.csv"),
    ):
        has_strange_keys = name == "metrics and environment" and verb in (rescore_verb, render_verb)
        has_strange_figures = name in ("evaluator", "reward term", "observation block") and verb is rescore_verb
        is_refused = verb in (replay_verb, audit_verb) or has_strange_keys or has_strange_figures
        with pytest.raises((UsageError, ConfigError)) if is_refused else nullcontext():
            command(verb, *arguments)
        assert not mark.exists(), verb.__name__
    finish(run)
    assert not mark.exists()


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("name", ["policy", "co-player"])
def test_replay_and_audit_say_what_they_would_run_and_run_it_when_trusted(
    honest: Run, tmp_path: Path, mark: Path, name: str
) -> None:
    run = forged(honest, tmp_path / "run", **HOSTILE[name])
    for verb, arguments in ((replay_verb, [episode_of(run)]), (audit_verb, ["--episodes", "1", "--workers", "0"])):
        with pytest.raises(UsageError, match=r"import evil_policy and run Policy.*--trust"):
            command(verb, run.folder, *arguments)
        assert not mark.exists()
        with suppress(Exception):  # the class has no `act`, but it is constructed, which is what counts
            command(verb, run.folder, *arguments, "--trust")
        assert mark.read_text() == "made"
        mark.unlink()


@pytest.mark.row("SEC-1")
def test_a_policy_in_a_file_that_a_run_folder_names_runs_only_when_trusted(
    honest: Run, tmp_path: Path, mark: Path
) -> None:
    spec = f"{tmp_path}/site/evil_policy.py:Policy"
    run = forged(honest, tmp_path / "run", policy_spec=spec)
    with pytest.raises(UsageError, match=r"import .*evil_policy.py and run Policy.*--trust"):
        command(replay_verb, run.folder, episode_of(run))
    assert not mark.exists()
    with pytest.raises(Exception):  # noqa: B017  # it has no `act`; that it was made is what counts
        command(replay_verb, run.folder, episode_of(run), "--trust")
    assert mark.read_text() == "made"


@pytest.mark.row("SEC-1")
def test_nobody_connects_to_an_address_that_a_run_folder_names(honest: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ws://127.0.0.1:{server.getsockname()[1]}"
        run = forged(honest, tmp_path / "run", policy_spec=address)
        with pytest.raises(UsageError, match=f"connect to {address}"):
            command(replay_verb, run.folder, episode_of(run))
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.row("SEC-1")
def test_built_in_policies_and_checkpoints_run_without_trust(honest: Run, tmp_path: Path) -> None:
    assert command(replay_verb, honest.folder, episode_of(honest), "--verify") == 0
    assert command(audit_verb, honest.folder, "--episodes", "1", "--workers", "0") == 0
    for spec in ("random", "zero", "expert:log", "expert:drive", "baseline:town", str(tmp_path)):
        assert danger_of(spec) is None, spec
    for spec in ("a:B", "policies.py:Mine", "ws://host:1", "wss://host", "os:system"):
        assert danger_of(spec) is not None, spec


def test_a_policy_that_the_user_names_is_trusted(honest: Run, tmp_path: Path, mark: Path) -> None:
    run = forged(honest, tmp_path / "run", policy_spec="evil_policy:Policy")
    given = ("--policy", "tests.evaluation.actors:Cruise")
    assert command(replay_verb, run.folder, episode_of(run), *given) == 0
    assert not mark.exists()


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("way", ["absolute", "upwards", "link", "linked folder", "its own row"])
def test_a_report_holds_no_file_from_outside_of_the_run_folder(honest: Run, tmp_path: Path, way: str) -> None:
    run = forged(honest, tmp_path / "runs" / "run")
    secret = tmp_path / "secret.png"
    secret.write_bytes(SECRET)
    named = {"absolute": str(secret), "upwards": "../../secret.png", "its own row": str(secret)}.get(way, "films/a.png")
    if way == "link":
        (run.folder / "films").mkdir()
        (run.folder / "films" / "a.png").symlink_to(secret)
    if way == "linked folder":
        (run.folder / "films").symlink_to(tmp_path)
        named = "films/secret.png"
    episode = episode_of(run)
    if way == "its own row":
        table = pyarrow.parquet.read_table(run.folder / "episodes.parquet")
        place = table.column_names.index("artifacts")
        forged_rows = pyarrow.array(
            [[("filmstrip", named), ("video_bev", named)]] * len(table), table.field(place).type
        )
        pyarrow.parquet.write_table(
            table.set_column(place, table.field(place), forged_rows), run.folder / "episodes.parquet"
        )
    else:
        lines = [
            {"schema_version": "1.0", "episode_id": episode, "name": name, "path": named, "error": None}
            for name in ("filmstrip", "video_bev")
        ]
        (run.folder / "artifacts.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    page = tmp_path / "page.html"
    command(report_verb, run.folder, "-o", page, "--strips", "0")
    from base64 import b64encode

    text = page.read_text()
    assert b64encode(SECRET).decode() not in text
    assert 'href="' not in text.replace('href="#', "")  # and no link to it
    assert "leads out of the run folder" in text


@pytest.mark.row("SEC-1")
def test_nothing_is_written_through_links_of_a_run_folder(honest: Run, tmp_path: Path) -> None:
    run = forged(honest, tmp_path / "run")
    victim, elsewhere = tmp_path / "profile", tmp_path / "elsewhere"
    victim.write_text("mine\n")
    elsewhere.mkdir()
    for name in ("report", "videos"):
        shutil.rmtree(run.folder / name, ignore_errors=True)
        (run.folder / name).symlink_to(elsewhere)
    (run.folder / "artifacts.jsonl").unlink(missing_ok=True)
    (run.folder / "artifacts.jsonl").symlink_to(victim)
    with pytest.raises(RecordError, match="leads out of the run folder"):
        command(report_verb, run.folder)
    with pytest.raises(UsageError, match="leads out of the run folder"):
        run.add_artifact(None, "sink_$(touch x)", error="no")
    finish(run)
    command(render_verb, run.folder, "--first", "1", "--max-steps", "2", "--size", "320x240")
    assert victim.read_text() == "mine\n"
    assert os.listdir(elsewhere) == []


@pytest.mark.row("SEC-1")
def test_scenarios_and_traces_behind_links_are_not_taken_for_those_of_the_run(
    honest: Run, tmp_path: Path, streets: Pack
) -> None:
    run = forged(honest, tmp_path / "run")
    (run.folder / "scenarios.pack").unlink()
    (run.folder / "scenarios.pack").symlink_to(streets.path)
    with pytest.raises(RecordError, match="leads out of the run folder"):
        command(rescore_verb, run.folder)
    shutil.rmtree(run.folder / "traces")
    (run.folder / "traces").symlink_to(honest.folder / "traces")
    with pytest.raises(RecordError, match="leads out of the run folder"):
        run.trace(episode_of(run))


@pytest.mark.row("SEC-1")
def test_rollouts_with_pickled_objects_are_refused(tmp_path: Path, mark: Path) -> None:
    from roadworthy.metrics.realism.read import read_rollouts

    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.write_text, (mark, "unpickled"))

    np.savez(tmp_path / "scene.npz", x=np.array([Bomb()], object), object_id=np.array([1]))
    with pytest.raises(Exception):  # noqa: B017  # whatever it says, it is refused
        list(read_rollouts(tmp_path, ("scene",)))
    assert not mark.exists()


@pytest.mark.row("SEC-1")
def test_factors_that_hold_yaml_objects_are_refused(tmp_path: Path, mark: Path) -> None:
    from roadworthy.errors import RoadworthyError
    from roadworthy.sensitivity.factors import read_factors

    (tmp_path / "factors.yaml").write_text(f"factors: !!python/object/apply:os.system ['touch {mark}']\n")
    with pytest.raises(RoadworthyError):
        read_factors(tmp_path / "factors.yaml")
    assert not mark.exists()


@pytest.mark.row("SEC-1")
@pytest.mark.parametrize("place", ["../elsewhere", "{absolute}", "linked"])
def test_jobs_that_lie_elsewhere_are_not_read(tmp_path: Path, place: str) -> None:
    from roadworthy.sensitivity.sources import load_rows

    elsewhere, jobs = tmp_path / "elsewhere", tmp_path / "jobs"
    elsewhere.mkdir()
    jobs.mkdir()
    (elsewhere / "episodes.jsonl").write_text('{"episode_id": "0"}\n')
    (jobs / "linked").symlink_to(elsewhere)
    run = place.format(absolute=elsewhere)
    (jobs / "jobs.json").write_text(json.dumps({"schema_version": "1.0", "jobs": [{"name": "a", "run": run}]}))
    with pytest.raises(UsageError, match="holds none of"):
        load_rows(jobs)
