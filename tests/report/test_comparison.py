"""The page of a comparison: what it says, draws, links and embeds."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import roadworthy as rw
from tests.comparison.made_up import Made, made_run
from tests.report.made_up import Page, drive, make_run


@pytest.mark.row("STAT-2")
def test_the_page_shows_differences_pairs_flips_and_classes(tmp_path: Path) -> None:
    tags = ("merge", "cut_in")
    a = make_run(tmp_path / "a", [drive(k, [[1.0]], tags=[tags[k % 2]]) for k in range(30)])
    b = make_run(tmp_path / "b", [drive(k, [[float(k % 4 > 0)]], tags=[tags[k % 2]]) for k in range(30)])
    path = rw.compare(a, b, margin=0.02).write_html(tmp_path / "out" / "page.html")
    text = path.read_text()
    page = Page(text)
    for words in ("Difference by metric", "Score in pairs", "Episodes that changed", "Difference by class", "worse"):
        assert words in page.text
    assert "street-000-r0" in page.text
    # One column with a title for each of the 30 clusters.
    chart = text.partition('class="pairs-chart"')[2].partition("</svg>")[0]
    assert chart.count('class="pair"') == 30
    assert "street-004: " in chart
    # It needs no other file and no network.
    assert not re.search(r"""(src|href)=["']https?:""", text)
    rows = list(csv.DictReader(path.with_suffix(".csv").open()))
    assert {row["kind"] for row in rows} == {"metric", "class"}
    (score,) = [row for row in rows if row["kind"] == "metric" and row["metric"] == "score"]
    assert float(score["difference"]) == pytest.approx(-8 / 30)
    embedded = text.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(embedded) == json.loads(path.with_suffix(".json").read_text())


@pytest.mark.row("STAT-4")
def test_missing_episodes_are_a_lighter_bar_and_a_warning(tmp_path: Path) -> None:
    a = made_run(tmp_path / "a", [Made(f"s{k}", {"success": float(k % 5 > 0)}) for k in range(50)])
    made = [Made(f"s{k}", "failed" if k % 5 == 1 else {"success": float(k % 5 > 0)}) for k in range(50)]
    text = rw.compare(a, made_run(tmp_path / "b", made)).write_html(tmp_path / "page.html").read_text()
    assert 'class="worst-case"' in text
    assert "20.0% of the rows have no result and count as failures" in text
    whole = rw.compare(a, a).write_html(tmp_path / "same.html").read_text()
    assert 'class="worst-case"' not in whole


@pytest.mark.row("SEC-1")
def test_names_from_records_are_text_and_never_markup(tmp_path: Path) -> None:
    bad = "</script><script>alert(1)</script>"
    made = [Made(f"{bad}{k}", {"success": float(k > 3)}, tags=[bad, "x"]) for k in range(12)]
    a = made_run(tmp_path / "a", made)
    b = made_run(tmp_path / "b", [Made(m.scenario, {"success": 0.0}, tags=m.tags) for m in made])
    text = rw.compare(a, b).write_html(tmp_path / "page.html").read_text()
    assert "<script>alert" not in text
    assert text.count("<script") == 2


@pytest.mark.row("SEC-1")
def test_videos_outside_of_the_run_are_not_linked(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [drive(k, [[1.0]]) for k in range(10)])
    b = make_run(
        tmp_path / "b", [drive(k, [[float(k > 1)]], artifacts={"video_sim": "../secret.mp4"}) for k in range(10)]
    )
    (tmp_path / "b" / "town" / "secret.mp4").write_bytes(b"x")
    (b.folder / "inside.mp4").write_bytes(b"x")
    b.add_artifact("street-001-r0", "video_sim", b.folder / "inside.mp4")
    text = rw.compare(a, rw.load_run(b.folder)).write_html(tmp_path / "page.html").read_text()
    assert "secret.mp4" not in text.partition('id="data"')[0]
    assert "inside.mp4" in text


def test_several_runs_have_an_overview_and_a_ranking(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / str(n), [drive(k, [[float(k % 10 >= n)]]) for k in range(40)]) for n in range(3)]
    page = Page(rw.compare(*runs).write_html(tmp_path / "page.html").read_text())
    assert "Ranking by score" in page.text
    assert "All differences to" in page.text
