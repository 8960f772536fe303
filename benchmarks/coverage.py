"""Measure the coverage of intervals by simulation; a full run writes the results to docs/statistics.md."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.coverage_cases import Case, cases
from benchmarks.runner import Measurements, Sizes

DOCUMENT = Path(__file__).parent.parent / "docs" / "statistics.md"
FULL = 2000  # the number of repetitions for which the document is written


@dataclass(frozen=True)
class Coverage:
    """The results of the repetitions of a case."""

    case: Case
    repeats: int
    given: int  # repetitions with an interval; the others had "not enough data"
    held: int  # intervals that contain the truth
    above: int  # intervals above the truth

    @property
    def covered(self) -> float | None:
        """The share of the intervals that contain the truth."""
        return self.held / self.given if self.given else None


def coverage(found: Measurements, sizes: Sizes) -> None:
    """Run every case; write the document if there are enough repetitions."""
    results = []
    for case in cases():
        with found.stage(case.table):
            results.append(measure(case, sizes["repeats"]))
        covered = results[-1].covered
        found.figures[case.name] = None if covered is None else round(100.0 * covered, 1)
    if sizes["repeats"] >= FULL:
        write_tables(results, sizes["repeats"])


def measure(case: Case, repeats: int) -> Coverage:
    """Draw a case repeatedly, with the same seeds in every run."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    given = held = above = 0
    for _ in range(repeats):
        interval = case.sample(rng)
        if interval.low is not None and interval.high is not None:
            given += 1
            held += interval.low <= case.truth <= interval.high
            above += case.truth < interval.low
    return Coverage(case, repeats, given, held, above)


def write_tables(results: list[Coverage], repeats: int) -> None:
    """Write the tables into the document between its markers."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in dict.fromkeys(result.case.table for result in results):
        lines = _table([result for result in results if result.case.table == table], repeats)
        mark = re.escape(table)
        pattern = re.compile(rf"(<!-- coverage of {mark} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{DOCUMENT} has no markers for the coverage of {table}")
        text = pattern.sub(lambda match, lines=lines: f"{match[1]}{lines}{match[2]}", text)  # type: ignore[misc]
    DOCUMENT.write_text(text, encoding="utf-8")


def _table(results: list[Coverage], repeats: int) -> str:
    """Return a table with a row for each true value and size, and the columns of the cases."""
    heads = list(dict.fromkeys(result.case.column for result in results))
    lines = [f"| true value | clusters | rows each | {' | '.join(heads)} |", f"|{'---|' * (3 + len(heads))}"]
    groups: dict[tuple[str, int, str], list[Coverage]] = {}
    for result in results:
        case = result.case
        groups.setdefault((case.what, case.clusters, case.size), []).append(result)
    for (what, clusters, size), group in groups.items():
        cells = {result.case.column: _cell(result) for result in group}
        lines.append(f"| {what} | {clusters:,} | {size} | {' | '.join(cells.get(head, '') for head in heads)} |")
    return "\n".join([*lines, "", f"{repeats:,} repetitions each.", ""])


def _cell(result: Coverage) -> str:
    if result.given == 0:
        return "not enough data"
    refused = 1.0 - result.given / result.repeats
    if refused > 0.9:
        return f"not enough data, but for {result.given} of {result.repeats:,}, of which {result.held} held"
    cell = f"{100.0 * result.held / result.given:.1f}"
    if result.case.is_rate and result.above in (0, result.given - result.held):
        cell += "¹"
    return cell + (f" ({refused:.1%} not enough data)" if refused > 0 else "")
