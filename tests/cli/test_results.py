"""`roadworthy results`: import and check from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadworthy.cli.main import main
from tests.results import made_up_logs as logs


def last_json(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    value: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return value


@pytest.mark.row("STAT-5")
def test_what_is_understood_is_shown_before_the_run_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", "import", str(logs.csv(tmp_path)), "--out", str(tmp_path / "runs"), "--policy", "pi0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("table.csv: rows, 6 episodes")
    assert next(line for line in lines if "reached_goal" in line).split()[:2] == ["reached_goal", "success"]
    assert next(line for line in lines if " steps " in line).split()[:2] == ["steps", "length"]
    assert "run: table, policy pi0, 6 episodes" in lines
    assert Path(lines[-1]).is_dir()


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["results", "import", str(logs.arena(tmp_path)), "--out", str(tmp_path / "runs"), "--dry-run"]
    assert main(words) == 0
    assert "nothing was written" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    (file,) = last_json(capsys)["files"]  # type: ignore[misc]
    assert (file["format"], file["episodes"], file["length_unit"]) == ("arena", 6, "steps")
    assert {"column": "success", "role": "success", "values": "4 true, 2 false"} in file["columns"]
    assert not (tmp_path / "runs").exists()


def test_different_units_of_two_files_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name in ("steps", "duration_s"):
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(f"seed,success,{name}\n1,1,5\n2,0,7\n")
    assert main(["results", "import", *map(str, paths), "--dry-run"]) == 0
    assert "lengths are in steps in steps.csv and in s in duration_s.csv" in capsys.readouterr().err


@pytest.mark.row("STAT-6")
def test_a_check_ends_with_0_unless_it_is_asked_to_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(logs.csv(tmp_path))
    biased = tmp_path / "copies.csv"
    biased.write_text("seed,success\n" + "1,1\n2,0\n" * 2)
    assert main(["results", "check", path]) == 0
    assert main(["results", "check", path, "--fail-on", "warning"]) == 0
    assert main(["results", "check", str(biased)]) == 0
    capsys.readouterr()
    assert main(["results", "check", str(biased), "--fail-on", "warning", "--json"]) == 10
    (report,) = last_json(capsys)["reports"]  # type: ignore[misc]
    assert report["worst"] == "warning"
    assert "copies" in [finding["check"] for finding in report["findings"]]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["missing.csv"], 2, "there is no such file"),
        (["table.csv", "--format", "arenas"], 2, "unknown reader 'arenas'; did you mean arena?"),
        (["table.csv", "--map", "light"], 2, "expected COLUMN=ROLE"),
        (["notes.txt"], 2, "ends in '.txt'"),
        (["broken.eval"], 3, "is not a whole zip archive"),
    ],
)
def test_errors_have_their_exit_codes_and_write_nothing(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    logs.csv(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "broken.eval").write_text("hello")
    for verb in ("import", "check"):
        assert main(["results", verb, *words]) == code
        assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_terminal_gets_no_control_characters_from_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"policy": "p\x1b[31m", "seed": k, "success": bool(k), "li\x1b[2Jght": f"\x07{k}"} for k in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["results", "import", str(path), "--dry-run", "--map", "li\x1b[2Jght=factor"]) == 0
    assert main(["results", "check", str(path)]) == 0
    path.write_text(path.read_text() + json.dumps({"seed": "\x1b[31m", "success": True}) + "\n")
    assert main(["results", "check", str(path)]) == 3
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "\x07" not in told.out + told.err
