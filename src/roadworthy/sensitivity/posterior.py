"""Neural posterior: the joint distribution of factors given an outcome, learned by a network of sbi (NPE, MNPE).

It assumes no form of the surface and shows dependence between factors, but it needs more rows than the surface for the
same accuracy and gives no bands. Continuous factors are learned as normal quantiles of their units, so that even
sampling is standard normal for the network and no probability leaks over the ends of a range. Rows are weighted by
their inverse sampling density where it is recorded.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from roadworthy.errors import UsageError
from roadworthy.sensitivity.factors import Categorical, Factor
from roadworthy.sensitivity.rows import Rows
from roadworthy.sensitivity.surface import check_enough

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]

LEAST_ROWS, LEAST_OF_EACH = 100, 10
HELD_OUT = 0.15
BATCH = 100
PATIENCE, MOST_EPOCHS = 20, 200
EDGE = 1e-3  # units are kept this far from the ends of a range, where normal quantiles are infinite


@dataclass(frozen=True)
class NeuralPosterior:
    """Samples of the factors given outcomes."""

    factors: tuple[Factor, ...]
    method: str  # NPE, MNPE, or "counted" where all factors are categorical
    outcomes: tuple[float, ...]
    samples: tuple[Array, ...]  # units (samples, factors) for each outcome

    def distribution(self, factor: int, outcome: float, bins: int = 20) -> Array:
        """Return the distribution of one factor, in bins of its range or over its choices, relative to uniform (1)."""
        units = self.samples[self.outcomes.index(outcome)][:, factor]
        described = self.factors[factor]
        if isinstance(described, Categorical):
            counts = np.bincount(units.astype(np.intp), minlength=len(described.choices))
        else:
            counts = np.histogram(units, bins, (0.0, 1.0))[0]
        return counts / counts.mean()


def neural_posterior(rows: Rows, samples: int = 10_000, seed: int = 0, epochs: int = MOST_EPOCHS) -> NeuralPosterior:
    """Learn the distribution of factors given success and failure, or given a low and a high continuous outcome."""
    check_enough(rows)
    outcomes = (0.0, 1.0) if rows.is_binary else tuple(np.quantile(rows.outcome, (0.1, 0.9)).tolist())
    if rows.is_binary:
        rarer = int(min(rows.outcome.sum(), len(rows) - rows.outcome.sum()))
        if rarer < LEAST_OF_EACH:
            raise UsageError(
                f"not enough data for a neural posterior: {rarer} rows have the rarer outcome, expected "
                f"{LEAST_OF_EACH} or more; the surface needs fewer"
            )
    if all(isinstance(factor, Categorical) for factor in rows.factors):
        return _counted(rows, outcomes, samples, np.random.default_rng(seed))
    if len(rows) < LEAST_ROWS:
        raise UsageError(
            f"not enough data for a neural posterior: {len(rows)} rows, expected {LEAST_ROWS} or more; "
            "the surface needs fewer"
        )
    return _learned(rows, outcomes, samples, seed, epochs)


def _counted(rows: Rows, outcomes: tuple[float, ...], samples: int, rng: np.random.Generator) -> NeuralPosterior:
    """Count the cells of categorical factors, plus half a row each; nothing has to be learned."""
    shape = tuple(int(factor.measure) for factor in rows.factors)
    cell = np.ravel_multi_index(tuple(rows.units.astype(np.intp).T), shape)
    drawn = []
    for outcome in outcomes:
        # For a continuous outcome, use the nearest fifth of the rows.
        distance = np.abs(rows.outcome - outcome)
        near = distance == 0.0 if rows.is_binary else distance <= np.quantile(distance, 0.2)
        seen = np.bincount(cell[near], rows.weights[near], int(np.prod(shape))) + 0.5
        chosen = rng.choice(len(seen), samples, p=seen / seen.sum())
        drawn.append(np.column_stack(np.unravel_index(chosen, shape)).astype(np.float64))
    return NeuralPosterior(rows.factors, "counted", outcomes, tuple(drawn))


def _learned(rows: Rows, outcomes: tuple[float, ...], samples: int, seed: int, epochs: int) -> NeuralPosterior:
    with _one_thread():
        import torch

        # sbi expects continuous columns first.
        order = sorted(range(len(rows.factors)), key=lambda j: isinstance(rows.factors[j], Categorical))
        continuous = sum(not isinstance(factor, Categorical) for factor in rows.factors)
        theta = rows.units[:, order].copy()
        theta[:, :continuous] = norm.ppf(np.clip(theta[:, :continuous], EDGE, 1.0 - EDGE))
        center, spread = rows.outcome.mean(), rows.outcome.std()
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sbi and nflows, about their own dependencies
            torch.manual_seed(seed)
            parameters = torch.as_tensor(theta, dtype=torch.float32)
            observed = torch.as_tensor((rows.outcome - center)[:, None] / spread, dtype=torch.float32)
            weights = torch.as_tensor(rows.weights, dtype=torch.float32)
            network = _network(continuous, len(order), parameters, observed)
            _train(network, parameters, observed, weights, epochs)
            drawn = []
            for outcome in outcomes:
                condition = torch.full((1, 1), (outcome - center) / spread, dtype=torch.float32)
                with torch.no_grad():
                    found = network.sample((samples,), condition=condition).reshape(samples, -1).double().numpy()
                found[:, :continuous] = norm.cdf(found[:, :continuous])
                units = np.empty_like(found)
                units[:, order] = found
                drawn.append(units)
    return NeuralPosterior(rows.factors, "NPE" if continuous == len(order) else "MNPE", outcomes, tuple(drawn))


def _network(continuous: int, count: int, parameters: torch.Tensor, observed: torch.Tensor) -> Any:
    """Return the density network of sbi for this mix of factors."""
    try:
        from sbi.neural_nets import posterior_nn
    except ImportError as error:
        raise UsageError("the neural posterior needs sbi: pip install 'roadworthy[sensitivity]'") from error
    if continuous < count:
        build = posterior_nn("mnpe", hidden_features=32, num_transforms=2, num_bins=6)
    elif count == 1:  # an autoregressive flow of one dimension could only shift and scale
        build = posterior_nn("nsf", hidden_features=32, num_transforms=2, num_bins=6)
    else:
        build = posterior_nn("maf", hidden_features=32, num_transforms=3)
    return build(parameters, observed)


def _train(network: Any, parameters: torch.Tensor, observed: torch.Tensor, weights: torch.Tensor, epochs: int) -> None:
    """Maximize the weighted likelihood until held-out rows stop improving; keep the best network."""
    import torch

    order = torch.randperm(len(parameters))
    held, seen = order.split([round(HELD_OUT * len(order)), len(order) - round(HELD_OUT * len(order))])
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    best, kept, waited = float("inf"), copy.deepcopy(network.state_dict()), 0
    for _ in range(epochs):
        for part in seen[torch.randperm(len(seen))].split(BATCH):
            optimizer.zero_grad()
            loss = (network.loss(parameters[part], observed[part]) * weights[part]).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
        with torch.no_grad():
            score = float((network.loss(parameters[held], observed[held]) * weights[held]).mean())
        if score < best:
            best, kept, waited = score, copy.deepcopy(network.state_dict()), 0
        else:
            waited += 1
            if waited >= PATIENCE:
                break
    network.load_state_dict(kept)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread, because networks this small are several times slower with more."""
    try:
        import torch
    except ImportError as error:
        raise UsageError("the neural posterior needs torch and sbi: pip install 'roadworthy[sensitivity]'") from error
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
