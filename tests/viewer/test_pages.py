"""The pages in a real browser: open, sort, filter, recompute, link, and show what strangers wrote as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.record import Run
from tests.report.test_realism import rollouts
from tests.viewer.made_up import HOSTILE, results, write_run, write_training


@dataclass(frozen=True)
class Place:
    """A server with some runs."""

    address: str
    first: Run
    second: Run


@pytest.fixture(scope="module")
def place(served: Any, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("runs")
    rows = results(120, replicates=2)
    first = write_run(root, rows, policy="first", step=100_000)
    second = write_run(root, results(120, seed=1, replicates=2), policy="second", step=200_000)
    damaged = write_run(root, rows[:4], policy="broken")
    (damaged.folder / "run.json").write_text("{")
    hostile = [replace(row, episode=replace(row.episode, tags=(HOSTILE,), error=HOSTILE)) for row in rows[:6]]
    write_run(root, hostile, policy=HOSTILE, evaluator="strange")
    training = write_training(root / "training")
    write_run(training / "evaluations", rows[:40], policy="first", step=200_000)
    return Place(served(root), first, second)


def show(page: Any, place: Place, path: str) -> None:
    name = re.match(r"\w+", path)
    page.goto("about:blank")
    page.goto(f"{place.address}#/{path}")
    page.wait_for_selector(f"html[data-ready={name[0] if name else 'runs'}]")


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    for _ in range(100):
        if holds():
            return
        page.wait_for_timeout(50)
    assert holds()


def texts(page: Any, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


@pytest.mark.row("UI-2")
def test_the_table_of_runs_is_sorted_searched_and_grouped(page: Any, place: Place) -> None:
    show(page, place, "runs")
    assert page.locator("tr[data-run]").count() == 5
    page.get_by_role("button", name="score", exact=True).click()
    page.get_by_role("button", name=re.compile("^score")).click()
    values = [float(text.split("%")[0]) for text in texts(page, "tr[data-run] td.figure:nth-of-type(5)") if "%" in text]
    assert values == sorted(values)
    page.get_by_label("Search").fill("second")
    assert texts(page, "tr[data-run] td.wrap >> nth=0")[0].startswith("second")
    assert page.locator("tr[data-run]").count() == 1
    assert "q=second" in page.url
    page.get_by_label("Search").fill("")
    page.get_by_label("Group by").select_option("policy")
    assert len(texts(page, "tr.group")) == 4


@pytest.mark.row("UI-2")
def test_a_damaged_run_is_listed_as_damaged_among_good_ones(page: Any, place: Place) -> None:
    show(page, place, "runs")
    row = page.locator("tr[data-run]", has_text="damaged")
    assert row.count() == 1
    assert "it is not JSON" in row.inner_text()
    key = row.get_attribute("data-run")
    show(page, place, f"run/{key}")
    assert "This page can't be shown" in page.locator("main").inner_text()
    page.problems[:] = [text for text in page.problems if "422" not in text]  # the browser reports every such answer


@pytest.mark.row("SEC-2")
def test_what_strangers_wrote_is_shown_as_text(page: Any, place: Place) -> None:
    show(page, place, "runs?q=strange")
    assert HOSTILE in page.locator("tr[data-run]").inner_text()
    page.locator("tr[data-run] a").click()
    page.wait_for_selector("html[data-ready=run]")
    page.locator("[role=gridcell] a").first.wait_for()
    assert HOSTILE in page.locator("main").inner_text()
    assert page.locator("main img, main script").count() == 0
    assert "taken" not in page.title()
    page.evaluate("location.hash = '#/run/' + encodeURIComponent('<script>alert(1)</script>')")
    page.locator("text=there is no such file").wait_for()
    page.problems[:] = [text for text in page.problems if "404" not in text]


@pytest.mark.row("UI-2")
def test_filters_recompute_figures_and_are_part_of_the_address(page: Any, place: Place) -> None:
    show(page, place, f"run/{place.first.header['run_id']}")
    tile = page.locator(".tile[data-figure=score]")
    whole = tile.inner_text()
    page.get_by_label("Filter by").select_option("tags")
    page.locator("select[name=word]").select_option("merge")
    page.get_by_role("button", name="Add").click()
    page.locator("p.selected").wait_for()
    assert "20 episodes selected of 120" in page.locator("p.selected").inner_text()
    until(page, lambda: tile.inner_text() != whole)
    score = texts(page, ".tile[data-figure=score] .tile-value")[0]
    table = place.first.agents(["scenario_id", "figures.score"])
    is_merge = np.array([name.startswith("merge") for name in table["scenario_id"].to_pylist()])
    expected = float((table["figures.score"].to_numpy()[is_merge] > 0).mean())
    assert score == f"{100 * expected:.1f}%"
    assert set(texts(page, "[role=gridcell]:nth-child(2)")) == {"merge"}

    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator("p.selected").wait_for()
    assert texts(page, ".tile[data-figure=score] .tile-value")[0] == score
    page.get_by_role("button", name="Clear all").click()
    page.locator("p.selected").wait_for(state="detached")
    page.go_back()
    page.locator("p.selected").wait_for()


@pytest.mark.row("UI-2")
def test_a_brush_selects_and_the_keyboard_does_too(page: Any, place: Place) -> None:
    show(page, place, f"run/{place.first.header['run_id']}?plots=factors.grip,outcomes.distance_m")
    plot = page.locator(".histogram").first
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 30, steps=4)
    page.mouse.up()
    page.locator("p.selected").wait_for()
    found = re.search(r"factors\.grip%7Erange%7E([\d.]+)%7E([\d.]+)|factors\.grip~range~([\d.]+)~([\d.]+)", page.url)
    assert found, page.url
    low, high = (float(part) for part in found.groups() if part)
    grips = place.first.episodes(["factors.grip"])["factors.grip"].to_numpy()
    expected = int(((grips >= low) & (grips <= high)).sum())
    assert f"{expected} episodes selected" in page.locator("p.selected").inner_text()
    plot.focus()
    page.keyboard.press("Escape")
    page.locator("p.selected").wait_for(state="detached")
    page.locator(".histogram").first.focus()
    page.keyboard.press("ArrowRight")
    page.locator("p.selected").wait_for()


@pytest.mark.row("UI-2")
def test_the_table_of_episodes_is_sorted_and_moved_in_by_keys(page: Any, place: Place) -> None:
    show(page, place, f"run/{place.first.header['run_id']}?sort=-outcomes.distance_m")
    table = place.first.episodes(["episode_id", "outcomes.distance_m"])
    order = table.sort_by([("outcomes.distance_m", "descending")])["episode_id"].to_pylist()
    assert texts(page, "[role=gridcell] a")[:5] == order[:5]
    page.locator("[role=grid]").focus()
    page.keyboard.press("End")
    assert order[-1] in texts(page, "[role=gridcell] a")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready=episode]")
    number = place.first.ledger["episode_id"].to_pylist().index(order[-2])
    assert page.url.endswith(f"#/episode/{place.first.header['run_id']}/{number}")


@pytest.mark.row("UI-2")
def test_two_runs_are_compared_and_flips_lead_to_both(page: Any, place: Place) -> None:
    first, second = (run.header["run_id"] for run in (place.first, place.second))
    show(page, place, "runs")
    for run in (first, second):
        page.locator(f"tr[data-run='{run}'] input").check()
    page.get_by_role("link", name="Compare the two chosen runs").click()
    page.wait_for_selector("html[data-ready=compare]")
    page.locator(".verdict-line").wait_for()
    assert "over 120 pairs of episodes" in page.locator(".verdict-line").inner_text()
    scores = [run.episodes(["outcomes.score"])["outcomes.score"].to_numpy() for run in (place.first, place.second)]
    counts = [
        int((scores[1] > scores[0]).sum()),
        int((scores[1] < scores[0]).sum()),
        int((scores[1] == scores[0]).sum()),
    ]
    assert texts(page, ".flips dd") == [str(count) for count in counts]
    page.get_by_label("Show").select_option("worse")
    assert f"{counts[1]} of 120 pairs" in page.locator("main").inner_text()
    page.locator("tr[data-part=merge] a").click()
    until(page, lambda: set(texts(page, "section[aria-label=Pairs] tbody td:nth-child(2)")) == {"merge"})
    link = page.locator("section[aria-label=Pairs] tbody a").first
    assert re.search(rf"#/episode/{first}/\d+\?with={second}", link.get_attribute("href"))


@pytest.mark.row("UI-2")
def test_a_training_shows_curves_with_its_evaluations(page: Any, place: Place) -> None:
    show(page, place, "runs")
    page.get_by_role("link", name="training").click()
    page.wait_for_selector("html[data-ready=training]")
    chart = page.locator("figure", has_text="score").first
    assert chart.locator("polyline.curve").count() == 1
    link = chart.locator("a").first
    assert "step 200,000" in link.get_attribute("aria-label")
    assert link.get_attribute("href").startswith("#/run/")
    show(page, place, "history?suite=town")
    assert page.locator("figure a").count() == 3


@pytest.mark.row("UI-2")
def test_sensitivity_shows_rates_by_factor(page: Any, place: Place) -> None:
    show(page, place, f"sensitivity/{place.first.header['run_id']}")
    assert {"class", "grip", "haste", "partner"} <= {text.lower() for text in texts(page, "figcaption")}
    page.locator("figure", has_text="class").locator("a", has_text="merge").click()
    page.wait_for_selector("html[data-ready=run]")
    assert "20 episodes selected" in page.locator("p.selected").inner_text()


@pytest.mark.row("UI-2")
def test_realism_shows_likelihoods_and_histograms(page: Any, served: Any, tmp_path: Path) -> None:
    run = rollouts(tmp_path)
    page.goto(f"{served(tmp_path)}#/run/{run.header['run_id']}")
    page.get_by_role("link", name="Realism").click()
    page.wait_for_selector("html[data-ready=realism]")
    figures = {figure["name"]: figure for figure in (run.metrics or {})["figures"]}
    row = page.locator("tr[data-figure=linear_speed_likelihood]").inner_text()
    assert f"{figures['linear_speed_likelihood']['value']:.3f}" in row
    assert page.locator("figure", has_text="linear speed").locator("polyline.curve").count() == 2


@pytest.mark.row("UI-2")
@pytest.mark.parametrize("path", ["runs", "run/KEY", "compare/KEY/OTHER", "history", "sensitivity/KEY"])
def test_pages_fit_a_narrow_screen_and_every_control_has_a_name(page: Any, place: Place, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    keys = {"KEY": place.first.header["run_id"], "OTHER": place.second.header["run_id"]}
    show(page, place, re.sub("KEY|OTHER", lambda found: keys[found[0]], path))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select, [tabindex='0']")].filter((element) =>
          !(element.textContent.trim() || element.getAttribute("aria-label") || element.labels?.length || element.title)
        ).map((element) => element.outerHTML)"""
    )
    assert unnamed == []
