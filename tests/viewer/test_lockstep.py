"""Two policies play one episode in lockstep, and the page finds where they part."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from roadworthy.record import Run
from roadworthy.record.traces import Trace
from tests.viewer.drives import altered, moved, two_policies

APART_M = 1e-3
CLEARLY_APART_M = 0.5


@dataclass(frozen=True)
class Place:
    """A server with the runs of two policies."""

    address: str
    first: Run
    second: Run


@pytest.fixture(scope="module")
def place(served: Any, tmp_path_factory: pytest.TempPathFactory) -> Place:
    first, second = two_policies(tmp_path_factory.getbasetemp())
    return Place(served(first.folder.parents[1]), first, second)


def show(page: Any, place: Place, other: Run, number: int = 0, more: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{place.address}#/episode/{key(place.first)}/{number}?with={key(other)}{more}")
    page.wait_for_selector("html[data-ready=episode]")
    page.wait_for_selector("canvas[data-painted]")


def key(run: Run) -> str:
    return run.folder.name.rpartition("-")[2]


def parting(one: Trace, two: Trace) -> tuple[int, int] | None:
    """Return the first frame in which the traces differ and the first agent that does, from the definition."""
    start = 0
    for (a, a_end), (b, b_end) in zip(
        pairwise(one.trial_starts.tolist()), pairwise(two.trial_starts.tolist()), strict=True
    ):
        length = min(a_end - a, b_end - b)
        first, second = slice(a, a + length), slice(b, b + length)
        x, y = (getattr(one, name)[first].astype(float) - getattr(two, name)[second] for name in "xy")
        both = one.present[first] & two.present[second]
        differs = (one.present[first] != two.present[second]) | (both & (one.roles == 0) & (np.hypot(x, y) > APART_M))
        if differs.any():
            frame = int(np.flatnonzero(differs.any(axis=1))[0])
            return start + frame, int(np.flatnonzero(differs[frame])[0])
        start += max(a_end - a, b_end - b)
    return None


def clearly_apart(one: Trace, two: Trace) -> tuple[int, int] | None:
    """Return the first frame in which an ego is over 0.5 m from its counterpart, and the first such ego."""
    start = 0
    for (a, a_end), (b, b_end) in zip(
        pairwise(one.trial_starts.tolist()), pairwise(two.trial_starts.tolist()), strict=True
    ):
        length = min(a_end - a, b_end - b)
        x, y = (getattr(one, name)[a : a + length].astype(float) - getattr(two, name)[b : b + length] for name in "xy")
        both = one.present[a : a + length] & two.present[b : b + length]
        places = np.argwhere(both & (one.roles == 0) & (np.hypot(x, y) > CLEARLY_APART_M))
        if len(places):
            return start + int(places[0, 0]), int(places[0, 1])
        start += max(a_end - a, b_end - b)
    return None


def found(page: Any) -> tuple[int, int]:
    note = page.locator(".parting-note")
    return int(note.get_attribute("data-frame")), int(note.get_attribute("data-agent"))


@pytest.mark.row("UI-2")
@pytest.mark.parametrize("number", [0, 1])
def test_the_first_divergence_is_that_of_numpy(page: Any, place: Place, number: int) -> None:
    episode = place.first.ledger["episode_id"][number].as_py()
    expected = parting(place.first.trace(episode), place.second.trace(episode))
    assert expected is not None
    show(page, place, place.second, number)
    assert found(page) == expected
    mark = page.locator(".timeline .parting-mark")
    assert int(mark.get_attribute("data-position")) == expected[0]


@pytest.mark.row("UI-2")
@pytest.mark.parametrize("number", [0, 1])
def test_half_a_meter_apart_is_where_numpy_finds_it(page: Any, place: Place, number: int) -> None:
    episode = place.first.ledger["episode_id"][number].as_py()
    one, two = place.first.trace(episode), place.second.trace(episode)
    first, expected = parting(one, two), clearly_apart(one, two)
    assert first is not None
    assert expected is not None
    assert expected[0] > first[0]
    show(page, place, place.second, number)
    note = page.locator(".parting-note")
    assert (int(note.get_attribute("data-apart")), int(note.get_attribute("data-apart-agent"))) == expected
    starts = [0, *np.cumsum(np.maximum(np.diff(one.trial_starts), np.diff(two.trial_starts)))]
    seconds = [(at - max(s for s in starts if s <= at)) * one.dt for at in (first[0], expected[0])]
    assert f"differ from {seconds[0]:.1f} s on, 0.5 m apart at {seconds[1]:.1f} s" in note.inner_text()
    assert page.locator(".timeline .apart-mark").get_attribute("data-position") == str(expected[0])
    page.locator("button[data-apart]").click()
    page.wait_for_selector(f"canvas[data-frame='{expected[0]}']")
    page.keyboard.press("Home")
    page.wait_for_selector("canvas[data-frame='0']")
    page.keyboard.press("g")
    page.wait_for_selector(f"canvas[data-frame='{expected[0]}']")


@pytest.mark.row("UI-2")
def test_half_a_meter_is_of_egos_in_both_and_g_goes_to_the_divergence_without_it(page: Any, place: Place) -> None:
    trace = place.first.trace(place.first.ledger["episode_id"][0].as_py())
    late = int(trace.trial_starts[1]) + 7
    present = trace.present.copy()
    present[5:9, 2] = False
    runs = {
        "0000dddd": (lambda t: moved(moved(t, 11, 1, 0.3), late, 2, 0.6), (late, 2)),
        "0000eeee": (lambda t: replace(moved(moved(t, 5, 2, 0.9), 9, 2, -0.9), present=present), None),
        "0000ffff": (lambda t: moved(t, 11, 1, 0.45), None),
    }
    for name, (change, expected) in runs.items():
        other = altered(place.first, name, change)
        changed = other.trace(place.first.ledger["episode_id"][0].as_py())
        assert clearly_apart(trace, changed) == expected
        first = parting(trace, changed)
        assert first is not None
        page.wait_for_timeout(600)  # folders are read again after half a second
        show(page, place, other, more="&frame=0")
        apart = page.locator(".parting-note").get_attribute("data-apart")
        assert apart == ("" if expected is None else str(expected[0]))
        marks = page.locator(".apart-mark, button[data-apart]").count()
        assert marks == (0 if expected is None else 2)
        assert found(page) == first
        page.keyboard.press("g")
        page.wait_for_selector(f"canvas[data-frame='{(expected or first)[0]}']")


@pytest.mark.row("UI-2")
def test_small_late_and_missing_differences_are_found(page: Any, place: Place) -> None:
    episode = place.first.ledger["episode_id"][0].as_py()
    trace = place.first.trace(episode)
    late = int(trace.trial_starts[1]) + 7
    present = trace.present.copy()
    present[late + 3, trace.agent_count - 1] ^= True
    runs = {
        "0000aaaa": (lambda t: moved(t, 41, 2, 0.0015), (41, 2)),
        "0000bbbb": (lambda t: replace(moved(t, 30, 1, 0.0005), present=present), (late + 3, trace.agent_count - 1)),
        "0000cccc": (lambda t: moved(t, 30, 1, 0.0005), None),
    }
    for name, (change, expected) in runs.items():
        other = altered(place.first, name, change)
        assert parting(trace, other.trace(episode)) == expected
        page.wait_for_timeout(600)  # folders are read again after half a second
        show(page, place, other)
        if expected is None:
            assert "never part" in page.locator(".parting-note").inner_text()
            assert page.locator(".parting-mark").count() == 0
        else:
            assert found(page) == expected


@pytest.mark.row("UI-2")
def test_the_other_run_is_a_ghost_from_the_divergence_on(page: Any, place: Place) -> None:
    show(page, place, place.second, more="&frame=0")
    canvas = page.locator("canvas.playback-canvas")
    frame, _ = found(page)
    assert canvas.get_attribute("data-parted") == "false"
    page.locator("button[data-parting]").click()
    page.wait_for_selector(f"canvas[data-frame='{frame}'][data-parted=true]")
    page.goto("about:blank")
    show(page, place, place.second, more="&frame=50&zoom=14&ego=0")
    assert pixels(page, "--ghost") > 60
    page.goto(f"{place.address}#/episode/{key(place.first)}/0?frame=50&zoom=14&ego=0")
    page.locator(".parting-note").wait_for(state="detached")
    page.wait_for_selector("canvas[data-painted]")
    page.wait_for_timeout(100)
    assert pixels(page, "--ghost") == 0


def pixels(page: Any, color: str) -> int:
    """Return the number of pixels of the picture that have nearly a color of the style sheet."""
    return int(
        page.evaluate(
            """(name) => {
              const canvas = document.querySelector("canvas.playback-canvas");
              const code = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
              const wanted = [1, 3, 5].map((at) => parseInt(code.slice(at, at + 2), 16));
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              let count = 0;
              for (let k = 0; k < data.length; k += 4) {
                if (wanted.reduce((sum, part, c) => sum + Math.abs(data[k + c] - part), 0) < 12) count++;
              }
              return count;
            }""",
            color,
        )
    )


@pytest.mark.row("UI-2")
def test_plots_and_outcomes_show_both_runs(page: Any, place: Place) -> None:
    show(page, place, place.second, more="&frame=20&ego=1")
    speed = page.locator("[data-measure=speed]")
    speed.wait_for()
    assert speed.locator("path.curve").count() == 2
    episode = place.first.ledger["episode_id"][0].as_py()
    expected = [run.trace(episode).speed[20, 1] for run in (place.first, place.second)]
    values = [float(text) for text in re.findall(r"[\d.]+", speed.locator(".reading").inner_text())]
    np.testing.assert_allclose(values, expected, atol=0.006)
    cells = page.locator("tr[data-column='outcomes.score'] td").all_inner_texts()
    scores = [run.episodes(["outcomes.score"])["outcomes.score"][0].as_py() for run in (place.first, place.second)]
    assert cells == [f"{100 * score:.1f}%" for score in scores]


@pytest.mark.row("UI-2")
def test_another_run_is_chosen_on_the_page(page: Any, place: Place) -> None:
    page.goto(f"{place.address}#/episode/{key(place.first)}/1")
    page.wait_for_selector("html[data-ready=episode]")
    page.get_by_label("In lockstep with").select_option(key(place.second))
    page.locator(".parting-note").wait_for()
    assert f"with={key(place.second)}" in page.url


@pytest.mark.row("UI-2")
def test_a_bundle_plays_in_lockstep_too(page: Any, place: Place, bundled: Any) -> None:
    address = bundled(place.first.folder, place.second.folder)
    page.goto(f"{address}#/episode/{key(place.first)}/0?with={key(place.second)}")
    page.wait_for_selector("canvas[data-painted]")
    episode = place.first.ledger["episode_id"][0].as_py()
    assert found(page) == parting(place.first.trace(episode), place.second.trace(episode))
