"""The validity of the exams: policies that must fail fail, policies that must pass pass.

    python -m benchmarks.validity --seed 123 --count 40

generates `count` scenarios of each behavior class with a seed, lets policies take the exams with the settings of the
suite `behaviors`, and prints a table of `passed` with 95% intervals. A line of JSON per policy has every condition.
Bounds: row CL-3 of docs/requirements.md.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from roadworthy.evaluation.engines.inline import InlineEngine
from roadworthy.evaluation.evaluators.driving import driving_spec
from roadworthy.evaluation.ledger import plan_ledger
from roadworthy.evaluation.policy_ref import policy_ref
from roadworthy.evaluation.sections import read_sections
from roadworthy.metrics.exams import PASSED, exam_figures
from roadworthy.record.episodes import EpisodeResult
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.generate.config import EXAM_STEPS
from roadworthy.scenario.generate.pack import generate_pack
from roadworthy.scenario.pack import Pack
from roadworthy.statistics.intervals import normal_quantile, wilson

POLICIES = (
    "zero",
    "random",
    "expert:lane_follower",
    "expert:lane_keeper",
    "expert:drive",
    "baseline:town",
    "expert:log",
)
LEVEL = 0.95
Values = Mapping[str, Mapping[str, list[float]]]  # by class and figure, one value per episode


def take_exams(pack: Path, policy: str) -> Values:
    """Return the figures by class of a policy's episodes, one for each scenario of a pack."""
    config = next(s for s in read_sections("behaviors", overrides=[f"scenarios={pack}"]) if not s.is_template).config
    spec = replace(driving_spec("exams", pack, policy_ref(policy), config), trace_figures=(exam_figures,))
    with Pack(pack) as opened:
        ledger = plan_ledger(opened, list(range(len(opened))), 1, config.seed)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def keep(result: EpisodeResult) -> None:
        if result.episode.error is not None:
            raise RuntimeError(f"{policy}: {result.episode.error}")
        for row in result.trials:
            for name, value in row.figures.items():
                if name == PASSED or name.startswith("exam_"):
                    found[result.episode.tags[0]][name].append(math.nan if value is None else value)

    InlineEngine(threads=1).run(spec, list(ledger), keep)
    return found


def table(found: Mapping[str, Values]) -> str:
    """Return the figure `passed` of every class and policy as a Markdown table."""
    lines = ["| class | n | " + " | ".join(found) + " |", "|---|---|" + "---|" * len(found)]
    for behavior in BEHAVIORS:
        values = [known(policy.get(behavior, {}).get(PASSED, [])) for policy in found.values()]
        n = min(map(len, values))
        if n:
            lines.append(f"| {behavior} | {n} | " + " | ".join(map(_cell, values)) + " |")
    return "\n".join(lines)


def known(values: Sequence[float]) -> list[float]:
    """Return the values that are not NaN."""
    return [value for value in values if not math.isnan(value)]


def _cell(values: Sequence[float]) -> str:
    share = sum(values) / len(values)
    low, high = wilson(share, len(values), normal_quantile(LEVEL))
    return f"{share:.2f} ({low:.2f}–{high:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate scenarios, run the policies and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity", description="The validity of the exams.")
    parser.add_argument("--seed", type=int, default=123, help="of the scenarios")
    parser.add_argument("--count", type=int, default=40, help="scenarios of each class")
    parser.add_argument("--pack", type=Path, help="take this pack instead of generating one")
    parser.add_argument("policies", nargs="*", default=POLICIES, help="the policies that take the exams")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        pack = given.pack or Path(folder) / "exams.pack"
        if given.pack is None:
            count = given.count * len(BEHAVIORS)
            generate_pack(GenerateConfig(count=count, seed=given.seed, steps=EXAM_STEPS), pack)
        found = {}
        for policy in given.policies:
            found[policy] = take_exams(pack, policy)
            print(json.dumps({policy: _means(found[policy])}), flush=True)
    print(table(found))


def _means(values: Values) -> dict[str, dict[str, float]]:
    return {
        behavior: {name: sum(known(row)) / len(known(row)) for name, row in figures.items() if known(row)}
        for behavior, figures in values.items()
    }


if __name__ == "__main__":
    main()
