"""McNemar's test and its clustered form, beside textbook values and full enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from roadworthy.statistics.flips import mcnemar, sign_flips


def enumerated(totals: list[int]) -> tuple[float, float]:
    """Exact and mid p-values from all assignments of signs."""
    observed = abs(sum(totals))
    sums = [
        abs(sum(s * t for s, t in zip(signs, totals, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(totals))
    ]
    beyond = np.mean([total > observed for total in sums])
    here = np.mean([total == observed for total in sums])
    return beyond + here, beyond + 0.5 * here


@pytest.mark.row("STAT-2")
@pytest.mark.parametrize(("gains", "losses"), [(0, 0), (0, 7), (3, 9), (9, 3), (5, 5), (12, 30), (200, 150)])
def test_mcnemar_is_the_binomial_test_of_the_flips(gains: int, losses: int) -> None:
    found = mcnemar(gains, losses)
    n = gains + losses
    expected = stats.binomtest(gains, n).pvalue if n else 1.0
    assert found.exact == pytest.approx(expected, abs=1e-12)
    # Fagerland, Lydersen and Laake (2013): the mid-p value is the exact one minus the chance of the observed result.
    chance = stats.binom.pmf(gains, n, 0.5) if n else 0.0
    expected_mid = expected - chance if gains != losses else 1.0
    assert found.mid == pytest.approx(expected_mid, abs=1e-12)


def test_mcnemar_gives_the_published_values() -> None:
    """Fagerland et al. (2013), airway hyper-responsiveness: 1 and 7 flips give 0.070 exactly and 0.039 mid-p."""
    found = mcnemar(1, 7)
    assert (round(found.exact, 3), round(found.mid, 3)) == (0.070, 0.039)


@pytest.mark.row("STAT-2")
@pytest.mark.parametrize("totals", [[3, -1, 2, 2, 5, -4], [1, 1, 1, -1], [8, 8, 8], [2, -2], [0, 0, 4, 1], [7]])
def test_sign_flips_by_cluster_agree_with_full_enumeration(totals: list[int]) -> None:
    found = sign_flips(np.array(totals, np.float64))
    exact, mid = enumerated([total for total in totals if total])
    assert found.exact == pytest.approx(exact)
    assert found.mid == pytest.approx(min(mid, 1.0) if sum(totals) else 1.0)


def test_many_clusters_agree_with_the_exact_distribution() -> None:
    totals = np.random.default_rng(0).integers(-3, 4, 2500).astype(np.float64)
    exact = sign_flips(totals[:1200])
    size = np.sqrt((totals[:1200] ** 2).sum())
    normal = 2.0 * stats.norm.sf(abs(totals[:1200].sum()) / size)
    assert exact.mid == pytest.approx(normal, abs=0.01)
    whole = sign_flips(totals)  # beyond the largest exact total
    expected = 2.0 * stats.norm.sf(abs(totals.sum()) / np.sqrt((totals**2).sum()))
    assert whole.exact == pytest.approx(expected)


def test_nothing_that_differs_has_a_p_value_of_one() -> None:
    assert sign_flips(np.zeros(5)).exact == sign_flips(np.zeros(5)).mid == 1.0
