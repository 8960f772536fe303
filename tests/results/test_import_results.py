"""Logs of other tools become run folders with the numbers that the tools mean."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import roadworthy as rw
from roadworthy.errors import RecordError, UsageError
from roadworthy.record import Run
from roadworthy.record.files import read_json
from roadworthy.record.origin import hash_table
from roadworthy.record.schema import schema
from roadworthy.report import write_report
from roadworthy.report.facts import RunFacts
from tests.results import made_up_logs as logs

SHARED = Path(os.environ.get("ROADWORTHY_LOGS", "/nonexistent"))


def success_of(run: Run) -> list[float | None]:
    return run.episodes()["outcomes.success"].to_pylist()


@pytest.mark.row("STAT-5")
@pytest.mark.parametrize("name", logs.ALL)
def test_every_format_becomes_runs_that_fit_the_schemas_of_run_folders(name: str, tmp_path: Path) -> None:
    runs = rw.import_results(logs.ALL[name](tmp_path), out=tmp_path / "runs")
    for run in runs:
        assert run.status == "completed"
        for name, values in (("run", read_json(run.folder / "run.json")), ("metrics", run.metrics)):
            jsonschema.Draft202012Validator(schema(name)).validate(values)
        line = jsonschema.Draft202012Validator(schema("episodes_line"))
        for text in (run.folder / "episodes.jsonl").read_text().splitlines():
            line.validate(json.loads(text))
        assert run.missing == ()
        assert run.header["ledger_hash"] == hash_table(run.ledger)
        assert [result.episode.episode_id for result in run.results()] == run.ledger["episode_id"].to_pylist()
        assert len(set(run.ledger["episode_id"].to_pylist())) == len(run.ledger)
        assert sorted(path.name for path in run.folder.parent.iterdir() if path.name.startswith(".")) == []


@pytest.mark.row("STAT-5")
@pytest.mark.parametrize(
    "name", ["arena", "episode_summary", "lerobot", "csv", "tsv", "json_lines", "json_list", "parquet"]
)
def test_success_is_what_the_log_says_in_every_format(name: str, tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.ALL[name](tmp_path), out=tmp_path / "runs")
    assert success_of(run) == [float(success) for success in logs.SUCCESSES]
    (figure,) = [figure for figure in run.metrics["figures"] if figure["name"] == "success"]
    assert figure["value"] == pytest.approx(4 / 6)


def test_arena_has_environments_lengths_and_variations(tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.arena(tmp_path), out=tmp_path / "runs", policy="pi0")
    row = run.episodes().to_pylist()[3]
    assert (row["scenario_id"], row["world"], row["seed"], row["steps"]) == ("env-1-episode-1", 1, 42, 130)
    assert (row["factors.light.hdr_image"], row["factors.camera[0]"]) == ("office", pytest.approx(0.3))
    assert (run.header["evaluator"], run.header["policy"]) == ("pick", "pi0")
    assert "-pi0-" in run.folder.name


def test_an_arena_folder_is_one_log(tmp_path: Path) -> None:
    logs.arena(tmp_path, name="episode_results_rebuild0.jsonl")
    logs.arena(tmp_path, name="episode_results_rebuild1.jsonl")
    (run,) = rw.import_results(tmp_path, out=tmp_path / "runs")
    scenarios = run.ledger["scenario_id"].to_pylist()
    assert len(set(scenarios)) == 12
    assert {"env-0-episode-0", "rebuild1-env-0-episode-0"} <= set(scenarios)


def test_a_success_that_was_not_judged_is_missing(tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.arena(tmp_path, [True, None, False]), out=tmp_path / "runs")
    assert success_of(run) == [1.0, None, 0.0]
    assert any("1 of 3 episodes have no success" in note for note in run.header["import"]["notes"])


def test_lerobot_seeds_are_scenarios(tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.lerobot(tmp_path), out=tmp_path / "runs")
    assert run.ledger["scenario_id"].to_pylist()[:2] == ["seed-1000", "seed-1001"]
    assert run.ledger["seed"].to_pylist()[:2] == [1000, 1001]
    assert run.episodes()["outcomes.sum_reward"].to_pylist()[2] == 3.0
    assert run.header["import"]["notes"] == []


def test_lerobot_groups_are_runs_and_tasks_are_clusters(tmp_path: Path) -> None:
    runs = rw.import_results(logs.lerobot_tasks(tmp_path), out=tmp_path / "runs")
    assert [(run.header["evaluator"], len(run.ledger)) for run in runs] == [("libero_10", 6), ("libero_goal", 3)]
    assert runs[0].ledger["cluster"].to_pylist() == ["task-0"] * 3 + ["task-1"] * 3
    assert runs[0].ledger["scenario_id"].to_pylist()[4] == "task-1-episode-1"


def test_a_rate_that_disagrees_with_the_episodes_is_reported(tmp_path: Path) -> None:
    path = logs.lerobot(tmp_path)
    path.write_text(path.read_text().replace('"pc_success": 66.66666666666667', '"pc_success": 90.0'))
    (run,) = rw.import_results(path, out=tmp_path / "runs")
    assert run.header["import"]["notes"] == ["the log itself states a rate of 0.9, but its episodes give 0.6667"]


def test_vla_eval_failures_of_the_harness_are_crashed_episodes(tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.vla_eval(tmp_path), out=tmp_path / "runs")
    rows = run.episodes().to_pylist()
    assert [row["status"] for row in rows] == ["completed", "completed", "failed"] * 2
    assert rows[2]["error"] == "exception"
    assert rows[2]["outcomes.success"] is None
    assert rows[1]["outcomes.subtasks"] == 1.0
    assert run.header["policy"] == "openvla-7b"
    assert run.ledger["cluster"].to_pylist()[0] == "pick up bowl 0"


@pytest.mark.parametrize("name", ["inspect_eval", "inspect_json"])
def test_inspect_letters_epochs_and_further_scorers(name: str, tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.ALL[name](tmp_path), out=tmp_path / "runs")
    table = run.episodes()
    assert table["outcomes.score"].to_pylist() == [1.0, 0.0, 0.5] * 2, "partial credit is a score, not a success"
    assert table["outcomes.judge"].to_pylist() == [0.25] * 6
    assert table["replicate"].to_pylist() == [0] * 3 + [1] * 3
    assert table["scenario_id"].to_pylist() == ["1", "2", "3"] * 2
    assert table["outcomes.tokens"].to_pylist() == [7.0] * 6
    assert (run.header["evaluator"], run.header["policy"]) == ("popularity", "openai/gpt-4o-mini")
    assert "factors.metadata.text" not in table.column_names


def test_samples_that_inspect_planned_but_never_ran_are_failed_episodes(tmp_path: Path) -> None:
    path = logs.inspect_eval(tmp_path, logs.inspect_samples()[:4], status="started")
    (run,) = rw.import_results(path, out=tmp_path / "runs")
    rows = {row["episode_id"]: row for row in run.episodes().to_pylist()}
    assert len(rows) == 6
    assert rows["2-r1"]["status"] == "failed"
    assert "planned" in rows["2-r1"]["error"]
    assert run.metrics["num_failed_episodes"] == 2


def test_an_inspect_archive_compressed_with_zstandard_is_read(tmp_path: Path) -> None:
    """The members are packed by hand, since Python 3.13 and earlier can't write them."""
    plain = logs.inspect_eval(tmp_path)
    with zipfile.ZipFile(plain) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (expected,) = rw.import_results(plain, out=tmp_path / "plain")
    packed = {name: pa.compress(text, codec="zstd", asbytes=True) for name, text in members.items()}
    with zipfile.ZipFile(tmp_path / "stored.zip", "w", zipfile.ZIP_STORED) as archive:
        for name, block in packed.items():
            archive.writestr(name, block)
        infos = {info.filename: info for info in archive.infolist()}
    whole = bytearray((tmp_path / "stored.zip").read_bytes())
    for name, info in infos.items():
        crc, size = zipfile.crc32(members[name]), len(members[name])  # type: ignore[attr-defined]
        entry = whole.find(b"PK\x01\x02")
        while whole[entry + 46 : entry + 46 + len(name)] != name.encode():
            entry = whole.find(b"PK\x01\x02", entry + 4)
        for start, sizes in ((info.header_offset + 8, 14 - 8), (entry + 10, 16 - 10)):
            whole[start : start + 2] = (93).to_bytes(2, "little")
            whole[start + sizes : start + sizes + 4] = crc.to_bytes(4, "little")
            whole[start + sizes + 8 : start + sizes + 12] = size.to_bytes(4, "little")
    other = tmp_path / "zstd"
    other.mkdir()
    (other / "log.eval").write_bytes(whole)
    (run,) = rw.import_results(other / "log.eval", out=tmp_path / "runs")
    assert run.episodes()["outcomes.score"] == expected.episodes()["outcomes.score"]


def test_the_same_file_gives_the_same_episodes_and_is_not_imported_twice(tmp_path: Path) -> None:
    path = logs.csv(tmp_path)
    (first,) = rw.import_results(path, out=tmp_path / "runs")
    (again,) = rw.import_results(path, out=tmp_path / "runs")
    (new,) = rw.import_results(path, out=tmp_path / "runs", new=True)
    assert again.folder == first.folder != new.folder
    assert new.ledger == first.ledger
    (other,) = rw.import_results(path, out=tmp_path / "runs", columns={"light": "ignore"})
    assert other.folder not in (first.folder, new.folder)


def test_the_logs_of_two_policies_have_episodes_that_can_be_paired(tmp_path: Path) -> None:
    """Equal scenario, seed, replicate and factors, whatever the order of the rows."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (one,) = rw.import_results(logs.csv(tmp_path / "a"), out=tmp_path / "runs", policy="one")
    lines = logs.csv(tmp_path / "b").read_text().splitlines()
    shuffled = tmp_path / "b" / "table.csv"
    shuffled.write_text("\n".join([lines[0], *reversed(lines[1:])]).replace("True", "False"))
    (two,) = rw.import_results(shuffled, out=tmp_path / "runs", policy="two")
    keys = ["scenario_id", "seed", "replicate", "factors"]
    assert sorted(map(str, one.ledger.select(keys).to_pylist())) == sorted(
        map(str, two.ledger.select(keys).to_pylist())
    )


def test_rows_that_nothing_identifies_belong_to_no_row_of_another_log(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name, text in (("a/x.csv", "success\n1\n0\n"), ("x.csv", "success\n0\n0\n")):
        (tmp_path / name).write_text(text)
    (one,) = rw.import_results(tmp_path / "a/x.csv", out=tmp_path / "runs")
    (two,) = rw.import_results(tmp_path / "x.csv", out=tmp_path / "runs")
    assert not set(one.ledger["scenario_id"].to_pylist()) & set(two.ledger["scenario_id"].to_pylist())


def test_repetitions_are_numbered_and_equal_seeds_share_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("seed,light,success\n1,0.5,1\n1,0.5,0\n1,0.7,1\n2,0.5,1\n")
    (run,) = rw.import_results(path, out=tmp_path / "runs", columns={"light": "factor"})
    assert run.ledger["replicate"].to_pylist() == [0, 1, 0, 0]
    assert run.ledger["scenario_id"].to_pylist() == ["seed-1", "seed-1", "seed-1", "seed-2"]
    assert len(set(run.ledger["episode_id"].to_pylist())) == 4


def test_policies_and_jobs_in_one_file_are_runs_of_their_own_unless_mapped_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("policy,job,seed,success\na,x,1,1\nb,x,1,0\na,y,1,1\nb,y,1,1\n")
    runs = rw.import_results(path, out=tmp_path / "runs")
    names = sorted((run.header["policy"], run.header["evaluator"]) for run in runs)
    assert names == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    (one,) = rw.import_results(path, out=tmp_path / "one", columns={"policy": "factor", "job": "cluster"})
    assert len(one.ledger) == 4
    assert set(one.ledger["cluster"].to_pylist()) == {"x", "y"}


@pytest.mark.row("STAT-5")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["true", "False", "TRUE"], [1, 0, 1]),
        (["1", "0", "1.0"], [1, 0, 1]),
        (["success", "failed", "Success"], [1, 0, 1]),
        (["C", "I", "N"], [1, 0, 0]),
        (["P", "F", "P"], [1, 0, 1]),
        (["yes", "no", "yes"], [1, 0, 1]),
        (["Y", "N", "N"], [1, 0, 0]),
        (["100", "0", "100"], [1, 0, 1]),
        (["100%", "0%", "100%"], [1, 0, 1]),
        (["true", "", "n/a"], [1, None, None]),
    ],
)
def test_success_is_read_in_every_way_of_writing_it(values: list[str], expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("id,success\n" + "".join(f"e{k},{value}\n" for k, value in enumerate(values)))
    (run,) = rw.import_results(path, out=tmp_path / "runs")
    assert success_of(run) == expected


@pytest.mark.parametrize(("name", "values"), [("success_pct", ["37.5", "80"]), ("success", ["0.375", "0.8"])])
def test_shares_and_percentages_become_a_score(name: str, values: list[str], tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"id,{name}\n" + "".join(f"e{k},{value}\n" for k, value in enumerate(values)))
    (run,) = rw.import_results(path, out=tmp_path / "runs", columns={name: "success"})
    assert run.episodes()["outcomes.score"].to_pylist() == pytest.approx([0.375, 0.8])


def test_a_length_in_seconds_is_no_number_of_steps(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("id,success,duration_s\na,1,2.5\nb,0,7\n")
    (run,) = rw.import_results(path, out=tmp_path / "runs")
    assert run.header["import"]["length_unit"] == "s"
    assert run.episodes()["wall_s"].to_pylist() == [2.5, 7.0]
    assert run.episodes()["steps"].to_pylist() == [0, 0]


def test_names_from_a_log_are_neither_paths_nor_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    evil = {
        "id": "../../etc/passwd",
        "policy": "../up\x1b[2J",
        "job": "/etc",
        "success": True,
        "light\x1b[31m": "a\x07b",
    }
    path.write_text(
        json.dumps(evil) + "\n" + json.dumps({**evil, "id": "b", "light\x1b[31m": "c", "success": False}) + "\n"
    )
    (run,) = rw.import_results(path, out=tmp_path / "runs", columns={"light\x1b[31m": "factor"})
    assert run.folder.resolve().is_relative_to((tmp_path / "runs").resolve())
    assert len(run.folder.resolve().relative_to((tmp_path / "runs").resolve()).parts) == 2
    assert "/" not in run.ledger["episode_id"].to_pylist()[0]
    for name in ("run.json", "episodes.jsonl", "metrics.json"):
        text = (run.folder / name).read_text()
        assert "\x1b" not in text
        assert "\\u001b" not in text


ERRORS = {
    "truncated JSON lines": (
        "r.jsonl",
        '{"seed": 1, "success": true}\n{"seed": 2, "succ',
        r"r\.jsonl, line 2: the last line is cut off",
    ),
    "a broken line": ("r.jsonl", '{"seed": 1, "success": true}\nnonsense\n{}\n', r"line 2, column 1: is not JSON"),
    "a line that is no object": ("r.jsonl", '{"seed": 1, "success": true}\n[1]\n', r"line 2: expected a JSON object"),
    "a short row": ("r.csv", "seed,success\n1,1\n2\n", r"line 3: has 1 values, but the header names 2"),
    "mixed formats": (
        "r.jsonl",
        '{"seed": 1, "success": true}\n{"loss": 0.1, "epoch": 3}\n',
        r"line 2: has none of the columns of the first",
    ),
    "an arena file with other lines": (
        "r.jsonl",
        '{"env_id": 0, "success": true}\n{"step": 1}\n',
        r"line 2: lacks env_id and success",
    ),
    "duplicate ids": (
        "r.csv",
        "episode_id,success\na,1\nb,0\na,1\n",
        r"line 4: episode_id: the episode 'a' was already in line 2",
    ),
    "an infinite number": (
        "r.jsonl",
        '{"seed": 1, "success": true, "reward": Infinity}\n',
        r"line 1: reward is an infinite",
    ),
    "a word among numbers": (
        "r.csv",
        "seed,success,reward\n1,1,2.5\n2,0,x7\n",
        r"line 3: reward is str 'x7'; expected a finite number",
    ),
    "another type of success": (
        "r.jsonl",
        '{"seed": 1, "success": true}\n{"seed": 2, "success": 7}\n',
        r"line 2: success: 7 does not say whether",
    ),
    "a seed that is none": (
        "r.jsonl",
        '{"seed": 1, "success": true}\n{"seed": "x", "success": true}\n',
        "line 2: seed is 'x'",
    ),
    "two columns of one name": ("r.csv", "seed,seed,success\n1,1,1\n", r"line 1: the column 'seed' occurs twice"),
    "an empty file": ("r.jsonl", "", r"holds no episodes"),
    "text that is not UTF-8": ("r.csv", b"seed,success\n\xff,1\n", r"line 2: is not UTF-8"),
    "a negative length": ("r.csv", "seed,success,steps\n1,1,5\n2,1,-4\n", r"line 3: steps is '-4'"),
    "a length beyond all": ("r.jsonl", '{"seed": 1, "success": true, "steps": 1e308}\n', "line 1: steps is 1e"),
    "deeply nested JSON": ("r.json", "[" * 100_000, r"nested too deep|not JSON"),
    "deeply nested tables": ("r.jsonl", '{"a":' * 50 + "1" + "}" * 50 + "\n", r"nested more than 8"),
    "lists of different lengths": ("r.json", '{"seed": [1, 2], "success": [true]}', r"columns differ in length"),
    "figures without episodes": (
        "eval_info.json",
        '{"per_episode": [], "aggregated": {"pc_success": 5}}',
        "holds no episodes",
    ),
    "a broken archive": ("r.eval", b"PK\x03\x04nonsense", r"not a whole zip archive"),
}


@pytest.mark.row("STAT-5")
@pytest.mark.parametrize("case", ERRORS)
def test_an_error_names_file_line_and_field_and_writes_nothing(case: str, tmp_path: Path) -> None:
    name, text, message = ERRORS[case]
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    columns = {"steps": "length"} if "steps" in str(text) else {}
    with pytest.raises((RecordError, UsageError), match=message) as raised:
        rw.import_results(path, out=tmp_path / "runs", columns=columns)
    assert name in str(raised.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.row("STAT-5")
def test_a_log_without_success_says_which_columns_there_are(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("seed,reward\n1,3.5\n2,4\n")
    with pytest.raises(
        UsageError, match=r"no column says whether an episode succeeded: .*reward \(3.5 to 4\)"
    ) as raised:
        rw.import_results(path, out=tmp_path / "runs")
    assert "--map COLUMN=success" in str(raised.value)
    (run,) = rw.import_results(path, out=tmp_path / "runs", columns={"reward": "outcome"})
    assert run.episodes()["outcomes.reward"].to_pylist() == [3.5, 4.0]


def test_an_inspect_log_without_scores_says_so(tmp_path: Path) -> None:
    samples = [{**sample, "scores": {}} for sample in logs.inspect_samples()]
    with pytest.raises(RecordError, match="none of its samples has a score"):
        rw.import_results(logs.inspect_eval(tmp_path, samples), out=tmp_path / "runs")


def test_a_log_with_another_column_in_every_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = [json.dumps({"seed": k, "success": True, f"factors.a{k}": 1}) for k in range(2500)]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match="line 1999: there are more than 2000 columns"):
        rw.import_results(path, out=tmp_path / "runs")


@pytest.mark.parametrize("number", ["9" * 400, "-1", "1.5"])
def test_a_number_that_is_no_success_is_refused_in_any_size(number: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = ['{"seed": 1, "success": true}', '{"seed": 2, "success": false}', f'{{"seed": 3, "success": {number}}}']
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match=r"line 3: success: .* does not say whether"):
        rw.import_results(path, out=tmp_path / "runs")


def test_text_that_no_file_can_hold_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = ['{"id": "\\ud800", "success": true, "scene": "\\ud801"}', '{"id": "b", "success": false, "scene": "c"}']
    path.write_text("\n".join(lines) + "\n")
    (run,) = rw.import_results(path, out=tmp_path / "runs")
    assert run.ledger["scenario_id"].to_pylist() == ["\\ud801", "c"]


READER = """
class PairReader:
    def detects(self, path):
        return path.suffix == ".pairs"

    def read(self, path):
        pairs = [line.split() for line in path.read_text().splitlines()]
        return [{"scenario_id": a, "factors": {"light": float(a)}, "outcomes": {"success": b == "1"}} for a, b in pairs]
"""


def test_a_reader_of_the_users_is_enough_to_import_a_log(tmp_path: Path) -> None:
    (tmp_path / "pair_reader.py").write_text(READER)
    (tmp_path / "log.pairs").write_text("0.25 1\n0.5 0\n")
    reader = f"{tmp_path / 'pair_reader.py'}:PairReader"
    (run,) = rw.import_results(tmp_path / "log.pairs", reader, tmp_path / "runs")
    assert success_of(run) == [1.0, 0.0]
    assert run.episodes()["factors.light"].to_pylist() == [0.25, 0.5]
    assert run.ledger["scenario_id"].to_pylist() == ["0.25", "0.5"]


def test_parquet_columns_of_other_types_are_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "success": pa.array([True, False]),
            "reward": pa.array([Decimal("1.5"), Decimal("2.5")]),
            "finished_at": pa.array([datetime(2026, 7, 6), datetime(2026, 7, 5)]),
            "blob": pa.array([b"x", b"y"]),
            "tags": pa.array([[("a", "b")], []], pa.map_(pa.string(), pa.string())),
        }
    )
    pq.write_table(table, tmp_path / "r.parquet")
    (run,) = rw.import_results(tmp_path / "r.parquet", out=tmp_path / "runs")
    assert run.episodes()["outcomes.reward"].to_pylist() == [1.5, 2.5]
    assert [json.loads(more)["finish_rank"] for more in run.episodes()["more"].to_pylist()] == [1, 0]


def test_damaged_rows_are_left_out_on_request_and_counted(tmp_path: Path) -> None:
    path = logs.json_lines(tmp_path)
    path.write_text(path.read_text() + '{"episode": 6, "se')
    (run,) = rw.import_results(path, out=tmp_path / "runs", skip_damaged=True)
    assert len(run.ledger) == 6
    assert run.header["import"]["skipped"] == 1


def test_a_member_that_unpacks_to_more_than_it_may_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roadworthy.record.readers import archive

    monkeypatch.setattr(archive, "LARGEST_MEMBER", 1 << 20)
    samples = [{**logs.inspect_samples()[0], "padding": "0" * (2 << 20)}]
    with pytest.raises(RecordError, match="is larger than 1 MiB"):
        rw.import_results(logs.inspect_eval(tmp_path, samples), out=tmp_path / "runs")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sucess": "success"}, "no column 'sucess'; did you mean"),
        ({"seed": "sed"}, "unknown role 'sed'; did you mean seed"),
        ({"light": "success", "steps": "success"}, "both have the role success"),
    ],
)
def test_wrong_roles_are_refused(columns: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        rw.import_results(logs.csv(tmp_path), out=tmp_path / "runs", columns=columns)
    assert not (tmp_path / "runs").exists()


def test_an_error_while_writing_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roadworthy.results import folders

    def fail(run: Run) -> dict[str, Any]:
        raise OSError("no space")

    monkeypatch.setattr(folders, "outcome_metrics", fail)
    with pytest.raises(OSError, match="no space"):
        rw.import_results(logs.csv(tmp_path), out=tmp_path / "runs")
    assert [path for path in (tmp_path / "runs").rglob("*") if path.is_file()] == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="ROADWORTHY_LOGS names no folder")
@pytest.mark.row("STAT-5")
def test_the_logs_that_arena_and_inspect_ship_are_read(tmp_path: Path) -> None:
    (arena,) = rw.import_results(SHARED / "arena_episode_results_camera_displacement.jsonl", out=tmp_path)
    assert np.nanmean(success_of(arena)) == pytest.approx(0.525)
    (inspect,) = rw.import_results(SHARED / "inspect_mj7khq.eval", out=tmp_path)
    assert np.nanmean(success_of(inspect)) == pytest.approx(0.8)
    with pytest.raises(RecordError, match="none of its samples has a score"):
        rw.import_results(SHARED / "inspect_dPiJif.eval", out=tmp_path)


@pytest.mark.row("STAT-5")
def test_the_report_of_a_log_speaks_of_episodes_and_names_its_file(tmp_path: Path) -> None:
    (run,) = rw.import_results(logs.ALL["csv"](tmp_path), out=tmp_path / "runs")
    facts = RunFacts(run)
    assert not facts.is_driving
    assert facts.unit == "episode"
    page = tmp_path / "report.html"
    write_report([run], page)
    text = page.read_text()
    assert "imported from" in text
    assert run.header["import"]["file"] in text
    assert "no reference runs" not in text
