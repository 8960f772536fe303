"""Reports: pages are complete and self-contained."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from roadworthy.errors import UsageError
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.metrics.roll_up import Part, roll_up
from roadworthy.record import EpisodeResult, Run
from roadworthy.report import worst_first, write_report
from roadworthy.report.charts import small_bar_px
from roadworthy.report.words import counted, interval_of, plain_name, value_of
from tests.metrics.driven import episode
from tests.report.made_up import Page, drive, failure, make_run, page_of


def mixed_run(root: Path, count: int = 40, trials: int = 1, **changes: object) -> Run:
    """A run with good and bad episodes of two classes."""
    draw = random.Random(1)
    results = [
        drive(k, [[float(draw.random() < 0.7) for _ in range(trials)] for _ in range(3)], ("merge", "cut_in")[k % 2 :])
        for k in range(count)
    ]
    return make_run(root, results, **changes)  # type: ignore[arg-type]


@pytest.mark.row("STAT-1")
@pytest.mark.parametrize("trials", [1, 3])
def test_every_figure_is_there_with_its_interval_or_why_it_has_none_and_with_what_it_counts(
    tmp_path: Path, trials: int
) -> None:
    run = mixed_run(tmp_path / "runs", trials=trials)
    text = page_of(tmp_path, run).text.lower()
    assert run.metrics is not None
    notes = set()
    for figure in run.metrics["figures"]:
        place = f"{plain_name(figure['name'])} ".lower()
        assert place in text, figure["name"]
        assert f"{value_of(figure)} {interval_of(figure)} {counted(figure)}".lower() in text, figure["name"]
        notes.add(figure["note"])
    assert len(notes) > 1, "some figures have an interval and some have none"


def test_a_page_is_self_contained(tmp_path: Path) -> None:
    runs = [mixed_run(tmp_path / "runs"), mixed_run(tmp_path / "runs", trials=3, evaluator="adaptation")]
    for page in (page_of(tmp_path, runs[0]), page_of(tmp_path, *runs)):
        ids = page.attributes("id")
        assert len(ids) == len(set(ids))
        links = page.attributes("href")
        assert links
        assert all(link.startswith("#") and link[1:] in ids for link in links)
        assert page.attributes("src") == []
        assert {name for name, _ in page.elements} & {"link", "iframe", "object", "embed", "base"} == set()
    style = (tmp_path / "report.html").read_text(encoding="utf-8").partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_text_of_others_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;"
    results = [drive(0, [[1.0]], (evil,)), drive(1, [[0.0]], ("merge",)), failure(2, f"{evil}\n{evil}")]
    run = make_run(tmp_path / "runs", results, evaluator="town", policy_spec=evil, origins={"type": evil})
    run.add_artifact(None, "sink_x", error=evil)
    page = page_of(tmp_path, run)
    assert [name for name, _ in page.elements].count("script") == 1
    assert not any("onerror" in attributes for _, attributes in page.elements)
    assert page.text.count("<script>alert(1)</script>") >= 4


def test_episodes_come_worst_first(tmp_path: Path) -> None:
    scores = [0.5, 1.0, 0.0, 1.0, 0.5]
    results = [drive(k, [[1.0], [0.0]] if score == 0.5 else [[score]] * 2) for k, score in enumerate(scores)]
    run = make_run(tmp_path / "runs", results)
    assert [scores[int(id.split("-")[1])] for id in worst_first(run)] == sorted(scores)
    text = page_of(tmp_path, run).text
    table = text[text.index("All 5 episodes") :]
    places = [table.index(id) for id in worst_first(run)]
    assert places == sorted(places)
    assert "collision 1 of 2" in table
    assert "clean" in table


@pytest.mark.row("CL-1")
def test_collisions_are_shown_by_fault(tmp_path: Path) -> None:
    def crash(number: int, at_fault: float) -> EpisodeResult:
        figures = {"score": 0.5, "collisions": 1.0, "at_fault_collisions": at_fault, "distance_m": 9.0}
        return episode(f"street-{number:03}", [[figures]], outcomes={"score": 0.5})

    text = page_of(tmp_path, make_run(tmp_path / "runs", [crash(0, 1.0), crash(1, 0.0)])).text
    assert "at-fault collisions 50.0%" in text, "the headline"
    table = text[text.index("All 2 episodes") :]
    mine, other = table[table.index("street-000") : table.index("street-001")], table[table.index("street-001") :]
    assert "at-fault collision" in mine
    assert "not at fault" not in mine
    assert "collision, not at fault" in other
    assert "at-fault collision" not in other


def test_episodes_without_a_result_are_listed_with_their_reasons(tmp_path: Path) -> None:
    errors = ("killed for memory\nlast words", "killed for memory", "hung")
    results = [drive(0, [[1.0]]), *(failure(1 + k, error) for k, error in enumerate(errors))]
    text = page_of(tmp_path, make_run(tmp_path / "runs", results)).text
    assert "3 episodes of 4 have no result" in text
    assert "killed for memory 2 hung 1" in text
    assert "last words" in text
    assert "3 scenarios have fewer completed episodes than planned: street-001, street-002, street-003." in text


@pytest.mark.row("REC-4")
def test_artifact_errors_are_listed_and_the_figures_stand(tmp_path: Path) -> None:
    run = mixed_run(tmp_path / "runs")
    before = page_of(tmp_path, run).text.split("Figures figure")[1].split("Episodes, worst first All")[0]
    run.add_artifact("street-003-r0", "video_bev", error="the encoder is missing")
    run.add_artifact(None, "sink_wandb", error="no network")
    after = page_of(tmp_path, run).text
    assert "street-003-r0 video bev the encoder is missing" in after
    assert "the run sink wandb no network" in after
    assert len(before) > 1000
    assert before in after


def test_a_failed_run_shows_its_error_and_no_figures(tmp_path: Path) -> None:
    def fail(writer: object) -> None:
        try:
            raise RuntimeError("the policy is broken\nin two ways")
        except RuntimeError as error:
            writer.fail(error)  # type: ignore[attr-defined]

    text = page_of(tmp_path, make_run(tmp_path / "runs", [drive(0, [[1.0]])], end=fail, owed=3)).text
    assert "The run is failed: 1 of 4 episodes have ended. It has no figures" in text
    assert "the policy is broken" in text
    assert "Traceback (most recent call last)" in text
    assert "95% interval" not in text
    assert "street-000-r0" in text


def test_a_run_that_was_cut_short_shows_no_figure_of_what_had_finished(tmp_path: Path) -> None:
    results = [drive(k, [[1.0]]) for k in range(5)]
    text = page_of(tmp_path, make_run(tmp_path / "runs", results, end=lambda w: w.interrupt(), owed=5)).text
    assert "The run is interrupted: 5 of 10 episodes have ended" in text
    assert "95% interval" not in text


def test_a_run_without_planned_episodes_has_a_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", [], end=lambda w: w.fail("no such pack"), origins={})
    text = page_of(tmp_path, run).text
    assert "no such pack" in text
    assert "it ended before its episodes were planned" in text


def test_every_setting_is_there_with_where_it_came_from(tmp_path: Path) -> None:
    text = page_of(tmp_path, make_run(tmp_path / "runs", [drive(0, [[1.0]])])).text
    assert "scenarios town.pack --set" in text
    assert "env.goal.radius_m 2 the checkpoint" in text
    assert "env.dt 0.1 default" in text
    assert "worlds 32 default" in text
    for told in ("ab" * 32, "1,234,567 steps, epoch 12", "numpy", "/models/best"):
        assert told in text


def test_the_page_says_whether_later_trials_go_better(tmp_path: Path) -> None:
    better = make_run(tmp_path / "a", [drive(k, [[float(k % 4 == 0), 1.0]]) for k in range(60)])
    worse = make_run(tmp_path / "b", [drive(k, [[1.0, float(k % 4 == 0)]]) for k in range(60)])
    same = make_run(tmp_path / "c", [drive(k, [[float(k % 2), float(k // 2 % 2)]]) for k in range(60)])
    few = make_run(tmp_path / "d", [drive(k, [[0.0, 1.0], [1.0, 1.0]]) for k in range(2)])
    assert "Later trials go better (gain of trial 2 over trial 1: +75.0 pts" in page_of(tmp_path, better).text
    assert "Later trials go worse (gain of trial 2 over trial 1: -75.0 pts" in page_of(tmp_path, worse).text
    assert "no difference between the last trial and the first" in page_of(tmp_path, same).text
    assert "not enough data to say whether later trials go better" in page_of(tmp_path, few).text


@pytest.mark.row("EVAL-9")
def test_several_runs_share_a_page_with_a_table_of_all_on_top(tmp_path: Path) -> None:
    good = make_run(tmp_path, [drive(k, [[1.0]]) for k in range(4)], evaluator="merge")
    half = make_run(
        tmp_path,
        [drive(k, [[float(k % 2)]]) for k in range(4)],
        evaluator="cut_in",
        carried_out={"summary": {"weight": 3.0, "figure": "score"}},
    )
    text = page_of(tmp_path, good, half).text
    top = text[: text.index("Before you believe it")]
    assert top.index("merge 4") < top.index("cut_in 4")
    expected = roll_up([Part("merge", "score", 1.0, 1.0), Part("cut_in", "score", 3.0, 0.5)])["value"]
    assert f"eval_summary {expected:.4f}" in top
    broken = make_run(tmp_path, [], evaluator="hard_stop", end=lambda writer: writer.fail("no such pack"))
    text = page_of(tmp_path, good, half, broken).text
    assert "eval_summary no value, because these have none: hard_stop" in text
    assert "3 runs: 2 completed, 1 failed" in text


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs at least one run"):
        write_report([], tmp_path / "report.html")


def test_reading_a_run_needs_neither_the_simulator_nor_torch() -> None:
    code = (
        "import sys, roadworthy.report\n"
        "print([m for m in sys.modules if m in ('torch', 'numba') or m.startswith('roadworthy.sim')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_hundred_episodes_with_pictures_make_a_page_of_less_than_three_megabytes(tmp_path: Path) -> None:
    run = mixed_run(tmp_path / "runs", count=100)
    folder = run.folder / "report"
    folder.mkdir()
    noise = random.Random(0)
    for id in worst_first(run):
        path = folder / f"{id}.png"
        path.write_bytes(noise.randbytes(40_000))
        run.add_artifact(id, "filmstrip", path)
    path = write_report([run], tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    page = Page(path.read_text(encoding="utf-8"))
    shown = [attributes["alt"] for name, attributes in page.elements if name == "img"]
    assert shown == [f"moments of episode {id}" for id in worst_first(run)[: len(shown)]]
    assert len(shown) > 10


def test_videos_are_in_the_page_as_far_as_there_is_room_and_linked_beyond(tmp_path: Path) -> None:
    run = mixed_run(tmp_path / "runs")
    (run.folder / "videos").mkdir()
    for id in worst_first(run)[:3]:
        path = run.folder / "videos" / f"{id} bev.mp4"
        path.write_bytes(bytes(3000))
        run.add_artifact(id, "video_bev", path)
    (tmp_path / "elsewhere").mkdir()
    page = page_of(tmp_path / "elsewhere", run, video_bytes=10_000)
    videos = [attributes["src"] or "" for name, attributes in page.elements if name == "video"]
    assert [video.partition(";")[0] for video in videos] == ["data:video/mp4"] * 2
    (link,) = [link for link in page.attributes("href") if not link.startswith("#")]
    assert (tmp_path / "elsewhere" / link.replace("%20", " ")).read_bytes() == bytes(3000)


@pytest.mark.row("CL-4")
def test_egos_that_start_at_their_goal_are_counted_and_marked(tmp_path: Path) -> None:
    usual = drive(0, [[1.0]])
    free = episode("street-001", [[{"starts_at_goal": 1.0, "score": None}]], outcomes={"starts_at_goal": 1.0})
    text = page_of(tmp_path, make_run(tmp_path / "runs", [usual, free])).text
    assert "1 ego started at the goal, where every policy succeeds" in text
    assert "starts at its goal" in text
    text = page_of(tmp_path / "without", make_run(tmp_path / "others", [usual])).text
    assert "at the goal, where" not in text
    assert "starts at its goal" not in text


def test_episodes_of_other_environments_have_no_words_of_driving(tmp_path: Path) -> None:
    results = [episode(f"pick-{k}", [], outcomes={"success": float(k > 2), "time_s": 3.0 + k}) for k in range(12)]
    run = make_run(
        tmp_path / "runs",
        results,
        evaluator="pick",
        end=lambda writer: writer.seal(outcome_metrics),
        config={"environment": "table_top"},
        carried_out={},
        job={"environment": "table_top"},
    )
    text = page_of(tmp_path, run).text
    assert "12 episodes ·" in text
    assert "success 75.0%" in text.lower()
    for word in ("scenario", "ego", "collision", "off road", "clean", "drive", "co-player", "what happened"):
        assert word not in text.lower(), word


def test_a_run_without_its_references_says_so(tmp_path: Path) -> None:
    settings = {"worlds": 32, "summary": {"weight": 1.0, "figure": "score"}}
    missing = "no reference runs (floor and ceiling) beside this run"
    for number, (references, is_told) in enumerate(((None, True), (["zero"], True), ([], False))):
        changes = {"carried_out": {**settings, "references": references}}
        run = make_run(tmp_path / str(number), [drive(0, [[1.0]])], **changes)
        assert (missing in page_of(tmp_path, run).text) is is_told


@pytest.mark.parametrize("columns", range(1, 8))
def test_tables_with_several_figures_per_row_fit_a_page(columns: int) -> None:
    value_px, class_px = 88.0, 230.0
    assert columns * (small_bar_px(columns) + value_px) + class_px <= 74 * 15 or columns > 6
