"""The basis functions of spline surfaces."""

from __future__ import annotations

import numpy as np

from roadworthy.sensitivity.basis import SplineBasis, contrasts, main_functions
from roadworthy.sensitivity.factors import Categorical, Continuous, Factor

LINE = Continuous("light", 0.0, 2000.0)
CHOICE = Categorical("object", ("box", "can", "ball"))


def test_functions_of_a_range_are_orthogonal_and_have_no_mean() -> None:
    units = (np.arange(4000) + 0.5) / 4000
    values = main_functions(LINE, units)
    gram = values.T @ values / len(units)
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-5)


def test_wigglier_functions_are_weaker() -> None:
    values = main_functions(LINE, (np.arange(4000) + 0.5) / 4000)
    power = np.square(values).mean(axis=0)
    np.testing.assert_allclose(power[:2], 1.0, atol=1e-4)
    assert np.all(np.diff(power[1:]) < 0.0)


def test_any_two_choices_are_equally_far_apart() -> None:
    for count in (2, 3, 5):
        places = contrasts(count)
        distances = np.linalg.norm(places[:, None] - places[None], axis=2)[~np.eye(count, dtype=bool)]
        np.testing.assert_allclose(distances, distances[0])
        np.testing.assert_allclose(places.sum(axis=0), 0.0, atol=1e-12)


def test_blocks_cover_all_columns_but_the_constant_once() -> None:
    factors: tuple[Factor, ...] = (LINE, CHOICE, Continuous("friction", 0.0, 1.0))
    basis = SplineBasis.of(factors)
    covered = [column for block in basis.blocks for column in range(block.columns.start, block.columns.stop)]
    features = basis.features(np.array([[0.3, 2.0, 0.9]]))
    assert covered == list(range(1, features.shape[1]))
    assert features[0, 0] == 1.0


def test_many_factors_get_fewer_functions_for_each_pair() -> None:
    few, many = (SplineBasis.of([Continuous(str(n), 0.0, 1.0) for n in range(count)]) for count in (3, 10))
    width = [basis.blocks[-1].columns.stop - basis.blocks[-1].columns.start for basis in (few, many)]
    assert width[1] < width[0]
    assert many.features(np.zeros((2, 10))).shape[1] < 300
