"""Figures that the browser recomputes are those of Python, for whole runs and for selections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.metrics.driving import driving_metrics
from roadworthy.metrics.outcomes import outcome_metrics
from roadworthy.record import Run, RunWriter
from roadworthy.statistics import Clusters, mean, rate, ratio
from tests.metrics.driven import episode
from tests.report.made_up import HEADER, failure
from tests.viewer.made_up import ledger_of, results, write_run

# Computes the interval of rows with clusters, as the modules of the page do.
INTERVALS = """
async (cases) => {
  const { sumsOf } = await import("/app/statistics/clusters.js");
  const intervals = await import("/app/statistics/intervals.js");
  return cases.map(({ kind, values, weights, clusters, bounds }) => {
    const count = Math.max(...clusters) + 1;
    const rows = values.map((value) => (value === null ? 0 : 1));
    const given = { total: values.map((value) => value ?? 0), weight: weights ?? rows, rows };
    const groups = { clusters, clusterCount: count, scenarios: clusters, scenarioCount: count };
    const sums = sumsOf(given, groups, Uint32Array.from(values.keys()));
    if (kind === "rate") return intervals.rate(sums);
    return kind === "ratio" ? intervals.ratio(sums) : intervals.mean(sums, bounds);
  });
}
"""
# Computes all figures of the episodes of a run that pass a filter.
FIGURES = """
async ([key, filters]) => {
  const { Source } = await import("/app/source.js");
  const { Episodes } = await import("/app/episodes.js");
  const { SelectionFigures } = await import("/app/figures_of_selection.js");
  const { parseFilter, select } = await import("/app/selection.js");
  const source = await new Source("/").open();
  const episodes = await Episodes.open(source, key);
  const figures = new SelectionFigures(source, key, episodes);
  await figures.update(await source.json(`data/run/${key}/run.json`));
  const rows = select(episodes, filters.map(parseFilter));
  return new Promise((done) => figures.compute(rows, (found, isComplete) => isComplete && done(found)));
}
"""
COMPARED = ("value", "low", "high", "n", "clusters", "missing", "worst_low", "worst_high")


def cases() -> list[dict[str, Any]]:
    """Rates, means and ratios over few and many clusters, of equal and unequal size, rare and frequent."""
    rng = np.random.default_rng(3)
    found: list[dict[str, Any]] = []
    for count in (1, 2, 5, 9, 12, 40, 90, 300, 700):
        for size in (1, 3):
            clusters = np.repeat(np.arange(count), size if size == 1 else rng.integers(1, 6, count))
            shared = rng.normal(0.0, 1.0, count)[clusters]
            noise = rng.normal(0.0, 1.0, len(clusters))
            for threshold in (-9.0, 0.0, 1.8):
                values = (shared + noise > threshold).astype(float)
                found.append({"kind": "rate", "values": values, "clusters": clusters})
            with_gaps = np.where(rng.random(len(clusters)) < 0.1, np.nan, shared + noise)
            found.append({"kind": "mean", "values": with_gaps, "clusters": clusters})
            shares = 1.0 / (1.0 + np.exp(-shared - noise))
            found.append({"kind": "share", "values": shares, "clusters": clusters, "bounds": [0.0, 1.0]})
            meters = rng.uniform(0.1, 0.4, len(clusters))
            events = rng.poisson(0.4, len(clusters)).astype(float)
            found.append({"kind": "ratio", "values": events, "weights": meters, "clusters": clusters})
            found.append({"kind": "ratio", "values": events * 0.7, "weights": meters, "clusters": clusters})
    return found


def expected(case: dict[str, Any]) -> Any:
    clusters = Clusters(case["clusters"], int(case["clusters"].max()) + 1)
    if case["kind"] == "rate":
        return rate(case["values"], clusters)
    if case["kind"] == "ratio":
        return ratio(case["values"], case["weights"], clusters)
    return mean(case["values"], clusters, is_share=case["kind"] == "share")


def plain(case: dict[str, Any]) -> dict[str, Any]:
    values = [None if value != value else value for value in case["values"].tolist()]
    more = {"weights": case["weights"].tolist()} if "weights" in case else {}
    return {**case, "values": values, "clusters": case["clusters"].tolist(), "bounds": case.get("bounds"), **more}


def close(found: Any, wanted: Any) -> bool:
    return found == wanted or (None not in (found, wanted) and found == pytest.approx(wanted, rel=1e-8, abs=1e-10))


@pytest.mark.row("UI-2")
def test_intervals_are_those_of_python(page: Any, served: Any, tmp_path: Path) -> None:
    page.goto(served(tmp_path))
    given = cases()
    for case, found in zip(given, page.evaluate(INTERVALS, [plain(case) for case in given]), strict=True):
        wanted = expected(case)
        where = (case["kind"], len(case["values"]), wanted)
        assert found["method"] == wanted.method, where
        assert found["note"] == wanted.note, where
        for name in ("value", "low", "high", "n", "clusters"):
            assert close(found[name], getattr(wanted, name)), (name, found, where)


@pytest.mark.row("UI-2")
@pytest.mark.parametrize(("failed", "trials", "maps"), [(0, 1, 0), (7, 1, 0), (7, 3, 0), (0, 1, 20), (7, 1, 20)])
def test_figures_of_all_episodes_are_those_of_metrics(
    page: Any, served: Any, tmp_path: Path, failed: int, trials: int, maps: int
) -> None:
    """maps: how many maps the scenarios are on, 0 for one each."""
    rows = [*results(150, replicates=2, egos=3, trials=trials), *(failure(k, "crashed") for k in range(failed))]
    run = write_run(tmp_path, rows, maps=maps)
    page.goto(served(tmp_path))
    found = {figure["name"]: figure for figure in page.evaluate(FIGURES, [run.header["run_id"], []])}
    assert {
        "score",
        "closed_loop_score",
        "drivable_area",
        "goal_rate",
        "distance_m",
        "infractions_per_km",
        "distance_per_infraction_m",
    } <= set(found)
    wanted = {figure["name"]: figure for figure in run.metrics["figures"]}
    for name, figure in found.items():
        for part in COMPARED:
            assert close(figure[part], wanted[name][part]), (name, part, figure, wanted[name])


@pytest.mark.row("UI-2")
def test_figures_of_a_selection_are_those_of_a_run_of_its_episodes(page: Any, served: Any, tmp_path: Path) -> None:
    rows = results(200, replicates=2)
    run = write_run(tmp_path / "all", rows)
    chosen = [row for row in rows if row.episode.tags != ("merge",) and 0.5 <= row.episode.factors["grip"] <= 0.8]
    with RunWriter.start(tmp_path / "part", "town", "best", HEADER, ledger_of(chosen)) as writer:
        for row in chosen:
            writer.append(row)
        writer.seal(driving_metrics)
    wanted = {figure["name"]: figure for figure in (Run(writer.folder).metrics or {})["figures"]}
    classes = "~".join(sorted({row.episode.tags[0] for row in rows} - {"merge"}))
    page.goto(served(tmp_path / "all"))
    filters = ["factors.grip~range~0.5~0.8", f"tags~in~{classes}"]
    found = page.evaluate(FIGURES, [run.header["run_id"], filters])
    assert len(found) > 10
    for figure in found:
        for part in COMPARED:
            assert close(figure[part], wanted[figure["name"]][part]), (figure, wanted[figure["name"]])


@pytest.mark.row("UI-2")
@pytest.mark.parametrize(("kind", "failed"), [("job", 0), ("job", 5), ("import", 0)])
def test_outcomes_of_other_environments_and_of_imported_logs_are_recomputed_too(
    page: Any, served: Any, tmp_path: Path, kind: str, failed: int
) -> None:
    rng = np.random.default_rng(5)
    rows = []
    for k in range(60):
        outcomes = {"success": float(rng.random() < 0.6), "time_s": float(rng.normal(9.0, 2.0))}
        changes = {"status": "failed", "error": "crashed", "outcomes": {}} if k < failed else {"outcomes": outcomes}
        rows.append(episode(f"env-{k // 2}", [], k % 2, factors={"light": float(rng.random())}, **changes))
    with RunWriter.start(tmp_path, "pick", "arm", {**HEADER, kind: {"name": "pick"}}, ledger_of(rows)) as writer:
        for row in rows:
            writer.append(row)
        writer.seal(outcome_metrics)
    run = Run(writer.folder)
    page.goto(served(tmp_path))
    found = page.evaluate(FIGURES, [run.header["run_id"], []])
    wanted = {figure["name"]: figure for figure in (run.metrics or {})["figures"]}
    assert {figure["name"] for figure in found} == set(wanted) == {"success", "time_s"}
    for figure in found:
        for part in COMPARED:
            assert close(figure[part], wanted[figure["name"]][part]), (part, figure, wanted[figure["name"]])
