"""Pictures of an inspection: attention maps, bars per head, effect of the inactive mask, time series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from roadworthy.plots import BLUE, GREEN, INK, OCHRE, QUIET, RED, png
from roadworthy.policy.inspect.record import Inspection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INACTIVE = "#e3e3e3"
HEADS = (BLUE, GREEN, OCHRE, RED, "#7b4f9d", "#4aa3b5", "#8c6d46", "#d17ba0")
RECENT_STEPS = 10  # in the bars


def pictures(inspection: Inspection) -> dict[str, bytes]:
    """Return all pictures as PNG files by name; cores without attention only have `course`."""
    drawn = {"course": _course(inspection)}
    if inspection.has_attention:
        drawn |= {"attention": _maps(inspection), "heads": _bars(inspection), "mask": _mask_effect(inspection)}
    return drawn


def shares_by_past(inspection: Inspection) -> dict[str, NDArray[np.float64]]:
    """Return (L, N) the mean share of attention of active steps to each part of their past."""
    steps = np.arange(len(inspection.trial))
    age = steps[:, None] - steps
    is_same_trial = inspection.trial[:, None] == inspection.trial
    parts = {
        "this step": age == 0,
        f"the {RECENT_STEPS} steps before it": (age > 0) & (age <= RECENT_STEPS) & is_same_trial,
        "earlier in this trial": (age > RECENT_STEPS) & is_same_trial,
        "earlier trials": (age > 0) & ~is_same_trial,
    }
    counted = inspection.attention[inspection.active].astype(np.float64)
    return {
        name: (counted * part[inspection.active][:, None, None]).sum(-1).mean(0)
        for name, part in parts.items()
        if part.any()
    }


def share_on_inactive(inspection: Inspection) -> NDArray[np.float64]:
    """Return (T, L, N) the share of attention that inactive steps would get without the mask.

    The step itself does not count, since it always attends to itself.
    """
    others = ~inspection.active[None] & ~np.eye(len(inspection.active), dtype=np.bool_)
    return (inspection.free_attention.astype(np.float64) * others[:, None, None]).sum(-1)


def _maps(inspection: Inspection) -> bytes:
    """Draw a map per layer and head: which step attends to which."""
    steps, layers, heads, _ = inspection.attention.shape
    shown = np.where(inspection.mask[:, None, None], inspection.attention, np.nan)
    shown[~inspection.active] = np.nan
    top = max(float(np.nanquantile(shown, 0.995)), 1e-3) if inspection.active.any() else 1.0

    def draw(figure: Figure) -> None:
        norm = matplotlib.colors.PowerNorm(0.4, 0.0, top)
        grid = figure.subplots(layers, heads, sharex=True, sharey=True, squeeze=False)
        picture: Any = None
        for layer in range(layers):
            for head in range(heads):
                axes = grid[layer, head]
                _shade_inactive(axes, inspection, is_map=True)
                picture = axes.imshow(shown[:, layer, head], cmap="magma_r", norm=norm, interpolation="nearest")
                _trial_lines(axes, inspection, is_map=True)
                axes.set_title(f"layer {layer}, head {head}")
                axes.set_xlim(-0.5, steps - 0.5)
                axes.set_ylim(steps - 0.5, -0.5)
        for axes in grid[-1]:
            axes.set_xlabel("step attended to")
        for axes in grid[:, 0]:
            axes.set_ylabel("step that attends")
        figure.colorbar(picture, ax=grid.ravel().tolist(), label="share of attention", shrink=0.8, extend="max")
        figure.suptitle(
            _heading(inspection, "what each step attends to; gray: the agent was inactive"), x=0.01, ha="left"
        )

    return png(draw, (2.6 * heads + 1.2, 2.7 * layers + 0.7))


def _bars(inspection: Inspection) -> bytes:
    """Draw a bar per head: how its attention is spread over the past."""
    shares = shares_by_past(inspection)
    layers, heads = inspection.attention.shape[1:3]
    counted = inspection.attention[inspection.active].astype(np.float64)
    entropy = -(counted * np.log(np.maximum(counted, 1e-30))).sum(-1)
    reach = np.exp(entropy).mean(0) if len(counted) else np.zeros((layers, heads))
    colors = ("#2f5d8a", "#8fb3d9", "#d9c28f", "#b3472d")

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names = [f"layer {layer}, head {head}" for layer in range(layers) for head in range(heads)]
        left = np.zeros(len(names))
        for (name, share), color in zip(shares.items(), colors, strict=False):
            axes.barh(names, share.ravel(), left=left, color=color, label=name, height=0.72)
            left += share.ravel()
        for place, count in enumerate(reach.ravel()):
            axes.text(1.01, place, f"{count:.1f} steps", va="center", fontsize=8.0)
        axes.invert_yaxis()
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("share of attention, mean over the steps in which the agent was active")
        axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), handlelength=1.2, columnspacing=1.2)
        axes.text(1.01, -0.75, "spread over about", fontsize=8.0, va="bottom")
        figure.suptitle(_heading(inspection, "what heads attend to"), x=0.01, ha="left")

    return png(draw, (8.4, 1.5 + 0.32 * layers * heads))


def _mask_effect(inspection: Inspection) -> bytes:
    """Draw what would change without the mask of inactive steps."""
    share = share_on_inactive(inspection)
    share[~inspection.active] = np.nan
    change, divergence = (
        np.where(inspection.active, values, np.nan)
        for values in (inspection.free_value_change, inspection.free_divergence)
    )
    layers, heads = share.shape[1:]
    has_effect = bool(np.nansum(share) > 0.0)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(3, 1, sharex=True, height_ratios=(1.6, 1.0, 1.0))
        for layer in range(layers):
            for head in range(heads):
                color, line = HEADS[head % len(HEADS)], ("-", "--", ":", "-.")[layer % 4]
                grid[0].plot(share[:, layer, head], line, color=color, lw=1.2, label=f"layer {layer}, head {head}")
        grid[0].set_title("share of attention that inactive steps would get")
        grid[0].set_ylim(0.0, min(max(float(np.nanmax(share, initial=0.0)) * 1.1, 0.05), 1.0))
        grid[0].legend(ncols=min(heads, 4), loc="upper left", bbox_to_anchor=(0.0, -0.02), handlelength=2.0)
        grid[1].plot(change, color=HEADS[0], lw=1.2)
        grid[1].axhline(0.0, color=QUIET, lw=0.8)
        grid[1].set_title("change of the value")
        grid[2].plot(divergence, color=HEADS[3], lw=1.2)
        grid[2].set_title("KL divergence of the action distribution, nats")
        grid[2].set_ylim(bottom=0.0)
        grid[2].set_xlabel("step")
        for axes in grid:
            _mark_steps(axes, inspection)
        what = "what would change without the mask of inactive steps; gray: the agent was inactive"
        if not has_effect:
            what += "\nno inactive step was in memory, so the mask changes nothing here"
        figure.suptitle(_heading(inspection, what), x=0.01, ha="left")

    return png(draw, (8.4, 6.6 + 0.2 * -(-heads * layers // 4)))


def _course(inspection: Inspection) -> bytes:
    """Draw value, entropy, actions and memory over the steps."""
    inactive = ~inspection.active
    panels: list[tuple[str, list[tuple[str, NDArray[Any]]]]] = [
        ("value", [("", inspection.value)]),
        ("entropy of the action, nats", [("", inspection.entropy)]),
        ("action", [("along", inspection.action[:, 0]), ("across", inspection.action[:, 1])]),
        ("memory, steps", [("of the episode", inspection.cache_length), ("seen", _seen_count(inspection))]),
    ]

    def draw(figure: Figure) -> None:
        grid = figure.subplots(len(panels), 1, sharex=True)
        for axes, (title, lines) in zip(grid, panels, strict=True):
            for k, (name, values) in enumerate(lines):
                there = values if title == "memory, steps" else np.where(inactive, np.nan, values)
                style = "steps-mid" if title == "action" else "default"
                axes.plot(there, color=HEADS[(0, 3)[k]], lw=1.2, label=name, drawstyle=style)
            axes.set_title(title)
            if len(lines) > 1:
                axes.legend(ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderpad=0.0)
            _mark_steps(axes, inspection)
        grid[-1].set_xlabel("step")
        figure.suptitle(_heading(inspection, "time series; gray: the agent was inactive"), x=0.01, ha="left")

    return png(draw, (8.4, 7.2))


def _seen_count(inspection: Inspection) -> NDArray[Any]:
    """Return (T,) the number of steps that each step attends to besides itself."""
    return np.maximum(inspection.mask.sum(1) - 1, 0)


def _heading(inspection: Inspection, what: str) -> str:
    return f"agent {inspection.agent}: {what}"


def _mark_steps(axes: Axes, inspection: Inspection) -> None:
    """Set the range of steps, shade inactive ones, and mark where trials start."""
    axes.set_xlim(-0.5, len(inspection.trial) - 0.5)
    _shade_inactive(axes, inspection)
    _trial_lines(axes, inspection)


def _shade_inactive(axes: Axes, inspection: Inspection, is_map: bool = False) -> None:
    """Shade the steps in which the agent was inactive."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~inspection.active, [False]]).astype(int)))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        axes.axvspan(first - 0.5, end - 0.5, color=INACTIVE, lw=0, zorder=0)
        if is_map:
            axes.axhspan(first - 0.5, end - 0.5, color=INACTIVE, lw=0, zorder=0)


def _trial_lines(axes: Axes, inspection: Inspection, is_map: bool = False) -> None:
    """Draw a line where a trial starts."""
    for step in np.flatnonzero(np.diff(inspection.trial)) + 0.5:
        axes.axvline(step, color=INK, lw=0.7, ls=(0, (4, 3)))
        if is_map:
            axes.axhline(step, color=INK, lw=0.7, ls=(0, (4, 3)))
