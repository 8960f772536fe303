"""Convert observations of an env to the layout that a policy was trained with."""

from __future__ import annotations

import torch
from torch import Tensor

from roadworthy.errors import UsageError
from roadworthy.sim.layout import COUNTED, ObservationLayout


class Fitting:
    """Converts rows of one layout to another. Missing entries become absent ones, surplus entries are dropped.

    Entries are sorted by distance, so a policy with fewer entries observes the nearest ones.
    """

    def __init__(self, given: ObservationLayout, wanted: ObservationLayout, device: str | torch.device = "cpu") -> None:
        self.is_needed = given != wanted
        names = {name: column for column, name in enumerate(_full_names(given))}
        known_features = {name.split("[")[0] for name in names}
        wanted_names = _full_names(wanted)
        foreign = sorted({name.split("[")[0] for name in wanted_names} - known_features)
        shown_blocks = {block.name: block.entries for block in given.blocks}
        foreign = [name for name in foreign if shown_blocks.get(name.split(".")[0], 1)]
        if foreign:
            raise UsageError(
                f"the policy observes {', '.join(foreign)}, which the env does not provide; name the reward terms and "
                "observation blocks that it was trained with in env.reward.terms and env.observe.blocks"
                if any(name.split(".")[0] not in shown_blocks for name in foreign)
                else f"the policy observes {', '.join(foreign)}, which the env does not provide"
            )
        _require_same_scales(given, wanted)
        # Missing entries are read from one more column, of zeros.
        self._columns = torch.tensor([names.get(name, given.size) for name in wanted_names], device=device)
        counts = wanted["counts"]
        self._counts = counts.slice
        shown = torch.tensor([max(given[name].entries, 1) for name in COUNTED], dtype=torch.float32, device=device)
        self._most = torch.tensor([wanted[name].entries for name in COUNTED], dtype=torch.float32, device=device)
        self._given_scale, self._wanted_scale = shown, self._most.clamp(min=1.0)

    def __call__(self, observations: Tensor) -> Tensor:
        """Convert (..., given size) to (..., wanted size)."""
        if not self.is_needed:
            return observations
        zeros = observations.new_zeros(observations.shape[:-1]).unsqueeze(-1)
        fitted = torch.cat([observations, zeros], -1).index_select(-1, self._columns)
        seen = torch.round(fitted[..., self._counts] * self._given_scale)
        fitted[..., self._counts] = torch.minimum(seen, self._most) / self._wanted_scale
        return fitted


def _require_same_scales(given: ObservationLayout, wanted: ObservationLayout) -> None:
    """Raise an error if scales of features differ. Counts may differ, since they are converted."""
    for block in wanted.blocks:
        if block.name == "counts" or not (block.entries and given[block.name].entries):
            continue
        shown = {feature.name: feature for feature in given[block.name].features}
        for feature in block.features:
            if feature.scale != shown[feature.name].scale:
                raise UsageError(
                    f"the policy observes {block.name}.{feature.name} in units of {feature.scale:g} {feature.unit}, "
                    f"but the env has it in units of {shown[feature.name].scale:g}; "
                    "run it with the version of Roadworthy that it was trained with"
                )


def _full_names(layout: ObservationLayout) -> list[str]:
    """Return the names of all columns, with the entry's number even if a block has one entry."""
    return [
        f"{block.name}.{feature.name}[{entry}]"
        for block in layout.blocks
        for feature in block.features
        for entry in range(block.entries)
    ]
