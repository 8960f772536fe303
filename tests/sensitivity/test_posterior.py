"""Neural posteriors: refused input, and recovered distributions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.known_surfaces import KNOWN_SURFACES, KnownSurface
from roadworthy.errors import UsageError
from roadworthy.sensitivity.factors import Categorical, Continuous
from roadworthy.sensitivity.posterior import neural_posterior
from roadworthy.sensitivity.rows import Rows

LIGHT = Continuous("light", 0.0, 1.0)
OBJECT, COLOUR = Categorical("object", ("box", "can", "ball")), Categorical("color", ("red", "blue"))


def one_factor(count: int = 400) -> Rows:
    case = KnownSurface("line", (LIGHT,), lambda units: units[:, 0])
    return case.sample(count, np.random.default_rng(0))


@pytest.mark.row("SENS-3")
def test_choices_alone_are_counted_and_need_no_network() -> None:
    rng = np.random.default_rng(1)
    units = np.column_stack([rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)]).astype(float)
    chance = np.array([0.2, 0.4, 0.6])[units[:, 0].astype(int)]
    rows = Rows.of_arrays((OBJECT, COLOUR), units, (rng.random(3000) < chance).astype(float))
    found = neural_posterior(rows)
    assert found.method == "counted"
    assert found.distribution(0, 1.0).tolist() == pytest.approx([0.5, 1.0, 1.5], abs=0.1)
    assert found.distribution(1, 1.0).tolist() == pytest.approx([1.0, 1.0], abs=0.1)


@pytest.mark.row("SENS-3")
def test_counts_are_corrected_by_the_recorded_density() -> None:
    rng = np.random.default_rng(2)
    shares = np.array([0.8, 0.1, 0.1])
    units = rng.choice(3, 4000, p=shares)[:, None].astype(float)
    density = 3.0 * shares[units[:, 0].astype(int)]
    rows = Rows.of_arrays((OBJECT,), units, (rng.random(4000) < 0.5).astype(float), density)
    assert neural_posterior(rows).distribution(0, 1.0).tolist() == pytest.approx([1.0] * 3, abs=0.15)


@pytest.mark.row("SENS-3")
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (replace(one_factor(), outcome=np.ones(400)), "success is 1 in all 400 rows"),
        (one_factor(90), "90 rows, expected 100 or more"),
        (replace(one_factor(), outcome=(np.arange(400) < 9).astype(float)), "9 rows have the rarer outcome"),
    ],
    ids=["constant", "few rows", "few successes"],
)
def test_too_little_to_learn_from_is_said(rows: Rows, words: str) -> None:
    with pytest.raises(UsageError, match=f"not enough data.*{words}"):
        neural_posterior(rows)


@pytest.mark.row("SENS-3")
def test_without_sbi_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sbi.neural_nets", None)
    with pytest.raises(UsageError, match=r"pip install 'roadworthy\[sensitivity\]'"):
        neural_posterior(one_factor())


@pytest.mark.row("SENS-3")
@pytest.mark.parametrize("kind", ["one factor", "continuous", "mixed"])
def test_factors_given_success_are_learned(kind: str) -> None:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("sbi")
    case = {
        "one factor": KnownSurface("line", (LIGHT,), lambda units: units[:, 0]),
        "continuous": KnownSurface("line", (LIGHT, replace(LIGHT, name="b")), lambda units: units[:, 0]),
        "mixed": KnownSurface("line", (OBJECT, LIGHT), lambda units: units[:, 1]),
    }[kind]
    threads = torch.get_num_threads()
    found = neural_posterior(case.sample(400, np.random.default_rng(3)), samples=4000, epochs=25)
    assert torch.get_num_threads() == threads
    assert found.method == ("MNPE" if kind == "mixed" else "NPE")
    column = case.factors.index(next(f for f in case.factors if f.name == "light"))
    for outcome, mean in ((1.0, 2.0 / 3.0), (0.0, 1.0 / 3.0)):
        units = found.samples[found.outcomes.index(outcome)]
        assert units[:, column].mean() == pytest.approx(mean, abs=0.08)
        assert units[:, column].min() >= 0.0
        assert units[:, column].max() <= 1.0
    if kind == "mixed":
        assert set(np.unique(units[:, 0])) <= {0.0, 1.0, 2.0}


@pytest.mark.row("SENS-3")
def test_the_same_seed_learns_the_same() -> None:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("sbi")
    rows = KNOWN_SURFACES[0].sample(200, np.random.default_rng(4))
    state = torch.random.get_rng_state()
    one, two = (neural_posterior(rows, samples=50, seed=1, epochs=2).samples[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert torch.equal(torch.random.get_rng_state(), state)
