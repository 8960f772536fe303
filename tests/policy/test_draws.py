"""The policy's draws are those of the simulator's generator, bit for bit."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.policy import draws
from roadworthy.sim.rules import draws

SEEDS = st.integers(0, 2**64 - 1)
STEPS = st.integers(0, 2**40)


@given(seed=SEEDS, agents=st.lists(st.integers(0, 2**20), min_size=1, max_size=4), step=STEPS)
def test_draws_equal_the_simulators(seed: int, agents: list[int], step: int) -> None:
    keys = draws.keys_of(seed, torch.tensor(agents))
    for purpose in (draws.ACTION, draws.CONDITIONING):
        numbers = [purpose + draws.PURPOSES * part for part in range(3)]
        expected = [[draws.uniform(np.uint64(seed), agent, step, number) for number in numbers] for agent in agents]
        drawn = draws.uniform(keys, step, purpose, 3)
        assert drawn.dtype == torch.float32
        assert drawn.numpy().tobytes() == np.array(expected, np.float32).tobytes()


@given(seeds=st.lists(SEEDS, min_size=3, max_size=3), steps=st.lists(STEPS, min_size=3, max_size=3))
def test_rows_can_have_different_seeds_and_steps(seeds: list[int], steps: list[int]) -> None:
    agents = torch.tensor([0, 5, 2])
    bits = torch.from_numpy(np.array(seeds, np.uint64).view(np.int64))
    together = draws.uniform(draws.keys_of(bits, agents), torch.tensor(steps), draws.ACTION)
    for row, (seed, step) in enumerate(zip(seeds, steps, strict=True)):
        alone = draws.uniform(draws.keys_of(seed, agents[row : row + 1]), step, draws.ACTION)
        assert torch.equal(together[row], alone[0])


def test_no_draw_of_the_simulator_is_used_twice() -> None:
    numbers = {name: value for name, value in vars(draws).items() if name[0].isupper() and isinstance(value, int)}
    taken = [value for name, value in numbers.items() if name not in ("PURPOSES", "WORLD")]
    purposes = [*taken, draws.ACTION, draws.CONDITIONING]
    assert len(taken) > 10
    assert len(set(purposes)) == len(purposes)
    assert max(purposes) < draws.PURPOSES


def test_draws_fill_zero_to_one_evenly() -> None:
    drawn = draws.uniform(draws.keys_of(11, torch.arange(50_000)), 3, draws.ACTION).double()
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    counts = torch.histc(drawn[:, 0], 20, 0.0, 1.0)
    # Chi-squared with 19 degrees of freedom: above 43.8 once in a thousand seeds, and this seed is always the same.
    assert float(((counts - 2500.0) ** 2 / 2500.0).sum()) < 43.8
    assert abs(float(torch.corrcoef(drawn.T)[0, 1])) < 4.0 / 50_000**0.5
