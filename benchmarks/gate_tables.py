"""Write the tables of docs/gate.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from roadworthy.statistics.sequential import ERROR

if TYPE_CHECKING:
    from benchmarks.gate import LookTime, Methods, Power, Wrong

DOCUMENT = Path(__file__).parent.parent / "docs" / "gate.md"


def write_tables(
    wrong: Sequence[Wrong],
    power: Sequence[Power],
    looks: Sequence[LookTime],
    methods: Sequence[Methods],
    streams: int,
    margin: float,
) -> None:
    """Write the tables into the document between its markers."""
    text = DOCUMENT.read_text(encoding="utf-8")
    tables = {"wrong decisions": _wrong(wrong, streams), "power": _power(power), "look": _look(looks)}
    tables |= {"methods": _methods(methods, margin), "forecasts": _forecasts(methods, margin)}
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- gate: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{DOCUMENT} has no markers for the table of {name}")
        text = pattern.sub(lambda match, table=table: f"{match[1]}{table}{match[2]}", text)  # type: ignore[misc]
    DOCUMENT.write_text(text, encoding="utf-8")


def _wrong(rows: Sequence[Wrong], streams: int) -> str:
    names = list(rows[0].shares)
    lines = [f"| pairs | margin m | {' | '.join(names)} |", f"|{'---|' * (2 + len(names))}"]
    for row in rows:
        cells = [f"{100.0 * share:.2f}%" for share in row.shares.values()]
        lines.append(f"| {row.case.name} | {row.margin:g} | {' | '.join(cells)} |")
    half = 196.0 * sqrt(ERROR * (1.0 - ERROR) / streams)
    note = f"{streams:,} streams each, 2,000 looks per stream; Monte-Carlo error at 5%: ±{half:.2f} points."
    return "\n".join([*lines, "", note, ""])


def _power(rows: Sequence[Power]) -> str:
    heads = ["pairs", "true difference", "gate: decided", "gate: mean pairs", "fixed n of the same power"]
    heads += ["10 looks, Bonferroni: decided", "its mean pairs"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        fixed = "more" if row.fixed_pairs is None else f"{row.fixed_pairs:,}"
        cells = [f"{100.0 * row.decided:.1f}%", f"{row.pairs:,.0f}", fixed]
        cells += [f"{100.0 * row.group_decided:.1f}%", f"{row.group_pairs:,.0f}"]
        lines.append(f"| {row.case.name} | {row.difference:g} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Margin {rows[0].margin:g}; streams end after 2,000 clusters.", ""])


def _look(rows: Sequence[LookTime]) -> str:
    lines = ["| pairs in a cluster | clusters | a look |", "|---|---|---|"]
    for row in rows:
        size = f"{row.sizes[0]}" if row.sizes[0] == row.sizes[1] else f"{row.sizes[0]} to {row.sizes[1]}"
        lines.append(f"| {size} | {row.clusters:,} | {row.milliseconds:.1f} ms |")
    return "\n".join([*lines, ""])


def _methods(rows: Sequence[Methods], margin: float) -> str:
    names = list(rows[0].pairs)
    lines = [f"| pairs | {' | '.join(names)} |", f"|{'---|' * (1 + len(names))}"]
    lines += [f"| {row.case.name} | {' | '.join(f'{mean:,.0f}' for mean in row.pairs.values())} |" for row in rows]
    return "\n".join([*lines, "", f"Mean number of pairs, margin {margin:g}, true difference 0.", ""])


def _forecasts(rows: Sequence[Methods], margin: float) -> str:
    heads = ("pairs", "made after", "10% of streams", "median", "90% of streams", "no forecast")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        found = row.forecast
        if found is not None:
            cells = (f"{found.at * row.case.pairs:,}", f"{found.low:.2f}", f"{found.median:.2f}", f"{found.high:.2f}")
            lines.append(f"| {row.case.name} | {' | '.join(cells)} | {found.none:.0%} |")
    return "\n".join([*lines, "", f"Margin {margin:g}, true difference 0, 200 streams.", ""])
