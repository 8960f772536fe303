"""The page of an episode in a real browser: playback, seeking, events, plots, and links that restore all of it."""

from __future__ import annotations

import re
import shlex
import shutil
from base64 import b64decode
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from roadworthy.config import Layer, resolve
from roadworthy.record import Run, RunWriter
from roadworthy.record.run import trace_path
from roadworthy.record.traces import Trace, TraceEvent
from roadworthy.render.resimulate import Resimulation
from roadworthy.render.video import Mp4Writer
from roadworthy.sim.config import SimConfig
from tests.record.made_up import trace as made_up_trace
from tests.viewer.drives import recorded_policy, two_policies
from tests.viewer.made_up import HOSTILE, ledger_of, results
from tests.viewer.test_pictures import CLEAR, CONTRAST, PICTURES

KINDS = {
    "fault": (TraceEvent.AT_FAULT, 0),
    "contact": (TraceEvent.COLLISION, TraceEvent.AT_FAULT),
    "off_road": (TraceEvent.OFF_ROAD, 0),
    "red_light": (TraceEvent.RED_LIGHT, 0),
    "stop_sign": (TraceEvent.STOP_SIGN, 0),
    "goal": (TraceEvent.GOAL, 0),
}


@dataclass(frozen=True)
class Place:
    """A server with runs, and one of them with a trace of its first episode."""

    address: str
    run: Run
    key: str
    trace: Trace
    hostile: Run
    videos: Run


@pytest.fixture(scope="module")
def place(served: Any, tmp_path_factory: pytest.TempPathFactory) -> Place:
    _, run = two_policies(tmp_path_factory.getbasetemp())  # doing nothing has more events
    root = tmp_path_factory.mktemp("others")
    key = run.folder.name.rpartition("-")[2]
    trace = run.trace(run.ledger["episode_id"][0].as_py())
    return Place(served(run.folder.parents[1], root), run, key, trace, hostile_run(root), video_run(root))


def hostile_run(root: Path) -> Run:
    """Return a run whose ids hold markup, with a trace."""
    (row,) = results(1)
    name = f"{HOSTILE}-r0"
    episode = replace(row.episode, episode_id=name, scenario_id=HOSTILE, tags=(HOSTILE,), factors={"partner": HOSTILE})
    agents = tuple(replace(agent, episode_id=name) for agent in row.agents)
    trials = tuple(replace(trial, episode_id=name) for trial in row.trials)
    found = replace(row, episode=episode, agents=agents, trials=trials, trace=smooth(name))
    with RunWriter.start(root, "town", HOSTILE, {"config": {}, "checkpoint": None}, ledger_of([found])) as writer:
        writer.append(found)
    return Run(writer.folder)


def smooth(name: str) -> Trace:
    """Return motion along straight lines in two trials."""
    found = made_up_trace(name, frames=40, agents=3)
    time = np.arange(40, dtype=np.float32)[:, None] * np.ones(3, np.float32)
    rows = 6 * np.arange(3, dtype=np.float32) + 0 * time
    motion = {"x": 0.5 * time, "y": rows, "heading": 0 * time, "speed": 0 * time + 5}
    flags = {"present": time >= 0, "active": time >= 0}
    sizes = {"length": np.full(3, 4.5, np.float32), "width": np.full(3, 2.0, np.float32)}
    return replace(found, extra={"steering": 0.01 * time}, **motion, **flags, **sizes)


def video_run(root: Path) -> Run:
    """Return a run of a Gymnasium environment with videos of two cameras."""
    (row,) = results(1)
    paths = {"front": "videos/0_front.mp4", "wrist": "videos/0_wrist.mp4"}
    found = replace(
        row,
        episode=replace(row.episode, artifacts=paths, artifact_errors={"side": "no such camera"}),
        agents=(),
        trials=(),
    )
    with RunWriter.start(
        root, "robot", "best", {"config": {}, "checkpoint": None, "job": {"name": "robot"}}, ledger_of([found])
    ) as writer:
        for path in paths.values():
            (writer.folder / path).parent.mkdir(exist_ok=True)
            with Mp4Writer(writer.folder / path, 10.0) as film:
                for k in range(20):
                    film.add(np.full((32, 32, 3), 10 * k, np.uint8))
        writer.append(found)
    return Run(writer.folder)


def show(page: Any, place: Place, query: str = "", run: str | None = None, number: int = 0) -> None:
    page.goto("about:blank")
    page.goto(f"{place.address}#/episode/{run or place.key}/{number}{'?' if query else ''}{query}")
    page.wait_for_selector("html[data-ready=episode]")
    if page.locator("canvas.playback-canvas").count():
        page.wait_for_selector("canvas[data-painted]")
        page.locator(".step-plot").first.wait_for()


def frame(page: Any) -> int:
    return int(page.locator("canvas.playback-canvas").get_attribute("data-frame"))


def at_frame(page: Any, number: int) -> None:
    page.wait_for_selector(f"canvas[data-frame='{number}']")


def started(trace: Trace, bit: int, unless: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where an event begins, (F, A): it is there, and was not in the previous frame of the trial."""
    now = ((trace.events & bit) != 0) & ((trace.events & unless) == 0)
    before = np.zeros_like(now)
    before[1:] = (trace.events[:-1] & bit) != 0
    before[trace.trial_starts[:-1]] = False
    return now if bit == TraceEvent.GOAL else now & ~before


@pytest.mark.row("UI-2")
def test_play_advances_at_its_speed_and_pause_stops(page: Any, place: Place) -> None:
    show(page, place, "speed=2")
    assert frame(page) == 0
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_timeout(1000)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.wait_for_timeout(50)
    reached = frame(page)
    assert 8 <= reached <= 26  # 2x of 10 frames per second for a second, on a busy machine
    page.wait_for_timeout(200)
    assert frame(page) == reached
    page.keyboard.press("Home")
    page.get_by_label("Speed", exact=True).select_option("8")
    page.locator(".timeline").focus()
    page.keyboard.press("Space")
    at_frame(page, place.trace.frame_count - 1)  # it ends at the last frame
    page.get_by_role("button", name="Play", exact=True).wait_for()


@pytest.mark.row("UI-2")
def test_the_keyboard_seeks_and_the_address_restores_everything(page: Any, place: Place) -> None:
    show(page, place)
    second = int(place.trace.trial_starts[1])
    last = place.trace.frame_count - 1
    pressed = [("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10), ("End", last), ("2", second)]
    pressed += [
        ("ArrowLeft", second - 1),
        ("Home", 0),
        ("2", second),
        ("ArrowRight", second + 1),
        ("ArrowRight", second + 2),
    ]
    for key, expected in pressed:
        page.keyboard.press(key)
        at_frame(page, expected)
    canvas = page.locator("canvas.playback-canvas")
    assert canvas.get_attribute("data-view") == "follow"
    page.keyboard.press("n")
    page.keyboard.press("+")
    page.keyboard.press(".")
    page.keyboard.press("f")
    assert canvas.get_attribute("data-view") == "free"
    page.keyboard.press("d")
    page.wait_for_timeout(600)
    address = page.url
    assert {f"frame={second + 2}", "ego=1", "speed=2", "zoom=12"} <= set(address.split("?")[1].split("&"))
    before = picture(page)
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("canvas[data-painted]")
    at_frame(page, second + 2)
    page.wait_for_timeout(300)
    assert canvas.get_attribute("data-view") == "free"
    assert page.get_by_label("Speed", exact=True).input_value() == "2"
    assert page.get_by_label("Agent to follow").input_value() == "1"
    assert np.abs(picture(page).astype(int) - before).mean() < 0.5
    page.keyboard.press("m")
    assert canvas.get_attribute("data-view") == "map"
    page.keyboard.press("f")
    assert canvas.get_attribute("data-view") == "follow"
    page.keyboard.press("p")
    assert page.get_by_label("Agent to follow").input_value() == "0"


@pytest.mark.row("UI-2")
def test_the_address_follows_single_frames(page: Any, place: Place) -> None:
    show(page, place)
    for expected in (1, 2, 3):
        page.get_by_role("button", name="One frame forward").click()
        at_frame(page, expected)
    page.wait_for_timeout(600)
    assert "frame=3" in page.url
    page.keyboard.press("ArrowLeft")
    at_frame(page, 2)
    page.wait_for_timeout(600)
    assert "frame=2" in page.url


@pytest.mark.row("UI-2")
def test_the_timeline_and_plots_seek(page: Any, place: Place) -> None:
    show(page, place)
    box = page.locator(".timeline").bounding_box()
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 20)
    page.wait_for_timeout(100)
    assert abs(frame(page) - 0.5 * (place.trace.frame_count - 1)) <= 1
    assert page.locator(".timeline").get_attribute("aria-valuenow") == str(frame(page))
    plot = page.locator("[data-measure=speed] svg")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 30)
    page.wait_for_timeout(100)
    assert frame(page) > 0.85 * place.trace.frame_count
    value = float(re.findall(r"[\d.]+", page.locator("[data-measure=speed] .reading").inner_text())[0])
    assert value == pytest.approx(float(place.trace.speed[frame(page), 0]), abs=0.006)


@pytest.mark.row("UI-2")
def test_events_are_those_of_the_trace(page: Any, place: Place) -> None:
    show(page, place)
    expected = {
        (int(f), int(a), kind)
        for kind, (bit, unless) in KINDS.items()
        for f, a in np.argwhere(started(place.trace, bit, unless))
    }
    assert len({kind for _, _, kind in expected}) >= 3
    marks = page.locator(".event-mark").evaluate_all(
        "(all) => all.map((m) => [m.dataset.position, m.dataset.agent, m.dataset.kind, m.getAttribute('class')])"
    )
    assert {(int(f), int(a), kind) for f, a, kind, _ in marks} == expected
    tones = {
        kind: "bad" if kind in ("fault", "off_road", "red_light") else "good" if kind == "goal" else "middling"
        for kind in KINDS
    }
    assert all(name == f"event-mark {tones[kind]}" for _, _, kind, name in marks)
    order = sorted({f for f, _, _ in expected})
    page.keyboard.press("]")
    at_frame(page, order[0])
    page.keyboard.press("]")
    at_frame(page, order[1])
    page.keyboard.press("[")
    at_frame(page, order[0])
    last = page.locator(".event-link").last
    last.click()
    at_frame(page, order[-1])


@pytest.mark.row("UI-2")
def test_following_keeps_the_ego_in_the_middle_and_dragging_leaves_it(page: Any, place: Place) -> None:
    show(page, place, "zoom=16&frame=20&ego=2")
    orange = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ego').trim()")
    color = np.array([int(orange[k : k + 2], 16) for k in (1, 3, 5)])

    def middle() -> Any:
        shown = picture(page)
        return shown[shown.shape[0] // 2, shown.shape[1] // 2].astype(int)

    assert np.abs(middle() - color).max() < 12
    page.keyboard.press("Shift+ArrowRight")
    at_frame(page, 30)
    assert np.abs(middle() - color).max() < 12
    box = page.locator("canvas.playback-canvas").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 380, box["y"] + 200, steps=3)
    page.mouse.up()
    page.wait_for_timeout(100)
    assert page.locator("canvas.playback-canvas").get_attribute("data-view") == "free"
    assert np.abs(middle() - color).max() >= 12
    shown = picture(page)
    assert np.abs(shown[shown.shape[0] // 2, shown.shape[1] // 2 + 80].astype(int) - color).max() < 12
    page.get_by_role("button", name="Follow", exact=True).click()
    page.wait_for_timeout(100)
    assert np.abs(middle() - color).max() < 12
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.wheel(0, -120)
    page.wait_for_timeout(600)
    assert "zoom=19" in page.url


def picture(page: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the pixels of the canvas, without what is above it."""
    code = page.evaluate("document.querySelector('canvas.playback-canvas').toDataURL().split(',')[1]")
    return np.asarray(Image.open(BytesIO(b64decode(code))).convert("RGB"))


@pytest.mark.row("UI-2")
def test_distances_and_times_to_collision_are_those_of_geometry(page: Any, place: Place) -> None:
    import shapely
    from shapely import affinity

    show(page, place)
    rng = np.random.default_rng(5)
    ranges = [
        (-9, 9),
        (-9, 9),
        (-3, 3),
        (0.5, 4),
        (0.3, 1.5),
        (0, 12),
    ]  # x, y, heading, half the length and width, speed
    boxes = []
    for x, y, heading, half, side, speed in np.stack([rng.uniform(*ends, 60) for ends in ranges], axis=1).tolist():
        cos, sin = float(np.cos(heading)), float(np.sin(heading))
        boxes.append(
            {"x": x, "y": y, "cos": cos, "sin": sin, "half": half, "side": side, "vx": speed * cos, "vy": speed * sin}
        )
    pairs = [(boxes[k], boxes[k + 1]) for k in range(0, 60, 2)]
    found = page.evaluate(
        """async (pairs) => {
          const { boxDistance, touchTime } = await import("/app/playback/measures.js");
          return pairs.map(([a, b]) => [boxDistance(a, b), Math.min(touchTime(a, b), 99)]);
        }""",
        pairs,
    )

    def polygon(box: dict[str, float], time: float) -> Any:
        flat = shapely.box(-box["half"], -box["side"], box["half"], box["side"])
        turn = [
            box["cos"],
            -box["sin"],
            box["sin"],
            box["cos"],
            box["x"] + time * box["vx"],
            box["y"] + time * box["vy"],
        ]
        return affinity.affine_transform(flat, turn)

    times = np.arange(0.0, 6.0, 0.01)
    touched = 0
    for (a, b), (distance, time) in zip(pairs, found, strict=True):
        assert distance == pytest.approx(polygon(a, 0.0).distance(polygon(b, 0.0)), abs=1e-9)
        hits = [t for t in times if polygon(a, t).intersects(polygon(b, t))]
        if hits:
            touched += 1
            assert hits[0] - 0.011 <= time <= hits[0] + 1e-9
        else:
            assert time > 5.9
    assert touched >= 3


@pytest.mark.row("UI-2")
def test_lights_of_open_worlds_show_what_the_simulator_says(page: Any, place: Place) -> None:
    from roadworthy.scenario.pack import Pack

    show(page, place)
    config = resolve(SimConfig, [Layer("run", place.run.header["config"]["env"], is_record=True)]).config
    pack = Pack(place.run.pack)
    simulation = Resimulation(pack, config)
    ledger = place.run.ledger
    for number in range(2):
        scenario, seed = ledger["scenario"][number].as_py(), ledger["seed"][number].as_py()
        expected = simulation.light_states(scenario, seed, 500)
        found = page.evaluate(
            """async ([key, scenario, seed, dt]) => {
              const { Source } = await import("/app/source.js");
              const { Lights } = await import("/app/playback/lights.js");
              const table = await new Source("/").table(`data/run/${key}/scenario/${scenario}.cols`);
              const lights = new Lights(table, { isOpen: true, start: 0, seed: BigInt(seed), dt });
              return Array.from({ length: lights.count }, (_, light) =>
                Array.from({ length: 500 }, (_, step) => lights.state(light, step)));
            }""",
            [place.key, scenario, str(seed), pack[scenario].dt],
        )
        assert expected.size
        assert len(np.unique(expected)) == 3
        np.testing.assert_array_equal(found, expected)


@pytest.mark.row("SEC-2")
def test_hostile_ids_are_text(page: Any, place: Place) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(page, place, run=place.hostile.folder.name.rpartition("-")[2])
    assert HOSTILE in page.locator("h1").inner_text()
    assert HOSTILE in page.locator("main").inner_text()
    assert page.locator("main img, main script").count() == 0
    assert "taken" not in page.title().split("<")[0]
    page.get_by_role("button", name="Copy replay command").click()
    page.locator(".copied", has_text="copied").wait_for()
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[:2] == ["roadworthy", "replay"]
    assert words[3:] == [f"{HOSTILE}-r0"]
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_timeout(100)
    assert page.evaluate("navigator.clipboard.readText()") == page.url


@pytest.mark.row("UI-2")
def test_trials_are_drawn_over_each_other_on_request(page: Any, place: Place) -> None:
    show(page, place, "view=map&frame=40")
    before = picture(page)
    page.get_by_label("all trials over each other").check()
    page.wait_for_timeout(600)
    assert "trials=all" in page.url
    assert not np.array_equal(picture(page), before)


@pytest.mark.row("UI-2")
def test_what_the_policy_did_is_plotted_and_drawn_where_it_is_recorded(
    page: Any, served: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = recorded_policy(tmp_path_factory.getbasetemp())
    (artifact,) = [artifact for artifact in run.artifacts if artifact.name == "policy"]
    number = run.ledger["episode_id"].to_pylist().index(artifact.episode_id)
    trace = run.trace(str(artifact.episode_id))
    address, key = served(run.folder.parents[1]), run.folder.name.rpartition("-")[2]
    page.goto(f"{address}#/episode/{key}/{number}?frame=20&ego=1&zoom=14")
    page.locator("[data-measure=value]").wait_for()
    assert page.locator("[data-measure=reward], [data-measure=entropy], [data-measure=probability0]").count() == 3
    before = picture(page)
    page.get_by_label("what the policy observes").check()
    page.wait_for_timeout(100)
    assert (picture(page) != before).any(axis=2).sum() > 200
    partners = page.evaluate(
        """async ([key, number]) => {
          const { Source } = await import("/app/source.js");
          const { PolicyRecord } = await import("/app/playback/policy_record.js");
          const record = new PolicyRecord(await new Source("/").table(`data/run/${key}/policy/${number}.cols`));
          return record.entries(20, 1, "partners").map(({ x, y }) => [x, y]);
        }""",
        [key, number],
    )
    turn = float(trace.heading[20, 1])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    places = np.array(partners) @ rotation.T + np.array([trace.x[20, 1], trace.y[20, 1]])
    others = [a for a in range(trace.agent_count) if a != 1 and trace.present[20, a]]
    motion = np.stack([trace.x[20, others], trace.y[20, others]], axis=1)
    apart = np.hypot(*(places[:, None] - motion[None]).transpose(2, 0, 1)).min(axis=1)
    assert len(apart)
    assert apart.max() < 0.1, "what is observed is where the other agents are"
    other = 1 - number
    page.goto(f"{address}#/episode/{key}/{other}")
    page.wait_for_selector(f"html[data-ready=episode] h1:has-text('{run.ledger['episode_id'][other].as_py()}')")
    page.locator("[data-measure=speed]").wait_for()
    assert page.locator("[data-measure=value]").count() == 0


@pytest.mark.row("UI-2")
def test_an_episode_without_readable_motion_still_shows_its_outcomes(
    page: Any, place: Place, bundled: Any, served: Any, tmp_path: Path
) -> None:
    page.goto(f"{bundled(place.run.folder, is_light=True)}#/episode/{place.key}/0")
    page.locator("text=this bundle was written without it").wait_for()
    assert page.locator("tr[data-column='outcomes.score']").count() == 1
    copy = tmp_path / place.run.folder.name
    shutil.copytree(place.run.folder, copy)
    (copy / trace_path(place.trace.episode_id)).write_bytes(b"nothing")
    page.goto(f"{served(tmp_path)}#/episode/{place.key}/0")
    page.locator("text=this is not a trace").wait_for()
    assert page.locator("tr[data-column='outcomes.score']").count() == 1
    page.problems[:] = [text for text in page.problems if "404" not in text]  # the browser reports every such answer


@pytest.mark.row("UI-2")
def test_videos_of_a_gymnasium_episode_are_shown_by_camera(page: Any, place: Place) -> None:
    show(page, place, run=place.videos.folder.name.rpartition("-")[2])
    films = page.locator("figure.film video")
    assert [film.get_attribute("data-camera") for film in page.locator("figure.film").all()] == ["front", "wrist"]
    assert films.evaluate_all("(all) => all.map((film) => new URL(film.src).pathname.split('/').at(-1))") == [
        "0_front.mp4",
        "0_wrist.mp4",
    ]
    assert "side could not be made: no such camera" in page.locator("main").inner_text()
    assert page.locator("canvas.playback-canvas").count() == 0


@pytest.mark.row("UI-2")
def test_the_page_is_readable_narrow_and_dark_and_every_control_has_a_name(page: Any, place: Place) -> None:
    other = place.run.header["run_id"]
    first = next(
        folder
        for folder in place.run.folder.parent.iterdir()
        if "expert" in folder.name and "0000" not in folder.name.rpartition("-")[2]
    )
    show(page, place, f"with={other}&frame=32&ego=0&zoom=11", run=first.name.rpartition("-")[2])
    for width, height, scheme in ((1280, 900, "light"), (1280, 900, "dark"), (360, 780, "light")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(150)
        contrast, text = page.evaluate(CONTRAST)
        assert contrast >= CLEAR, (scheme, contrast, text)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if PICTURES and width == 1280 and scheme == "light":
            shown = Image.open(BytesIO(page.screenshot())).convert("RGB")
            shown.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
                Path(PICTURES) / "viewer-episode.png", optimize=True
            )
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select, [tabindex='0']")].filter((element) =>
          !(element.textContent.trim() || element.getAttribute("aria-label") || element.labels?.length || element.title)
        ).map((element) => element.outerHTML)"""
    )
    assert unnamed == []
