"""Where one run is worse than another: pairs, bands, regions, words and pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import roadworthy as rw
from benchmarks.known_surfaces import DIMMED, KNOWN_SURFACES
from benchmarks.sensitivity_studies import two_runs
from roadworthy.cli.main import main
from roadworthy.errors import UsageError
from roadworthy.sensitivity import analysis
from roadworthy.sensitivity.analyze import names
from roadworthy.sensitivity.difference import Difference, difference, match
from roadworthy.sensitivity.difference_panels import difference_panel, legend
from roadworthy.sensitivity.difference_report import difference_as_json, difference_words
from roadworthy.sensitivity.factors import Categorical, Continuous, spread_units
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import SurfaceConfig

SMOOTH = KNOWN_SURFACES[0]
LIGHT, OBJECT = Continuous("light", 0.0, 2000.0), Categorical("object", ("box", "can", "ball"))


@pytest.fixture(scope="module")
def dimmed() -> Difference:
    """600 pairs; the second run is worse by 0.2 to 0.4 at the lowest quarter of light."""
    return difference(*two_runs(DIMMED, 600, 1, True, np.random.default_rng(0)), ("before", "after"))


@pytest.mark.row("SENS-2")
@pytest.mark.row("STAT-2")
def test_a_region_where_the_second_run_is_worse_is_found_and_said(dimmed: Difference) -> None:
    assert dimmed.pairs == 600
    region = next(region for region in dimmed.regions if region.factor == 0)
    assert region.is_lower
    assert dimmed.grid(0)[region.last] < 0.6
    truth = (DIMMED.marginal(0, dimmed.grid(0)) - SMOOTH.marginal(0, dimmed.grid(0)))[region.first : region.last + 1]
    assert region.difference.low <= truth.mean() <= region.difference.high < 0.0
    words = difference_words(dimmed)
    assert words[0].startswith("after is worse on average over all factors: -0.")
    assert any(line.startswith("after is worse where light ") for line in words)
    assert not any("better" in line for line in words)
    assert dimmed.p_values[0] <= 0.01 < dimmed.p_values[2]


@pytest.mark.row("STAT-2")
def test_pairs_know_the_difference_better_than_the_same_rows_unpaired(dimmed: Difference) -> None:
    first, second = two_runs(DIMMED, 600, 1, True, np.random.default_rng(0))
    unpaired = difference(replace(first, keys=None), second, ("before", "after"))
    assert unpaired.pairs == 0
    assert "unpaired because the rows do not say which episodes they are" in difference_words(unpaired)[0]
    assert unpaired.overall.mean == pytest.approx(dimmed.overall.mean, abs=0.03)
    widths = [found.overall.high - found.overall.low for found in (dimmed, unpaired)]
    assert widths[0] < 0.9 * widths[1]


@pytest.mark.row("STAT-1")
def test_equal_runs_have_no_region_more_often_than_promised() -> None:
    """Six pairs of runs that differ by chance alone; at 5% more than two have a probability below 1%."""
    found = [difference(*two_runs(SMOOTH, 300, 5, True, np.random.default_rng(seed)), ("a", "b")) for seed in range(6)]
    assert sum(bool(part.regions) for part in found) <= 2
    assert sum(part.overall.low <= 0.0 <= part.overall.high for part in found) >= 4


@pytest.mark.parametrize(
    ("keys", "pairs", "words"),
    [
        (("a", "b", "c", "d"), 4, ""),
        (("d", "c", "b", "a"), 4, ""),
        (("a", "a", "b", "c"), 0, "1 rows have the scenario"),
        (("a", "b", "x", "y"), 0, "only 2 of 4 episodes"),
    ],
)
def test_episodes_match_by_key_in_any_order(keys: tuple[str, ...], pairs: int, words: str) -> None:
    rows = Rows.of_arrays((LIGHT,), np.zeros((4, 1)), np.zeros(4))
    found, why = match(replace(rows, keys=("a", "b", "c", "d")), replace(rows, keys=keys))
    assert len(found) == pairs
    assert words in why
    assert all("abcd"[one] == keys[two] for one, two in found)


def test_a_number_has_a_difference_too_and_equal_pairs_are_said() -> None:
    rng = np.random.default_rng(4)
    units = rng.random((200, 1))
    first = replace(Rows.of_arrays((LIGHT,), units, 3.0 + rng.standard_normal(200)), keys=tuple(map(str, range(200))))
    second = replace(first, outcome=first.outcome + 2.0 * (units[:, 0] > 0.5) + 0.1 * rng.standard_normal(200))
    found = difference(first, second, ("a", "b"))
    assert any(line.startswith("b is higher where light >") for line in difference_words(found))
    same = difference(first, first, ("a", "b"))
    assert "the difference is 0 in all 200 pairs" in difference_words(same)[0]
    assert not same.regions


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two runs of 240 equal episodes; the second one fails wherever there is a ball."""
    rng = np.random.default_rng(5)
    units = spread_units((LIGHT, OBJECT), rng.random((240, 2)))
    success = rng.random(240) < 0.3 + 0.5 * units[:, 0]
    paths = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    for path in paths:
        lines = []
        for number in range(240):
            factors = {"light": LIGHT.value(units[number, 0]), "object": OBJECT.value(units[number, 1])}
            outcomes = {"success": bool(success[number] and (path is paths[0] or factors["object"] != "ball"))}
            names = {"scenario_id": f"s{number}", "seed": number, "replicate": 0}
            lines.append(json.dumps({**names, "factors": factors, "outcomes": outcomes}))
        path.write_text("\n".join(lines) + "\n")
    quick = analysis.AnalysisConfig(SurfaceConfig(draws=30), flips=99, twins=1, next_episodes=4)
    monkeypatch.setattr(analysis, "AnalysisConfig", lambda *_, **__: quick)
    return paths


@pytest.mark.row("SENS-6")
def test_the_command_compares_two_runs(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    report = files[0].with_name("r.html")
    assert main(["sensitivity", str(files[0]), "--against", str(files[1]), "-o", str(report)]) == 0
    output = capsys.readouterr().out
    assert "after.jsonl is worse where object is ball: -0." in output
    page = report.read_text()
    assert "after.jsonl compared with before.jsonl" in page
    assert "after.jsonl is worse where object is ball" in page
    pictures = {path.name for path in (report.parent / "r_pictures").iterdir()}
    assert {"difference.png", "difference_pairs.png"} <= pictures
    told = json.loads(report.with_suffix(".json").read_text())["difference"]
    assert told["pairs"] == 240
    regions = [(region["factor"], region["from"], region["is_lower"]) for region in told["regions"]]
    assert ("object", "ball", True) in regions
    assert not {("object", "box", True), ("object", "can", True)} & set(regions)
    assert len(told["maps"][0]["mean"]) == len(told["maps"][0]["at"][0])


def test_the_function_gives_the_same_as_the_command(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    figure = files[0].with_name("d.png")
    assert main(["sensitivity", str(files[0]), "--against", str(files[1]), "-o", str(figure), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["difference"]
    found = rw.analyze_sensitivity(files[0], against=files[1]).difference
    assert found is not None
    assert difference_as_json(found)["mean"] == told["mean"]
    assert difference_as_json(found)["findings"] == told["findings"]
    assert "maps" not in told
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_runs_are_told_apart_by_the_ends_of_their_paths(tmp_path: Path) -> None:
    assert names(tmp_path / "a" / "run", tmp_path / "b" / "run") == ("a/run", "b/run")
    assert names(tmp_path / "a.jsonl", tmp_path / "b.jsonl") == ("a.jsonl", "b.jsonl")
    with pytest.raises(UsageError, match="name two different runs"):
        names(tmp_path, tmp_path)
    for place, policy in (("a", "pi0"), ("b", "gr00t"), ("c", "pi0")):
        folder = tmp_path / place / f"2026-{place}-long-name"
        folder.mkdir(parents=True)
        (folder / "episodes.jsonl").touch()
        (folder / "run.json").write_text(json.dumps({"policy": policy}))
    assert names(tmp_path / "a" / "2026-a-long-name", tmp_path / "b") == ("pi0", "gr00t")
    assert names(tmp_path / "a", tmp_path / "c") == ("a", "c")


def test_long_names_of_runs_become_letters_with_a_legend() -> None:
    rows = replace(Rows.of_arrays((LIGHT,), np.linspace(0, 1, 30)[:, None], np.linspace(0, 1, 30)), keys=None)
    short = difference(rows, rows, ("a", "b"))
    long = replace(short, names=("20261119T165944Z-first-865f9eb9", "20261119T170012Z-second-0a1b2c3d"))
    assert legend(short) == ""
    assert legend(long).splitlines() == [f"A: {long.names[0]}", f"B: {long.names[1]}"]
    figure = Figure()
    axes = figure.subplots()
    difference_panel(long, 0)(axes)
    assert axes.get_ylabel() == "B minus A"
