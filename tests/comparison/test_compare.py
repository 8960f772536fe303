"""Comparisons: differences with verdicts, flips, parts, missing data, and several runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import roadworthy as rw
from roadworthy.errors import UsageError
from roadworthy.record import Run
from tests.comparison.made_up import Made, made_run
from tests.metrics.driven import episode
from tests.report.made_up import drive, failure, make_run


def grasps(root: Path, values: Sequence[float | str | None], policy: str = "best", **changes: object) -> Run:
    made = [
        Made(
            f"s{k:03}",
            {"success": float(v), "time_s": 5.0 + v} if isinstance(v, int | float) else v,
            factors={"light": k / len(values), "object": "cube" if k % 2 else "ball"},
            tags=["pick" if k % 3 else "place"],
            **changes,  # type: ignore[arg-type]
        )
        for k, v in enumerate(values)
    ]
    return made_run(root, made, policy)


def values(n: int, fails: Callable[[int], bool]) -> list[float]:
    return [0.0 if fails(k) else 1.0 for k in range(n)]


@pytest.mark.row("STAT-2")
def test_a_regression_is_worse_and_an_equal_run_is_equal(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(200, lambda k: k % 20 == 0))
    b = grasps(tmp_path / "b", values(200, lambda k: k % 20 == 0 or k % 10 == 5))
    found = rw.compare(a, b, metrics=["success"])
    (difference,) = found.differences
    assert difference.verdict.value == "worse"
    assert difference.interval.value == pytest.approx(-0.10)
    assert (difference.gains, difference.losses) == (0, 20)
    # McNemar: 20 losses against no gain, by hand.
    assert difference.to_dict()["p_exact"] == pytest.approx(2.0 * 0.5**20)
    assert difference.p == pytest.approx(0.5**20)
    same = rw.compare(a, a, metrics=["success"])
    assert same.differences[0].verdict.value == "equal"
    assert not same.flips
    assert rw.compare(b, a, metrics=["success"]).differences[0].verdict.value == "better"


@pytest.mark.row("STAT-2")
@pytest.mark.parametrize(
    ("losses", "margin", "verdict"),
    [(0, 0.02, "equal"), (2, 0.05, "not worse"), (2, 0.0, "undecided"), (2, 0.005, "undecided"), (40, 0.05, "worse")],
)
def test_the_margin_decides_what_is_not_worse(losses: int, margin: float, verdict: str, tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(400, lambda k: False))
    b = grasps(tmp_path / "b", values(400, lambda k: k < losses))
    assert rw.compare(a, b, metrics=["success"], margin=margin).differences[0].verdict.value == verdict


@pytest.mark.row("STAT-2")
def test_lower_is_better_where_the_metric_says_so(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [drive(k, [[1.0]]) for k in range(60)])
    b = make_run(tmp_path / "b", [drive(k, [[float(k % 3 > 0)]]) for k in range(60)])
    found = {each.metric.name: each for each in rw.compare(a, b).differences}
    assert found["score"].verdict.value == "worse"
    assert found["collision_rate"].interval.value == pytest.approx(1 / 3)
    assert found["collision_rate"].verdict.value == "worse"
    assert found["comfort"].verdict.value == "equal"
    assert found["infractions_per_km"].interval.value == pytest.approx(20 / (60 * 0.1 + sum(range(60)) / 1000))


@pytest.mark.row("STAT-2")
def test_p_values_are_corrected_for_the_metrics_of_their_family(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [drive(k, [[1.0]]) for k in range(60)])
    b = make_run(tmp_path / "b", [drive(k, [[float(k % 9 > 0)]]) for k in range(60)])
    (versus,) = rw.compare(a, b).versus
    family = [each for each in versus.shown if each.p is not None]
    smallest = min(each.p for each in family if each.p is not None)
    corrected = min(each.p_holm for each in family if each.p_holm is not None)
    assert corrected == pytest.approx(min(1.0, len(family) * smallest))
    (alone,) = rw.compare(a, b, metrics=["score"]).differences
    assert alone.p_holm == alone.p


@pytest.mark.row("STAT-4")
def test_episodes_without_a_result_count_as_failures_and_widen_the_worst_case(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(100, lambda k: k % 10 == 0))
    b = grasps(
        tmp_path / "b", ["failed" if k in range(1, 9) else v for k, v in enumerate(values(100, lambda k: k % 10 == 0))]
    )
    (found,) = rw.compare(a, b, metrics=["success"]).differences
    assert found.candidate == pytest.approx(0.82)
    assert found.interval.missing == pytest.approx(0.08)
    assert found.interval.value == pytest.approx(-0.08)
    assert found.interval.worst_low == pytest.approx(found.interval.low)
    # At best, all of them would have succeeded, as in the baseline: no difference.
    assert found.interval.worst_high is not None
    assert found.interval.worst_high > 0.0
    # An outcome without a value for failures is compared where both have it, and has no bounds.
    (time,) = rw.compare(a, b, metrics=["time_s"]).differences
    assert time.interval.n == 92
    assert time.interval.worst_low is None


@pytest.mark.row("STAT-4")
def test_what_is_missing_can_undecide_a_metric_that_failures_say_nothing_about(tmp_path: Path) -> None:
    """Collisions fall from 40% to none, but half of the episodes crashed, which might have been all collisions."""
    a = make_run(tmp_path / "a", [drive(k, [[float(k % 5 > 1)]]) for k in range(80)])
    b = make_run(tmp_path / "b", [failure(k, "crash") if k % 2 else drive(k, [[1.0]]) for k in range(80)])
    found = rw.compare(a, b, metrics=["collision_rate"]).differences[0]
    assert found.interval.high is not None
    assert found.interval.high < 0.0
    assert found.verdict.value == "undecided"


@pytest.mark.row("STAT-2")
def test_runs_that_share_no_episode_are_compared_unpaired_and_say_why(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(150, lambda k: k % 3 == 0))
    b = grasps(tmp_path / "b", values(150, lambda k: False), seed=8)
    (versus,) = rw.compare(a, b).versus
    assert not versus.is_paired
    assert versus.why_unpaired == "the other run has another seed"
    assert versus.main.verdict.value == "better"
    assert versus.main.interval.method == "Newcombe"
    assert versus.main.interval.value == pytest.approx(1 / 3)


@pytest.mark.row("STAT-2")
def test_pairs_narrow_the_interval_of_similar_runs(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(200, lambda k: k % 2 == 0))
    b = grasps(tmp_path / "b", values(200, lambda k: k % 2 == 0 or k < 6))
    widths = []
    for paired in (True, False):
        interval = rw.compare(a, b, metrics=["success"], paired=paired).differences[0].interval
        assert interval.low is not None
        assert interval.high is not None
        widths.append(interval.high - interval.low)
    assert widths[0] < 0.3 * widths[1]


@pytest.mark.row("STAT-2")
def test_parts_cover_all_pairs_and_find_where_the_loss_is(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(240, lambda k: False))
    b = grasps(tmp_path / "b", values(240, lambda k: k < 60 and k % 3 == 0))
    (versus,) = rw.compare(a, b, metrics=["success"]).versus
    assert {each.part: each.interval.value for each in versus.by_class} == {"pick": 0.0, "place": -0.25}
    light = versus.by_factor["light"]
    assert [each.interval.n for each in light] == [60, 60, 60, 60]
    assert [each.interval.value for each in light] == pytest.approx([-1 / 3, 0, 0, 0])
    assert {each.part for each in versus.by_factor["object"]} == {"ball", "cube"}
    assert versus.flips.lost == 20
    assert versus.flips.gained == 0
    assert {flip.episode_id for flip in versus.flips.listed} == {f"s{k:03}-r0" for k in range(0, 60, 3)}


@pytest.mark.row("STAT-2")
def test_trials_are_compared_one_by_one(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [drive(k, [[1.0, 1.0]]) for k in range(40)])
    b = make_run(tmp_path / "b", [drive(k, [[1.0, float(k % 2)]]) for k in range(40)])
    (versus,) = rw.compare(a, b, metrics=["score"]).versus
    assert [(each.part, each.interval.value) for each in versus.by_trial] == [("trial 1", 0.0), ("trial 2", -0.5)]


@pytest.mark.row("STAT-2")
def test_several_runs_are_compared_with_a_reference_and_ranked(tmp_path: Path) -> None:
    runs = [
        grasps(tmp_path / str(n), values(120, lambda k, n=n: k % 10 < n), f"p{n}")  # type: ignore[misc]
        for n in (4, 0, 2)
    ]
    found = rw.compare(*runs, metrics=["success"], reference=1)
    assert found.reference == "p0"
    assert [(versus.label, versus.main.verdict.value) for versus in found.versus] == [("p4", "worse"), ("p2", "worse")]
    (ranking,) = found.rankings
    assert ranking.labels == ("p0", "p2", "p4")
    assert [(each.best, each.worst) for each in ranking.ranked] == [(1, 1), (2, 2), (3, 3)]


def test_folders_of_runs_stand_for_their_newest_complete_run_section_by_section(tmp_path: Path) -> None:
    for name, fails in (("a", 0), ("b", 30)):
        make_run(tmp_path / name, [drive(k, [[0.0]]) for k in range(60)])
        (old,) = (tmp_path / name / "town").iterdir()
        header = json.loads((old / "run.json").read_text())
        (old / "run.json").write_text(json.dumps({**header, "created": "2000-01-01T00:00:00+00:00"}))
        make_run(tmp_path / name, [drive(k, [[float(k >= fails)]]) for k in range(60)])
        make_run(tmp_path / name, [drive(k, [[1.0]]) for k in range(20)], evaluator="highway")
    make_run(tmp_path / "b", [drive(0, [[1.0]])], evaluator="only_here")
    found = rw.compare(tmp_path / "a", tmp_path / "b", metrics=["score"])
    assert [(v.section, v.main.interval.value) for v in found.versus] == [("highway", 0.0), ("town", -0.5)]
    assert found.left_out == ("only_here",)
    alone = rw.compare(tmp_path / "a" / "town", tmp_path / "b" / "town", metrics=["score"])
    assert alone.differences[0].interval.value == -0.5


def test_metrics_per_scenario_count_each_scenario_once(tmp_path: Path) -> None:
    """One scenario with 3 egos that gain, and 19 with one ego that do not: the mean over scenarios gains 1 in 20."""

    def run(name: str, gain: float) -> Run:
        rows = [episode("s0", [[{"score": 1.0, "closed_loop_score": gain}]] * 3)]
        rows += [episode(f"s{k}", [[{"score": 1.0, "closed_loop_score": 0.5}]]) for k in range(1, 20)]
        return make_run(tmp_path / name, rows)

    found = rw.compare(run("a", 0.0), run("b", 1.0), metrics=["closed_loop_score"]).differences[0]
    assert found.interval.value == pytest.approx(1 / 20)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metrics": ["sucess"]}, "unknown metric 'sucess'; did you mean success"),
        ({"margin": -0.1}, "the margin is -0.1; allowed: 0 or more"),
        ({"margin": {"speed": 0.1}}, "a margin is given for 'speed'"),
        ({"margin": 1.0}, "the margin is 1; allowed: from 0 to below 1, the range of 'success'"),
        ({"margin": "5%"}, "the margin is '5%', expected a number in the unit of the metric; 5% of a rate is 0.05"),
        ({"reference": 2}, "reference is 2, but there are 2 runs"),
        ({"level": 95}, "level is 95; allowed: above 0 and below 1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options: dict[str, object], words: str, tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(5, lambda k: False))
    with pytest.raises(UsageError, match=words):
        rw.compare(a, a, **options)  # type: ignore[arg-type]


def test_paths_that_name_no_run_say_what_to_do(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(5, lambda k: False))
    (tmp_path / "log.jsonl").write_text("{}\n")
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nowhere", "there is no such folder"),
        ("log.jsonl", "roadworthy results import"),
        ("empty", "holds no complete run"),
    ):
        with pytest.raises(UsageError, match=words):
            rw.compare(a, tmp_path / name)


def test_runs_of_different_kinds_share_no_metric(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(5, lambda k: False))
    b = make_run(tmp_path / "b", [drive(k, [[1.0]]) for k in range(5)])
    with pytest.raises(UsageError, match="share no metric that can be compared"):
        rw.compare(a, b)


def test_a_run_is_compared_from_its_columns_alone(tmp_path: Path) -> None:
    """Results do not depend on the order of the ledgers."""
    rng = np.random.default_rng(1)
    rows = [Made(f"m{k // 4}-{k}", {"success": float(rng.random() < 0.8)}) for k in range(80)]
    other = [Made(m.scenario, {"success": float(rng.random() < 0.7)}) for m in rows]
    straight = rw.compare(made_run(tmp_path / "a", rows), made_run(tmp_path / "b", other))
    turned = rw.compare(made_run(tmp_path / "c", rows[::-1]), made_run(tmp_path / "d", other[::-1]))
    first, second = (found.differences[0].to_dict() for found in (straight, turned))
    assert {**first, "run": ""} == {**second, "run": ""}


def test_unpaired_metrics_per_scenario_count_each_scenario_once_and_cluster_by_map(tmp_path: Path) -> None:
    def run(name: str, seed: int) -> Run:
        rng = np.random.default_rng(seed)
        rows = [
            episode(f"s{k}", [[{"score": 1.0, "closed_loop_score": rng.random() * (k < 20)}]] * (1 + k % 3))
            for k in range(40)
        ]
        return make_run(tmp_path / name, rows)

    found = rw.compare(run("a", 1), run("b", 2), metrics=["closed_loop_score"], paired=False).differences[0]
    rngs = [np.random.default_rng(seed) for seed in (1, 2)]
    means = [np.mean([rng.random() * (k < 20) for k in range(40)]) for rng in rngs]
    assert found.interval.value == pytest.approx(means[1] - means[0])
    assert found.interval.clusters == 40
    assert found.interval.low is not None


def test_commands_quote_ids_of_strangers(tmp_path: Path) -> None:
    rows = [episode(f"s{k}; rm -rf x", [[{"score": float(k > 2)}]]) for k in range(5)]
    a = make_run(tmp_path / "a", [episode(r.episode.scenario_id, [[{"score": 1.0}]]) for r in rows])
    b = make_run(tmp_path / "b", rows)
    (b.folder / "scenarios.pack").write_bytes(b"")
    commands = [command for flip in rw.compare(a, b, metrics=["score"]).flips for command in flip.commands]
    assert commands
    assert all("'s0; rm -rf x-r0'" in command or "'s1;" in command or "'s2;" in command for command in commands)


@pytest.mark.row("STAT-2")
def test_runs_are_named_by_the_policy_of_their_section(tmp_path: Path) -> None:
    for name, policies in (("a", ("pi1", "drive")), ("b", ("polD", "drive"))):
        for section, policy in zip(("grasp", "town"), policies, strict=True):
            made_run(
                tmp_path / name, [Made(f"s{k}", {"success": 1.0}) for k in range(9)], policy=policy, evaluator=section
            )
    found = rw.compare(tmp_path / "a", tmp_path / "b")
    (grasp, town) = found.versus
    assert (grasp.section, grasp.label, grasp.reference_label) == ("grasp", "polD", "pi1")
    assert town.section == "town"
    assert all(name.startswith("drive ") for name in (town.label, town.reference_label))  # told apart by run ids
    assert town.label != town.reference_label


def test_a_ranking_says_which_episodes_count(tmp_path: Path) -> None:
    whole = grasps(tmp_path / "a", values(60, lambda k: k > 30), "whole")
    made = [Made(f"s{k:03}", {"success": float(k <= 30)}, tags=["x"]) for k in range(40)]
    factors = [{"light": k / 60, "object": "cube" if k % 2 else "ball"} for k in range(40)]
    part = made_run(
        tmp_path / "b", [Made(m.scenario, m.outcome, factors=f) for m, f in zip(made, factors, strict=True)], "part"
    )
    other = grasps(tmp_path / "c", values(60, lambda k: k % 2 == 0), "other")
    (ranking,) = rw.compare(whole, part, other, metrics=["success"]).rankings
    by_name = {name: found.value for name, found in zip(ranking.labels, ranking.ranked, strict=True)}
    assert by_name["whole"] == by_name["part"] == pytest.approx(31 / 40)  # over the shared episodes
    assert ranking.is_paired
    assert ranking.note.startswith("ranked over the 40 episodes that all runs share, out of 60 of whole, 40 of part")
    apart = grasps(tmp_path / "d", values(60, lambda k: False), "apart", seed=8)
    (ranking,) = rw.compare(whole, part, apart, metrics=["success"]).rankings
    assert not ranking.is_paired
    assert "because no episode is in all runs" in ranking.note
    (ranking,) = rw.compare(whole, other, whole, metrics=["success"]).rankings
    assert ranking.note == ""


def test_a_metric_without_bounds_has_a_margin_of_any_size(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(50, lambda k: False))
    b = grasps(tmp_path / "b", values(50, lambda k: k < 10))
    assert rw.compare(a, b, metrics="time_s", margin=2.0).differences[0].margin == 2.0
    found = rw.compare(a, b, margin={"time_s": 2.0, "success": 0.5})
    assert {each.metric.name: each.margin for each in found.differences} == {"time_s": 2.0, "success": 0.5}


def test_a_comparison_prints_as_its_conclusions(tmp_path: Path) -> None:
    a = grasps(tmp_path / "a", values(50, lambda k: False), "old")
    b = grasps(tmp_path / "b", values(50, lambda k: k < 10), "new")
    found = rw.compare(a, b, metrics="success")
    assert repr(found).startswith("Comparison: new against old\n  grasp: Success of new is worse: -20.0 pts")
    assert len(repr(found)) < 200


@pytest.mark.row("STAT-2")
def test_settings_that_can_t_change_a_figure_are_not_named(tmp_path: Path) -> None:
    runs = []
    for name, weight, extra in (("a", 1.0, 1), ("b", 2.0, 2)):
        run = grasps(tmp_path / name, values(9, lambda k: False))
        path = run.folder / "run.json"
        config = {
            "env": {"reward": {"goal": weight, "time": [0.0, weight]}},
            "log": {"every": extra},
            **dict.fromkeys("uvwxy", extra),
        }
        origins = {"type": f"suite {name}"}
        path.write_text(json.dumps({**json.loads(path.read_text()), "config": config, "origins": origins}))
        runs.append(Run(run.folder))
    (versus,) = rw.compare(*runs).versus
    # A range of weights is drawn and observed, so it may change behavior; a number changes the return alone.
    assert versus.settings == {"env.reward.time": ([0.0, 1.0], [0.0, 2.0]), **dict.fromkeys("uvwxy", (1, 2))}
    assert "the runs come from different suites: suite a and suite b" in versus.notes
    listed = "env.reward.time [0.0, 1.0] and [0.0, 2.0]; u 1 and 2; v 1 and 2; and 3 more, see --json"
    assert f"the settings differ: {listed}" in versus.notes
    section = rw.compare(*runs).to_dict()["sections"][0]
    assert section["settings"]["y"] == {"reference": 1, "candidate": 2}
