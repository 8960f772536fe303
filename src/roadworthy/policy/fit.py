"""Fitting: what an env shows, arranged as a policy that was trained elsewhere expects it."""

from __future__ import annotations

import torch
from torch import Tensor

from roadworthy.errors import UsageError
from roadworthy.sim.layout import COUNTED, ObservationLayout


class Fitting:
    """Rows of one layout as rows of another. Entries that are not seen are absent; those beyond what fits are left out.

    Entries stand nearest first, so a policy that looks at fewer sees the nearest.
    """

    def __init__(self, given: ObservationLayout, wanted: ObservationLayout, device: str | torch.device = "cpu") -> None:
        self.is_needed = given != wanted
        names = {name: column for column, name in enumerate(_full_names(given))}
        known_features = {name.split("[")[0] for name in names}
        wanted_names = _full_names(wanted)
        foreign = sorted({name.split("[")[0] for name in wanted_names} - known_features)
        foreign = [name for name in foreign if given[name.split(".")[0]].entries]
        if foreign:
            raise UsageError(f"the policy observes {', '.join(foreign)}, which the env does not show")
        _require_same_scales(given, wanted)
        # One more column, of zeros, is where absent entries come from.
        self._columns = torch.tensor([names.get(name, given.size) for name in wanted_names], device=device)
        counts = wanted["counts"]
        self._counts = counts.slice
        shown = torch.tensor([max(given[name].entries, 1) for name in COUNTED], dtype=torch.float32, device=device)
        self._most = torch.tensor([wanted[name].entries for name in COUNTED], dtype=torch.float32, device=device)
        self._given_scale, self._wanted_scale = shown, self._most.clamp(min=1.0)

    def __call__(self, observations: Tensor) -> Tensor:
        """(..., wanted size) from (..., given size)."""
        if not self.is_needed:
            return observations
        zeros = observations.new_zeros(observations.shape[:-1]).unsqueeze(-1)
        fitted = torch.cat([observations, zeros], -1).index_select(-1, self._columns)
        seen = torch.round(fitted[..., self._counts] * self._given_scale)
        fitted[..., self._counts] = torch.minimum(seen, self._most) / self._wanted_scale
        return fitted


def _require_same_scales(given: ObservationLayout, wanted: ObservationLayout) -> None:
    """A number means the same only if it was divided by the same; counts alone may differ: those are converted."""
    for block in wanted.blocks:
        if block.name == "counts" or not (block.entries and given[block.name].entries):
            continue
        shown = {feature.name: feature for feature in given[block.name].features}
        for feature in block.features:
            if feature.scale != shown[feature.name].scale:
                raise UsageError(
                    f"the policy observes {block.name}.{feature.name} in units of {feature.scale:g} {feature.unit}, "
                    f"which the env shows in units of {shown[feature.name].scale:g}; "
                    "run it with the version of Roadworthy that it was trained with"
                )


def _full_names(layout: ObservationLayout) -> list[str]:
    """The names of all columns, with the entry's number even where there is one entry."""
    return [
        f"{block.name}.{feature.name}[{entry}]"
        for block in layout.blocks
        for feature in block.features
        for entry in range(block.entries)
    ]
