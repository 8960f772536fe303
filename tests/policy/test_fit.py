"""Layout conversion: a policy observes in another env what it would observe in its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from roadworthy.errors import UsageError
from roadworthy.policy.fit import Fitting
from roadworthy.sim.config import ObserveConfig
from roadworthy.sim.layout import COUNTED, Block, Feature, ObservationLayout
from tests.policy.networks import small_layout

MANY = ObserveConfig(partners=7, lanes=9, edges=8, lights=3)
FEW = ObserveConfig(partners=3, lanes=5, edges=1, lights=0)


def shown(observe: ObserveConfig, counts: dict[str, int]) -> Tensor:
    """(1, size) what an env with these sizes shows where so many entries are there: each number tells what it is."""
    layout = small_layout(observe)
    row = torch.zeros(1, layout.size)
    for number, block in enumerate(layout.blocks):
        for k, feature in enumerate(block.features):
            for entry in range(block.entries):
                there = block.name not in COUNTED or entry < counts[block.name]
                row[0, block.column(feature.name, entry)] = (1 + number + 0.1 * k + 0.001 * entry) * there
    for name in COUNTED:
        most = layout[name].entries
        row[0, layout["counts"].column(name)] = min(counts[name], most) / max(most, 1)
    return row


def without(layout: ObservationLayout, name: str, feature: str) -> ObservationLayout:
    """A layout that lacks a feature."""
    blocks: list[Block] = []
    for block in layout.blocks:
        kept = tuple(f for f in block.features if not (block.name == name and f.name == feature))
        blocks.append(Block(block.name, blocks[-1].stop if blocks else 0, block.entries, kept))
    return ObservationLayout(tuple(blocks))


@pytest.mark.row("PPO-3")
@pytest.mark.parametrize(("given", "wanted"), [(MANY, FEW), (FEW, MANY), (MANY, MANY)])
@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_a_policy_observes_the_nearest_entries_that_fit(
    given: ObserveConfig, wanted: ObserveConfig, count: int
) -> None:
    there = {name: min(count, getattr(given, name)) for name in COUNTED}
    fitting = Fitting(small_layout(given), small_layout(wanted))
    torch.testing.assert_close(fitting(shown(given, there)), shown(wanted, there))


def test_rows_of_any_shape_are_fitted_and_left_as_they_were() -> None:
    fitting = Fitting(small_layout(MANY), small_layout(FEW))
    row = shown(MANY, dict.fromkeys(COUNTED, 2))
    many = row.expand(4, 5, -1).clone()
    before = many.clone()
    assert torch.equal(fitting(many), fitting(row).expand(4, 5, -1))
    assert torch.equal(many, before)


def test_equal_layouts_are_not_copied() -> None:
    fitting, row = Fitting(small_layout(FEW), small_layout(FEW)), torch.randn(3, small_layout(FEW).size)
    assert fitting(row) is row


@pytest.mark.row("PPO-3")
def test_a_feature_that_the_env_lacks_is_an_error_that_names_it() -> None:
    with pytest.raises(UsageError, match=r"observes ego\.steering, which the env does not provide"):
        Fitting(without(small_layout(), "ego", "steering"), small_layout())


@pytest.mark.row("PPO-3")
def test_features_that_the_policy_lacks_are_dropped() -> None:
    blind = without(small_layout(), "partners", "speed")
    fitted = Fitting(small_layout(), blind)(shown(ObserveConfig(3, 100.0, 5, 4, 1), dict.fromkeys(COUNTED, 2)))
    assert fitted.shape[-1] == blind.size
    assert float(fitted[0, blind["ego"].column("width")]) == float(1 + 0.5)


def test_different_units_are_an_error_that_names_the_feature() -> None:
    layout = small_layout()
    ego = layout["ego"]
    speed = replace(ego, features=(Feature("speed", 30.0, "m/s"), *ego.features[1:]))
    other = ObservationLayout((speed, *layout.blocks[1:]))
    with pytest.raises(UsageError, match=r"ego\.speed in units of 30 m/s, but the env has it in units of 20"):
        Fitting(layout, other)
