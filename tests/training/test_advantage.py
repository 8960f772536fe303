"""Advantages against a plain loop, and where a chain of values ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.training.advantage import estimate_advantages
from roadworthy.training.config import PpoConfig

ROWS, STEPS = 6, 12


def segment(seed: int, **given: Tensor) -> dict[str, Any]:
    """A random segment in which chains end here and there."""
    generator = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    not_done = torch.rand(ROWS, STEPS, generator=generator) < 0.8
    made = {
        "rewards": numbers(ROWS, STEPS),
        "values": numbers(ROWS, STEPS),
        "last_values": numbers(ROWS),
        "final_values": torch.where(not_done, 0.0, numbers(ROWS, STEPS)),
        "not_done": not_done,
        "ratios": numbers(ROWS, STEPS).exp(),
        "gamma": 0.9 + 0.1 * torch.rand(ROWS, STEPS, generator=generator),
    }
    return made | given


def by_a_loop(part: dict[str, Any], config: PpoConfig) -> NDArray[np.float64]:
    """The sum of later errors, each discounted by all between, written out for every step of every row."""
    told = {name: np.asarray(value, np.float64) for name, value in part.items()}
    out = np.zeros((ROWS, STEPS))
    for row in range(ROWS):
        for first in range(STEPS):
            weight = 1.0
            for t in range(first, STEPS):
                following = told["values"][row, t + 1] if t + 1 < STEPS else told["last_values"][row]
                future = following if told["not_done"][row, t] else told["final_values"][row, t]
                discount, ratio = told["gamma"][row, t], told["ratios"][row, t]
                error = told["rewards"][row, t] + discount * future - told["values"][row, t]
                out[row, first] += weight * min(ratio, config.vtrace_rho_clip) * error
                if not told["not_done"][row, t]:
                    break
                weight *= discount * config.gae_lambda * min(ratio, config.vtrace_c_clip)
    return out


@pytest.mark.row("PPO-1")
@pytest.mark.parametrize("config", [PpoConfig(), PpoConfig(vtrace_rho_clip=1.7, vtrace_c_clip=0.6, gae_lambda=0.5)])
@pytest.mark.parametrize("seed", range(3))
def test_advantages_equal_a_plain_loop(config: PpoConfig, seed: int) -> None:
    part = segment(seed)
    np.testing.assert_allclose(
        estimate_advantages(**part, config=config), by_a_loop(part, config), rtol=1e-4, atol=1e-5
    )


@pytest.mark.row("PPO-1")
def test_ratios_above_the_limit_count_as_the_limit() -> None:
    config = PpoConfig(vtrace_rho_clip=1.0, vtrace_c_clip=1.0)
    one, five, half = (
        estimate_advantages(**segment(1, ratios=torch.full((ROWS, STEPS), ratio)), config=config)
        for ratio in (1.0, 5.0, 0.5)
    )
    assert torch.equal(one, five)
    assert not torch.allclose(one, half)


@pytest.mark.row("PPO-2")
def test_nothing_after_the_end_of_a_chain_changes_advantages_before_it() -> None:
    part = segment(2)
    part["not_done"][:, 5] = False
    spoiled = {name: value.clone() for name, value in part.items()}
    for name in ("rewards", "values", "final_values", "ratios"):
        spoiled[name][:, 6:] = 1e6
    spoiled["last_values"][:] = 1e6
    before, after = (estimate_advantages(**one, config=PpoConfig())[:, :6] for one in (part, spoiled))
    assert torch.equal(before, after)


@pytest.mark.row("PPO-2")
def test_the_final_value_counts_only_where_a_chain_ends() -> None:
    part = segment(3)
    ends = ~part["not_done"]
    raised = part | {"final_values": part["final_values"] + torch.where(ends, 1.0, 0.0)}
    ignored = part | {"final_values": part["final_values"] + torch.where(ends, 0.0, 1.0)}
    plain, more, same = (estimate_advantages(**one, config=PpoConfig()) for one in (part, raised, ignored))
    assert torch.equal(plain, same)
    expected = (part["ratios"].clamp(max=1.0) * part["gamma"])[ends]
    torch.testing.assert_close((more - plain)[ends], expected, rtol=1e-4, atol=1e-4)
