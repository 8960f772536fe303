"""What the browser decodes is what Python wrote: tables, traces, words; and where runs are found."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from roadworthy.errors import UsageError
from roadworthy.record.files import safe_name
from roadworthy.record.traces import encode_trace
from roadworthy.report import words
from roadworthy.viewer.catalog import Catalog
from roadworthy.viewer.columns import Columns
from roadworthy.viewer.site import NotThere, Site
from tests.record.made_up import trace
from tests.viewer.made_up import results, write_run, write_training

DECODE = """
async (text) => {
  const { decode } = await import("/app/columns.js");
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const table = await decode(bytes.buffer);
  const rows = {};
  for (const [name, column] of table.columns) {
    const get = (row) => (column.kind === "word" ? column.values[column.codes[row]] : column.texts.get(row));
    rows[name] = column.kind === "number" ? Array.from(column.values, (value) => (Number.isNaN(value) ? null : value))
      : Array.from({ length: table.rows }, (_, row) => get(row));
  }
  return [table.header, rows];
}
"""
READ_TRACE = """
async (text) => {
  const { readTrace } = await import("/app/trace.js");
  const trace = readTrace(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const arrays = {};
  for (const [name, array] of Object.entries({ ...trace, ...trace.extra })) {
    if (!ArrayBuffer.isView(array)) continue;
    arrays[name] = btoa(String.fromCharCode(...new Uint8Array(array.buffer, array.byteOffset, array.byteLength)));
  }
  return [{ frames: trace.frames, agents: trace.agents, episodeId: trace.episodeId }, arrays];
}
"""
WORDS = """
async ([names, numbers, figures]) => {
  const words = await import("/app/words.js");
  const { Source } = await import("/app/source.js");
  await words.loadWords(new Source("/"));
  const parts = [words.valueOf, words.intervalOf, words.counted, words.whyOf, words.missingOf];
  return [names.map(words.plainName), numbers.map(([value, unit, signed]) => words.number(value, unit, signed)),
    figures.map((figure) => parts.map((part) => part(figure))), [0.04, 12.25, 75.5, 4000, 90061].map(words.duration)];
}
"""


@pytest.fixture(scope="module")
def run_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    write_run(root, results(90, replicates=2))
    return root


def as_text(block: bytes) -> str:
    return base64.b64encode(block).decode()


@pytest.mark.row("UI-2")
def test_tables_are_decoded_as_they_were_written(page: Any, served: Any, run_root: Path) -> None:
    page.goto(served(run_root))
    rng = np.random.default_rng(0)
    numbers = {
        "flags": rng.random(50) < 0.5,
        "small": rng.integers(-100, 100, 50),
        "large": rng.integers(-(2**31), 2**31, 50),
        "huge": rng.integers(2**40, 2**50, 50),
        "halves": rng.integers(0, 9, 50) / 2.0,
        "thirds": rng.integers(0, 9, 50) / 3.0,
        "gaps": np.where(rng.random(50) < 0.3, np.nan, rng.random(50)),
        "none": np.full(50, np.nan),
    }
    names = [f"scenario-{k} <ü→𝄞>" for k in range(50)]
    tags = [["a", "b"][: k % 3] for k in range(50)]
    columns = Columns(50, note="yes")
    for name, values in numbers.items():
        columns.numbers(name, values)
    columns.texts("ids", pa.chunked_array([pa.array(names)]))
    columns.texts(
        "kinds", pa.chunked_array([pa.array([None if k % 4 == 0 else "\0x" for k in range(50)], pa.string())])
    )
    columns.words("tags", tags)
    columns.centimeters("points", np.array([[1.234, -5.678]]))
    block = columns.encode(6)
    header, rows = page.evaluate(DECODE, as_text(block))
    assert header["note"] == "yes"
    for name, values in numbers.items():
        wanted = [None if value != value else value for value in values.astype(float).tolist()]
        assert rows[name] == wanted, name
    assert rows["ids"] == names
    assert rows["kinds"] == [None if k % 4 == 0 else "\0x" for k in range(50)]
    assert rows["tags"] == tags
    assert rows["points"] == pytest.approx([1.23, -5.68])
    kinds = {entry["name"]: entry.get("dtype", entry["kind"]) for entry in header["columns"]}
    assert kinds["small"] == "i1"
    assert kinds["halves"] == "f4"
    assert kinds["thirds"] == "f8"
    assert kinds["ids"] == "text"


@pytest.mark.row("UI-2")
@pytest.mark.parametrize("is_discrete", [True, False])
def test_traces_are_decoded_bit_for_bit(page: Any, served: Any, run_root: Path, is_discrete: bool) -> None:
    page.goto(served(run_root))
    made = trace("town-1-r0", seed=4, frames=57, agents=13, is_discrete=is_discrete)
    values, arrays = page.evaluate(READ_TRACE, as_text(encode_trace(made)))
    assert (values["frames"], values["agents"], values["episodeId"]) == (57, 13, "town-1-r0")
    names = {"trial_starts": "trialStarts", "goal_counts": "goalCounts", "steering": "steering"}
    for name, array, _, _ in made.columns():
        name = name.removeprefix("extra.")
        found = base64.b64decode(arrays[names.get(name, name)])
        assert found == np.ascontiguousarray(array).tobytes(), name


@pytest.mark.row("UI-2")
def test_file_names_are_those_of_records(page: Any, served: Any, run_root: Path) -> None:
    names = [
        "town-1-r0",
        "a b",
        "x/../y",
        ".hidden",
        "~home",
        "-option",
        "ü→𝄞",
        "50%",
        "a+b,c=d@e",
        "it's (*)!",
        "x" * 400,
    ]
    page.goto(served(run_root))
    code = "async (names) => Promise.all(names.map((await import('/app/safe_name.js')).safeName))"
    assert page.evaluate(code, names) == [safe_name(name) for name in names]


@pytest.mark.row("UI-2")
def test_figures_have_the_words_of_reports(page: Any, served: Any, run_root: Path) -> None:
    page.goto(served(run_root))
    names = [
        "score",
        "score_per_scenario",
        "ada_delta_trial_2_minus_0",
        "trial_1_score",
        "distance_m",
        "infractions_per_km",
    ]
    names += ["exam_stays_on_road", "linear_speed_likelihood", "lane_centred", "made_up_s"]
    rng = np.random.default_rng(1)
    values = [
        0.0,
        1.0,
        0.125,
        0.375,
        2.5,
        -0.05,
        1e-5,
        0.00123,
        99.995,
        100.0,
        123.456,
        1234.5,
        -987654.3,
        *rng.normal(0, 100, 40),
    ]
    numbers = [
        [value, unit, signed]
        for value in values
        for unit in ("share", "1", "m", "likelihood")
        for signed in (False, True)
    ]
    figures = [
        {
            "name": name,
            "value": 0.5,
            "low": low,
            "high": high,
            "n": n,
            "per": per,
            "unit": unit,
            "method": method,
            "note": note,
        }
        | {"missing": missing, "worst_low": worst, "worst_high": 0.9}
        for name, unit in (("score", "share"), ("ada_delta_trial_1_minus_0", "share"), ("distance_m", "m"))
        for low, high, method, note in ((0.25, 0.75, "Wilson", None), (None, None, None, "not enough data: 3 of 10"))
        for n, per in ((1, "agent"), (1200, "kilometre"), (3.25, "scenario"), (12.55, "infraction"))
        for missing, worst in ((0.0, 0.25), (0.125, 0.2), (0.125, None))
    ]
    found = page.evaluate(WORDS, [names, numbers, figures])
    assert found[0] == [words.plain_name(name) for name in names]
    for (value, unit, signed), text in zip(numbers, found[1], strict=True):
        assert text == words.number(value, unit, signed=signed), (value, unit, signed)
    parts = (words.value_of, words.interval_of, words.counted, words.why_of, words.missing_of)
    assert found[2] == [[part(figure) for part in parts] for figure in figures]
    assert found[3] == [words.duration(seconds) for seconds in (0.04, 12.25, 75.5, 4000, 90061)]


@pytest.mark.row("UI-2")
def test_runs_are_found_below_folders_and_keep_their_keys(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs", results(2))
    copy = tmp_path / "backup" / "town" / run.folder.name
    training = write_training(tmp_path / "trainings" / "first")
    inside = write_run(training / "evaluations", results(2))
    alone = Catalog([tmp_path / "runs"])
    assert list(alone.runs) == [run.header["run_id"]]
    assert [place.folder for place in Catalog([run.folder]).runs.values()] == [run.folder]
    whole = Catalog([tmp_path])
    assert set(whole.runs) == {run.header["run_id"], inside.header["run_id"]}
    assert [place.path for place in whole.trainings.values()] == ["trainings/first"]
    copy.mkdir(parents=True)
    (copy / "run.json").write_bytes((run.folder / "run.json").read_bytes())
    both = [key for key, place in Catalog([tmp_path]).runs.items() if place.folder.name == run.folder.name]
    assert len(set(both)) == 2
    assert all(key.startswith(run.header["run_id"]) for key in both)
    with pytest.raises(UsageError, match="there is no such folder; give folders that hold runs"):
        Catalog([tmp_path / "nowhere"])


@pytest.mark.row("SEC-2")
def test_folders_behind_links_are_not_searched(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere", results(2))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere")
    assert Catalog([tmp_path / "runs"]).runs == {}


def test_a_run_whose_rows_are_damaged_is_an_error_of_its_own(tmp_path: Path) -> None:
    good, bad = (write_run(tmp_path, results(3), policy=name) for name in ("good", "bad"))
    (bad.folder / "ledger.parquet").write_bytes(b"PAR1")
    site = Site([tmp_path])
    assert isinstance(site.get("data/runs.json").body, bytes)
    site.get(f"data/run/{good.header['run_id']}/run.json")
    with pytest.raises(Exception, match=r"ledger\.parquet: can't be read as parquet"):
        site.get(f"data/run/{bad.header['run_id']}/run.json")
    with pytest.raises(NotThere):
        site.get("data/run/nothing/run.json")
