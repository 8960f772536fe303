"""Correlation of rows that share a cluster, such as the replicates of a scenario.

Rows of one cluster have outcomes that are alike beyond what the factors explain. Their correlation is one number:

    log-likelihood ≈ -1/2 (z - X w)' R⁻¹ (z - X w),   R = 1 on the diagonal, `correlation` between rows of one cluster

with z and X the linearized, standardized outcomes and features (generalized estimating equations of Liang and Zeger
1986, with priors). What rows of a cluster have in common then counts 1 / (1 + (size - 1) correlation), and what
distinguishes them 1 / (1 - correlation): a factor of scenarios is known less well than from independent rows, a factor
that varies within scenarios better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CORRELATIONS = np.linspace(0.0, 0.96, 49)  # every value is as likely a priori


@dataclass(frozen=True)
class Quadratic:
    """Sums over rows, and over the means of clusters, that give the parabola for any correlation."""

    gram: Array  # (columns, columns) X'X
    product: Array  # (columns,) X'z
    square: float  # z'z
    count: float  # rows
    means: Array  # (clusters, columns) the sum of a cluster's rows of X, divided by the root of its size
    targets: Array  # (clusters,) the same of z
    sizes: Array  # (sizes,) the distinct sizes of clusters
    size_number: NDArray[np.intp]  # (clusters,) which of them each cluster has
    grams: Array  # (sizes, columns, columns) means'means of the clusters of each size
    products: Array  # (sizes, columns)

    @classmethod
    def of(cls, features: Array, target: Array, clusters: NDArray[np.intp]) -> Quadratic:
        """Sum standardized features (n, columns) and targets (n,) over clusters, numbered from 0."""
        order = np.argsort(clusters, kind="stable")
        counts = np.bincount(clusters)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        root = np.sqrt(counts)
        means = np.add.reduceat(features[order], starts, axis=0) / root[:, None]
        targets = np.add.reduceat(target[order], starts) / root
        sizes, number = np.unique(counts, return_inverse=True)
        parts = [number == k for k in range(len(sizes))]
        return cls(
            gram=features.T @ features,
            product=features.T @ target,
            square=float(target @ target),
            count=float(len(target)),
            means=means,
            targets=targets,
            sizes=sizes.astype(np.float64),
            size_number=number,
            grams=np.stack([means[part].T @ means[part] for part in parts]),
            products=np.stack([means[part].T @ targets[part] for part in parts]),
        )

    def parabola(self, correlation: float) -> tuple[Array, Array]:
        """Return the curvature and slope for a correlation."""
        within = 1.0 / (1.0 - correlation)
        extra = shares(self.sizes, correlation) - within
        return (
            within * self.gram + np.tensordot(extra, self.grams, axes=1),
            within * self.product + extra @ self.products,
        )

    def share(self, correlation: float) -> float:
        """Return the mean over rows of what a row counts for the mean of its cluster."""
        clusters = np.bincount(self.size_number)
        return float(clusters @ (self.sizes * shares(self.sizes, correlation)) / self.count)

    def squares(self, weights: Array) -> tuple[float, Array]:
        """Return the squared residuals within clusters, and those of the means of clusters of each size."""
        between: Array = np.bincount(self.size_number, np.square(self.targets - self.means @ weights)).astype(
            np.float64
        )
        total = self.square - 2.0 * float(weights @ self.product) + float(weights @ self.gram @ weights)
        return max(total - float(between.sum()), 0.0), between

    def squared_error(self, weights: Array, correlation: float) -> float:
        """Return the squared residuals, counted as far as rows are independent."""
        within, between = self.squares(weights)
        return within / (1.0 - correlation) + float(shares(self.sizes, correlation) @ between)

    def log_density(self, weights: Array, noise: float = 1.0) -> Array:
        """Return the log-likelihood of every one of CORRELATIONS, up to a constant."""
        within, between = self.squares(weights)
        clusters = np.bincount(self.size_number)
        counted = shares(self.sizes[:, None], CORRELATIONS)  # (sizes, correlations)
        apart = 1.0 - CORRELATIONS
        log_volume = (self.count - clusters.sum()) * np.log(apart) - clusters @ np.log(counted)
        density: Array = -0.5 * (log_volume + (within / apart + between @ counted) / noise**2)
        return density

    def likeliest(self, weights: Array, noise: float = 1.0) -> float:
        """Return the correlation with the highest likelihood."""
        return float(CORRELATIONS[int(self.log_density(weights, noise).argmax())])

    def draw(self, weights: Array, noise: float, rng: np.random.Generator) -> float:
        """Draw the correlation given the weights."""
        log_density = self.log_density(weights, noise)
        passed = np.cumsum(np.exp(log_density - log_density.max()))
        return float(CORRELATIONS[int(np.searchsorted(passed, rng.random() * passed[-1]))])


def shares(sizes: Array | NDArray[np.intp], correlation: float | Array) -> Array:
    """Return what each row of clusters of these sizes counts for their mean."""
    counted: Array = 1.0 / (1.0 + (np.asarray(sizes, np.float64) - 1.0) * correlation)
    return counted
