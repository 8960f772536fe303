"""The share of an evaluation's CPU time for records, from the capture of the first step to the last figure."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

from benchmarks.runner import Measurements, Sizes
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator
from roadworthy.evaluation.runners.driving.capture import Capture
from roadworthy.evaluation.runners.driving.in_flight import InFlight
from roadworthy.evaluation.sections import Section, chosen, read_sections
from roadworthy.evaluation.training import training_of
from roadworthy.record import RunWriter
from roadworthy.scenario.pack import Pack

CASES = (
    ("behaviors", "baseline:town"),
    ("human_replay", "baseline:town"),
    ("human_replay", "expert:log"),
    ("town", "expert:drive"),
)
# The functions that only exist for records, by class and method.
_PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "begin the run": ((RunWriter, "start"),),
    "capture": tuple((Capture, name) for name in ("begin", "watch", "after_step", "end")),
    "rows": ((InFlight, "_note_rows"), (InFlight, "_result")),
    "append": ((RunWriter, "append"),),
    "seal": ((RunWriter, "seal"),),
    "figures": ((DrivingEvaluator, "metrics"),),
}


def share(found: Measurements, sizes: Sizes) -> None:
    """Evaluate suites in this process, without videos and reports, and return the CPU seconds of each part by round.

    CPU time and not time on the clock: the latter depends on other processes. Of this thread alone: the
    simulator's others spin while they wait, which would make the share look smaller. A first round, in which modules
    are imported and kernels loaded, is not counted.
    """
    for suite, policy in CASES:
        sections = _sections(suite, policy, sizes["scenarios"])
        shares = []
        for number in range(sizes["rounds"] + 1):
            with tempfile.TemporaryDirectory() as folder, _clocked() as spent:
                before = time.thread_time()
                outcomes = evaluate_sections(sections, policy, folder)
                total = time.thread_time() - before
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
            if number:
                shares.append(sum(spent.values()) / total)
                for part, seconds in {"all": total, **spent}.items():
                    found.seconds.setdefault(f"{suite}, {policy}: {part}", []).append(seconds)
        for name, value in (("median", statistics.median(shares)), ("least", min(shares)), ("most", max(shares))):
            found.figures[f"{suite}, {policy}: percent of CPU time, {name}"] = round(100.0 * value, 2)


def _sections(suite: str, policy: str, count: int) -> list[Section]:
    """Return the sections of a suite with this number of scenarios (towns: two thirds of it), without videos."""
    kind, count = ("town", -(-count * 2 // 3)) if suite == "town" else ("all", count)
    overrides = [f"scenarios=generate:{kind}?count={count}&seed=900001"]
    found = []
    for section in chosen(read_sections(suite, training=training_of(policy), overrides=overrides)):
        source = section.config.source
        with Pack(source.fetch()) as pack:
            is_there = source.tag is None or source.tag in pack.tag_counts
        if is_there:
            assert section.resolved is not None
            unfilmed = replace(section.resolved, config=replace(section.config, render=None))
            found.append(replace(section, resolved=unfilmed))
    return found


@contextmanager
def _clocked() -> Iterator[dict[str, float]]:
    """Count the CPU seconds of each part; nested parts count only for the inner part."""
    spent = dict.fromkeys(_PARTS, 0.0)
    inner = [0.0]  # a stack of the seconds of nested parts

    def clocked(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            before = time.thread_time()
            inner.append(0.0)
            try:
                return function(*arguments, **named)
            finally:
                took = time.thread_time() - before
                spent[part] += took - inner.pop()
                inner[-1] += took

        return call

    with ExitStack() as stack:
        for part, methods in _PARTS.items():
            for owner, name in methods:
                original = owner.__dict__[name]
                is_class_method = isinstance(original, classmethod)
                call = clocked(part, original.__func__ if is_class_method else original)
                setattr(owner, name, classmethod(call) if is_class_method else call)
                stack.callback(setattr, owner, name, original)
        yield spent
