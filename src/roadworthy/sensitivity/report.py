"""The report of an analysis: one self-contained HTML file, its pictures as PNG and its figures as JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

from roadworthy.sensitivity.agreement import USUAL_ERROR
from roadworthy.sensitivity.analysis import Analysis, as_json
from roadworthy.sensitivity.difference_report import CAPTIONS as DIFFERENCE_CAPTIONS
from roadworthy.sensitivity.difference_report import difference_words
from roadworthy.sensitivity.draw import main_figure, pictures
from roadworthy.sensitivity.factors import Categorical
from roadworthy.sensitivity.importance import Importance, Verdict

MOST_REJECTED_SHOWN = 50
WORTH_NAMING = 0.05  # an interaction with this share of the variance

STYLE = """
:root { color-scheme: light dark; --ink: #222; --page: #fff; --soft: #666; --panel: #fff6dd; --doubt: #94690c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebe9; --page: #14181b; --soft: #9aa5ac; --panel: #2b2619; --doubt: #dbb04a; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
img { max-width: 100%; background: #fff; } .note { color: var(--soft); font-size: 0.9rem; }
.warnings { background: var(--panel); border-left: 4px solid #c2912b; padding: 0.5rem 1rem; }
table { border-collapse: collapse; font-size: 0.9rem; display: block; overflow-x: auto; overflow-wrap: normal; }
th, td { padding: 0.25rem 0.8rem; text-align: right; }
th { border-bottom: 1px solid #999; } td:first-child, th:first-child { text-align: left; }
.matters { font-weight: 600; } .irrelevant { color: var(--soft); } .undecided { color: var(--doubt); }
"""

CAPTIONS = {
    **DIFFERENCE_CAPTIONS,
    "importance": (
        "Importance of factors",
        "Dark: the share of all variation that the factor explains alone; light: with its interactions; the line is "
        "the interval. A factor matters if it explains what the other factors leave unexplained better than chance (p "
        "at most 0.05). It is irrelevant only if its whole interval is small, left of the dotted line, and that of its "
        "swing too. Otherwise these episodes can't tell.",
    ),
    "curves": (
        "Along each factor",
        "The curve is averaged over all other factors. The dark band is pointwise: it holds the truth at nine of ten "
        "points. The light one is simultaneous: it holds the whole curve nine times in ten. Dots are binned rows, with "
        "intervals; they differ from the curve where other factors were sampled unevenly. Ticks at the bottom are "
        "episodes, successes (green) above failures (red). The dotted line is the average. Near a step, the band spans "
        "the values on both sides, because the fit can't locate the step exactly.",
    ),
    "given": (
        "Successes and failures by value",
        "The frequency of each value among successes and among failures, if every value had been tried equally often. "
        "At 1 the outcome says nothing about the value.",
    ),
    "neural": (
        "Neural posterior",
        "The same distributions, learned by a network that assumes no form (dashed; crosses for choices), beside those "
        "of the surface (curves with bands; dots). The number is their distance: 0 for equal, 1 for disjoint.",
    ),
    "pairs": (
        "Two factors together",
        "Averaged over all other factors, strongest interactions first. Curves have pointwise bands. On maps, dots are "
        "episodes; cells without episodes are crossed out, and their color is an extrapolation. Near a step, bands "
        "have less than their nominal coverage.",
    ),
    "calibration": (
        "Can this be trusted?",
        "Every row was predicted by a surface fitted without it. Points on the dotted line mean that predicted and "
        "observed rates agree.",
    ),
    "next": (
        "Episodes to run next",
        "Stars are the most informative episodes; the surface is least certain in dark areas.",
    ),
}


def write_report(analysis: Analysis, path: Path) -> list[Path]:
    """Write PATH.html, PATH.json and a folder of PNG files beside it; return all paths."""
    drawn = pictures(analysis)
    folder = path.with_name(f"{path.stem}_pictures")
    folder.mkdir(parents=True, exist_ok=True)
    written = [path, path.with_suffix(".json")]
    path.write_text(html(analysis, drawn), encoding="utf-8")
    written[1].write_text(json.dumps(as_json(analysis), indent=1) + "\n", encoding="utf-8")
    for name, png in drawn.items():
        target = folder / f"{name}.png"
        target.write_bytes(png)
        written.append(target)
    return written


def write_main_figure(analysis: Analysis, path: Path) -> list[Path]:
    """Write the main figure in the format of the path's suffix, and PATH.json beside it; return both paths."""
    written = [path, path.with_suffix(".json")]
    path.write_bytes(main_figure(analysis, path.suffix.lower()))
    written[1].write_text(json.dumps(as_json(analysis), indent=1) + "\n", encoding="utf-8")
    return written


def html(analysis: Analysis, drawn: dict[str, bytes]) -> str:
    """Return the report as one page with its pictures."""
    name = escape(analysis.rows.outcome_name)
    body = [f"<h1>What decides {name}</h1>", f"<p>{escape(_first_words(analysis))}</p>"]
    if analysis.difference is not None:
        first, second = map(escape, analysis.difference.names)
        body.append(f"<h2>{second} compared with {first}</h2>")
        body.append(_list(difference_words(analysis.difference)))
        body.append(f"<h2>What decides {name} in {first}</h2>")
    body.append(_list(findings(analysis)))
    if analysis.warnings or analysis.rows.rejected:
        body.append(_warnings(analysis))
    for key, (title, caption) in CAPTIONS.items():
        if key in drawn:
            source = b64encode(drawn[key]).decode("ascii")
            body.append(
                f'<h2>{escape(title)}</h2><p><img alt="{escape(title)}" src="data:image/png;base64,{source}"></p>'
            )
            body.append(f'<p class="note">{escape(caption)}</p>')
            if key == "importance":
                body.append(_importance_table(analysis))
            if key == "neural":
                body.append(f"<p>{escape(beside(analysis))}</p>{_neural_table(analysis)}")
            if key == "calibration":
                body.append(f"<p>{escape(trust(analysis))}</p>")
            if key == "next":
                body.append(_suggestion_table(analysis))
    body.append(f'<p class="note">{escape(_method(analysis))}</p>')
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What decides {name}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _list(lines: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def findings(analysis: Analysis) -> list[str]:
    """Return a sentence per factor, most important first."""
    return [_finding(analysis, number) for number in analysis.ranking]


def trust(analysis: Analysis) -> str:
    """Return sentences about the held-out rows and the simulated experiments."""
    calibration, twins = analysis.calibration, analysis.twins
    skill = (
        f"Predictions of held-out rows reduce the squared error of the mean by {calibration.skill:.0%}"
        if calibration.skill > 0.0
        else "Predictions of held-out rows are not better than the mean"
    )
    words = (
        f"{skill}; in {calibration.bins_within} of {len(calibration.bins)} bins, the mean prediction is inside the 90% "
        "interval of the observations."
    )
    if twins.curves is None or twins.points is None:
        return f"{words} In experiments like this one, outcomes hardly ever differ, so bands could not be tested."
    return (
        f"{words} In {twins.twins} simulated experiments with a known truth, pointwise {twins.promised:.0%} bands "
        f"covered {twins.curves:.0%} of the curves and {twins.points:.0%} of the surface, and simultaneous bands "
        f"{twins.whole_curves:.0%} of whole curves."
    )


def beside(analysis: Analysis) -> str:
    """Return sentences that compare the neural posterior with the surface; empty if there is none."""
    neural, found = analysis.neural, analysis.neural_distances
    if neural is None:
        return ""
    if not found:
        outcomes = " and ".join(f"{outcome:.3g}" for outcome in neural.outcomes)
        return (
            f"{neural.method}: the distributions of the factors where {analysis.rows.outcome_name} is {outcomes}. The "
            "surface has no such distributions for a continuous outcome, so they can't be compared."
        )
    worst = max(found, key=lambda distance: distance.larger)
    mean = sum(distance.given_success + distance.given_failure for distance in found) / (2 * len(found))
    words = (
        f"{neural.method} and the surface are {mean:.2f} apart on average, {worst.larger:.2f} at most ({worst.factor})."
    )
    if worst.larger > 3 * USUAL_ERROR:
        return (
            f"{words} This exceeds the usual error of the network ({USUAL_ERROR:.2f} in experiments with even sampling "
            "and a known truth): it has too few rows, sampling was uneven without a recorded density, or the surface "
            "does not have the right form. The dots beside the curves above show which of the two fits the rows."
        )
    return (
        f"{words} This is within the usual error of the network ({USUAL_ERROR:.2f} on average in experiments with even "
        "sampling and a known truth): they agree."
    )


def _finding(analysis: Analysis, number: int) -> str:
    found, surface = analysis.importance[number], analysis.surface
    factor, curve, grid = surface.factors[number], surface.marginal(number), surface.grid(number)
    if found.verdict is Verdict.IRRELEVANT:
        return (
            f"{factor.name} is irrelevant: {_most(analysis, found)}, and given the other factors chance explains as "
            f"much (p = {found.p_value:.2f})."
        )
    if found.verdict is Verdict.UNDECIDED:
        return (
            f"{factor.name} is undecided: given the other factors chance explains as much (p = {found.p_value:.2f}), "
            f"but there is not enough data to call it irrelevant: {_most(analysis, found)}."
        )
    lowest, highest = int(curve.mean.argmin()), int(curve.mean.argmax())
    name = analysis.rows.outcome_name
    what = f"the probability of {name}" if surface.is_binary else f"mean {name}"
    ends = [
        f"{curve.mean[place]:.2f} ({curve.low[place]:.2f} to {curve.high[place]:.2f}) at {_value(factor, grid[place])}"
        for place in (lowest, highest)
    ]
    partner = int(analysis.interactions[number].argmax())
    share, together = analysis.interactions[number, partner], ""
    if share >= WORTH_NAMING:
        together = f", {share:.0%} together with {surface.factors[partner].name}"
    return (
        f"{factor.name} matters: {what} goes from {ends[0]} to {ends[1]}. Its share of the variation is "
        f"{found.total.mean:.0%} ({found.total.low:.0%} to {found.total.high:.0%}): {found.first_order.mean:.0%} "
        f"alone{together}."
    )


def _most(analysis: Analysis, found: Importance) -> str:
    """Return the upper ends of a factor's intervals in words."""
    what = "the probability" if analysis.surface.is_binary else f"mean {analysis.rows.outcome_name}"
    return (
        f"it changes {what} by at most {found.swing.high:.2g}, and its share of the variation is at most "
        f"{found.total.high:.0%}"
    )


def _p(value: float) -> str:
    return f"{value:.3f}" if value < 0.01 else f"{value:.2f}"


def _first_words(analysis: Analysis) -> str:
    rows, rate = analysis.rows, analysis.surface.rate()
    kind = "probability" if rows.is_binary else "mean"
    observed = f"{rows.outcome.mean():.1%} of rows" if rows.is_binary else f"a mean of {rows.outcome.mean():.4g}"
    return (
        f"{len(rows)} episodes, {len(rows.factors)} factors. Observed: {observed}. If every value of every factor had "
        f"been tried equally often: a {kind} of {float(rate.mean):.3g} "
        f"({float(rate.low):.3g} to {float(rate.high):.3g}, "
        f"{analysis.surface.config.band:.0%} band)."
    )


def _warnings(analysis: Analysis) -> str:
    lines = [f"<li>{escape(warning.message)}</li>" for warning in analysis.warnings]
    rejected = analysis.rows.rejected
    if rejected:
        shown = "".join(f"<li>{escape(row.name)}: {escape(row.reason)}</li>" for row in rejected[:MOST_REJECTED_SHOWN])
        rest = len(rejected) - MOST_REJECTED_SHOWN
        more = f"<li>and {rest} more, listed in the JSON file</li>" if rest > 0 else ""
        lines.append(
            f"<li><details><summary>{len(rejected)} rows were left out</summary><ul>{shown}{more}</ul></details></li>"
        )
    return f'<div class="warnings"><b>Before you believe it</b><ul>{"".join(lines)}</ul></div>'


def _importance_table(analysis: Analysis) -> str:
    head = "".join(f"<th>{word}</th>" for word in ("factor", "verdict", "total", "alone", "swing", "p"))
    rows = "".join(_importance_row(analysis.importance[number]) for number in analysis.ranking)
    return f"<table><tr>{head}</tr>{rows}</table>"


def _importance_row(found: Importance) -> str:
    cells = [
        f"<td>{escape(found.factor)}</td>",
        f'<td class="{found.verdict.value}">{found.verdict.value}</td>',
        *(f"<td>{part.mean:.2f} ({part.low:.2f}–{part.high:.2f})</td>" for part in (found.total, found.first_order)),
        f"<td>{found.swing.mean:.2f} ({found.swing.low:.2f}–{found.swing.high:.2f})</td>",
        f"<td>{_p(found.p_value)}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _neural_table(analysis: Analysis) -> str:
    if not analysis.neural_distances:
        return ""
    head = "".join(f"<th>{word}</th>" for word in ("factor", "apart given success", "apart given failure"))
    rows = "".join(
        f"<tr><td>{escape(found.factor)}</td><td>{found.given_success:.3f}</td><td>{found.given_failure:.3f}</td></tr>"
        for found in analysis.neural_distances
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _suggestion_table(analysis: Analysis) -> str:
    factors = analysis.surface.factors
    head = "".join(f"<th>{escape(factor.name)}</th>" for factor in factors)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(row[factor.name]))}</td>" for factor in factors) + "</tr>"
        for row in analysis.suggestions
    )
    summary = f"<summary>{len(analysis.suggestions)} episodes</summary>"
    return f"<details>{summary}<table><tr>{head}</tr>{rows}</table></details>"


def _method(analysis: Analysis) -> str:
    config = analysis.surface.config
    form = {
        "splines": "Bayesian regression with splines, pairwise interactions and one scale per block",
        "process": "Gaussian process with a product kernel",
    }[config.model]
    return (
        f"Surface: {form}; {config.draws} posterior draws, seed {config.seed}. Averages are over uniform ranges and "
        f"equally frequent choices. Each factor is tested given the others, against {analysis.config.flips} random "
        "signs of the residuals of each cluster."
    )


def _value(factor: Any, unit: float) -> str:
    value = factor.value(unit)
    return str(value) if isinstance(factor, Categorical) else f"{value:.4g}"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
