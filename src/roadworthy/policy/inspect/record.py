"""Records of a policy for one agent, step by step, as arrays, as JSON lines and as an .npz file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.record.files import write_whole

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int32]
# Arrays of Inspection that hold what StepRecord has under the same name.
_COUNTS = ("trial", "attempt", "cache_length")
_NUMBERS = ("observation", "action", "scores", "entropy", "value", "free_value_change", "free_divergence")


@dataclass
class StepRecord:
    """One step of one agent. Ages: 0 is the step itself, 1 the step before."""

    agent: int
    trial: int
    attempt: int
    is_active: bool
    observation: Floats
    scores: Floats
    entropy: float
    value: float
    cache_length: int
    sees: Flags  # (C,) by age
    weights: Floats  # (layers, heads, C) by age
    free_sees: Flags  # the same without the mask
    free_weights: Floats
    free_value_change: float
    free_divergence: float
    action: Floats = field(default_factory=lambda: np.zeros(2, np.float32))


@dataclass(frozen=True)
class Inspection:
    """T steps of one agent; L layers of N heads, none for cores without attention; S numbers per observation.

    "Free" values are those without the mask of inactive steps, for this one step.
    """

    agent: int
    trial: Counts  # (T,)
    attempt: Counts  # (T,) the number of the agent's own episode, which rises where memory is cleared
    active: Flags  # (T,)
    observation: Floats  # (T, S)
    action: Floats  # (T, 2) for DriveEnv.step
    scores: Floats  # (T, numbers) logits of the action distribution, see policy/heads.py
    entropy: Floats  # (T,) of the action distribution, nats
    value: Floats  # (T,)
    cache_length: Counts  # (T,) steps of the episode before this one, which is its position
    mask: Flags  # (T, T) whether a step (first) attends to another (second)
    attention: Floats  # (T, L, N, T) attention weights, which sum to 1
    free_mask: Flags  # (T, T)
    free_attention: Floats  # (T, L, N, T)
    free_value_change: Floats  # (T,) free value minus value
    free_divergence: Floats  # (T,) of the action distribution, nats

    @property
    def has_attention(self) -> bool:
        return self.attention.size > 0

    @classmethod
    def of(cls, agent: int, records: Sequence[StepRecord]) -> Inspection:
        """Stack the steps of an agent."""

        def column(name: str, kind: Any) -> NDArray[Any]:
            return np.array([getattr(record, name) for record in records], kind)

        return cls(
            agent=agent,
            active=column("is_active", np.bool_),
            mask=_by_step([record.sees for record in records]),
            attention=_by_step([record.weights for record in records]),
            free_mask=_by_step([record.free_sees for record in records]),
            free_attention=_by_step([record.free_weights for record in records]),
            **{name: column(name, np.int32) for name in _COUNTS},
            **{name: column(name, np.float32) for name in _NUMBERS},
        )

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each step as plain values; attention has weights of the steps in `sees`, by layer and head."""
        for t in range(len(self.trial)):
            sees = np.flatnonzero(self.mask[t]).tolist()
            free = np.flatnonzero(self.free_mask[t]).tolist()
            yield {
                "agent": self.agent,
                "step": t,
                "trial": int(self.trial[t]),
                "attempt": int(self.attempt[t]),
                "active": bool(self.active[t]),
                "action": self.action[t].tolist(),
                "scores": _short(self.scores[t]),
                "entropy": _short(self.entropy[t]),
                "value": _short(self.value[t]),
                "cache_length": int(self.cache_length[t]),
                "sees": sees,
                "attention": _short(self.attention[t][..., sees]),
                "free_sees": free,
                "free_attention": _short(self.free_attention[t][..., free]),
                "free_value_change": _short(self.free_value_change[t]),
                "free_divergence": _short(self.free_divergence[t]),
                "observation": _short(self.observation[t]),
            }


def write_inspection(inspection: Inspection, stem: Path) -> list[Path]:
    """Write STEM.jsonl, a line per step, and STEM.npz, the arrays of Inspection by name."""
    lines, arrays = stem.with_name(f"{stem.name}.jsonl"), stem.with_name(f"{stem.name}.npz")
    named = {f.name: getattr(inspection, f.name) for f in fields(inspection)}

    stem.parent.mkdir(parents=True, exist_ok=True)
    write_whole(lines, b"".join(json.dumps(line).encode() + b"\n" for line in inspection.lines()))
    packed = io.BytesIO()
    np.savez_compressed(packed, **named)
    write_whole(arrays, packed.getvalue())
    return [lines, arrays]


def _by_step(by_age: list[NDArray[Any]]) -> NDArray[Any]:
    """Return (T, ..., T) by step from (..., C) by age for each of T steps: age a at step t is step t - a."""
    steps = len(by_age)
    joined = np.zeros((steps, *by_age[0].shape[:-1], steps), by_age[0].dtype)
    for t, values in enumerate(by_age):
        count = min(t + 1, values.shape[-1])
        joined[t, ..., t + 1 - count : t + 1] = values[..., :count][..., ::-1]
    return joined


def _short(values: Any) -> Any:
    """Return plain numbers with six digits; the .npz file has all digits."""
    array = np.asarray(values)
    if array.ndim:
        return [_short(value) for value in array]
    return float(f"{float(array):.6g}")
