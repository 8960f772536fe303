"""The report: complete, self-contained, and true to the analysis."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES
from roadworthy.sensitivity.agreement import distances
from roadworthy.sensitivity.analysis import Analysis, AnalysisConfig, analyze, as_json
from roadworthy.sensitivity.factors import Continuous
from roadworthy.sensitivity.posterior import NeuralPosterior
from roadworthy.sensitivity.report import beside, findings, html, write_report
from roadworthy.sensitivity.rows import Rejected, Rows
from roadworthy.sensitivity.surface import SurfaceConfig

QUICK = AnalysisConfig(SurfaceConfig(draws=40), flips=199, twins=1, next_episodes=5)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    case = next(case for case in KNOWN_SURFACES if case.name == "categorical interaction")
    rows = case.sample(400, np.random.default_rng(0))
    return analyze(replace(rows, rejected=(Rejected("e<7>", "factor 'light' is missing"),)), QUICK)


@pytest.mark.row("SENS-6")
def test_a_page_its_figures_and_its_pictures_are_written(analysis: Analysis, tmp_path: Path) -> None:
    files = write_report(analysis, tmp_path / "report.html")
    assert all(path.is_file() for path in files)
    pictures = {path.stem: path.read_bytes() for path in files if path.suffix == ".png"}
    assert set(pictures) == {"importance", "curves", "given", "pairs", "calibration", "next"}
    assert all(png.startswith(PNG) for png in pictures.values())
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(pictures)
    assert json.loads((tmp_path / "report.json").read_text())["n"] == 400


def learned(analysis: Analysis, *, is_turned: bool = False) -> Analysis:
    """With a posterior whose samples are drawn from the surface's own distributions, or from each other's."""
    surface, rng = analysis.surface, np.random.default_rng(0)
    samples = []
    for outcome in (False, True):
        columns = []
        for number, factor in enumerate(surface.factors):
            chance = surface.given(number, outcome != is_turned).mean
            if isinstance(factor, Continuous):
                area = np.concatenate([[0.0], np.cumsum(0.5 * (chance[1:] + chance[:-1]))])
                columns.append(np.interp(rng.random(20_000), area / area[-1], surface.grid(number)))
            else:
                columns.append(rng.choice(len(chance), 20_000, p=chance / chance.sum()).astype(float))
        samples.append(np.column_stack(columns))
    neural = NeuralPosterior(surface.factors, "MNPE", (0.0, 1.0), tuple(samples))
    return replace(analysis, neural=neural, neural_distances=distances(surface, neural))


@pytest.mark.row("SENS-3")
def test_the_neural_posterior_is_shown_beside_the_surface_with_their_distance(
    analysis: Analysis, tmp_path: Path
) -> None:
    alike, turned = learned(analysis), learned(analysis, is_turned=True)
    assert [found.factor for found in alike.neural_distances] == ["light", "friction", "object"]
    for same, other in zip(alike.neural_distances, turned.neural_distances, strict=True):
        assert same.larger < 0.03  # what 20,000 samples in 20 bins leave to chance
        assert other.larger > same.larger
    assert "they agree" in beside(alike)
    assert "exceeds the usual error" in beside(turned)
    files = write_report(alike, tmp_path / "report.html")
    assert "neural.png" in {path.name for path in files}
    page = (tmp_path / "report.html").read_text()
    assert "Neural posterior" in page
    assert "MNPE and the surface are 0.0" in page
    told = json.loads((tmp_path / "report.json").read_text())["neural"]
    assert told["method"] == "MNPE"
    assert set(told["distributions"]) == {"light", "friction", "object"}
    assert as_json(analysis)["neural"] is None


@pytest.mark.row("SENS-6")
def test_the_page_needs_nothing_beside_it(analysis: Analysis) -> None:
    page = html(analysis, {"curves": PNG})
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<script" not in page


@pytest.mark.row("SENS-6")
def test_every_factor_is_spoken_of_and_suggestions_have_its_values(analysis: Analysis) -> None:
    told = as_json(analysis)
    assert [factor["name"] for factor in told["factors"]] == ["light", "friction", "object"]
    lines = findings(analysis)
    assert [sum(line.startswith(f"{name} ") for line in lines) for name in ("light", "friction", "object")] == [1] * 3
    assert len(told["next_episodes"]) == 5
    for row in told["next_episodes"]:
        assert 0.0 <= row["light"] <= 2000.0
        assert row["object"] in ("box", "can", "ball")


def test_an_interaction_is_named_with_its_partner(analysis: Analysis) -> None:
    by_factor = {line.split()[0]: line for line in findings(analysis)}
    assert "together with object" in by_factor["light"]
    assert "together with light" in by_factor["object"]


def test_what_was_left_out_is_listed_and_names_are_escaped(analysis: Analysis) -> None:
    page = html(analysis, {})
    assert "1 rows were left out" in page
    assert "e&lt;7&gt;: factor &#x27;light&#x27; is missing" in page


def test_figures_are_plain_and_bands_hold_their_means(analysis: Analysis) -> None:
    told = json.loads(json.dumps(as_json(analysis), allow_nan=False))
    for factor in told["factors"]:
        for name in ("curve", "given_success", "given_failure"):
            low, mean, high = (np.array(factor[name][part]) for part in ("low", "mean", "high"))
            assert np.all(low <= mean)
            assert np.all(mean <= high)
            assert len(mean) == len(factor["at"])


def test_one_factor_and_a_continuous_outcome_are_drawn_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    units = rng.random((60, 1))
    rows = Rows.of_arrays((Continuous("light", 0.0, 1.0),), units, units[:, 0] + 0.1 * rng.standard_normal(60))
    names = {path.stem for path in write_report(analyze(rows, QUICK), tmp_path / "report.html")}
    assert names == {"report", "importance", "curves", "calibration", "next"}
