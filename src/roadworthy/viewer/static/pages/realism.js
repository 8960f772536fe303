// The realism of a run: likelihoods, and the histograms of recordings and rollouts behind them.

import { address, append, h } from "../dom.js";
import { lineChart } from "../plots/line_chart.js";
import { figureList } from "../widgets/figure_tiles.js";
import { many, number, plainName, shared } from "../words.js";

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const key = state.path[1];
  const run = await source.json(`data/run/${key}/run.json`);
  const { realism } = run.metrics;
  append(
    root,
    h("p", { class: "over" }, "Realism"),
    h("h1", null, run.evaluator),
    h("p", { class: "lead" }, h("a", { href: address(["run", key]) }, run.policy)),
  );
  if (!realism) {
    append(
      root,
      h("p", null, "This run has no realism figures: its evaluator is not of type realism, or it has not ended."),
    );
    return;
  }
  const figures = run.metrics.figures.filter(
    (/** @type {any} */ figure) =>
      figure.unit === "likelihood" ||
      figure.name === "realism" ||
      figure.name.startsWith("simulated_") ||
      figure.name.endsWith("_error"),
  );
  const parts = [...realism.parts].sort((a, b) => b.weight - a.weight);
  append(
    root,
    h("p", { class: "note" }, shared.realismNote.replace("{}", realism.challenge)),
    realism.unscored?.length
      ? h(
          "details",
          { class: "warnings" },
          h("summary", null, `${many(realism.unscored.length, "scenario")} could not be scored`),
          h(
            "ul",
            null,
            realism.unscored.map((/** @type {any} */ entry) => h("li", null, `${entry.scenario_id}: ${entry.reason}`)),
          ),
        )
      : null,
    h("div", { class: "figure-list columns" }, figureList(figures, null, run.references)),
    h("h2", null, "Behind the likelihoods"),
    h(
      "p",
      { class: "note" },
      "The share of values in each bin: the recordings and the rollouts. Values beyond the range are in the first or the last bin.",
    ),
    h(
      "div",
      { class: "charts" },
      parts
        .filter((part) => part.edges)
        .map((part) => {
          // Both ends of each bin, so that the line has steps.
          const ends = part.edges.flatMap((/** @type {number} */ edge) => [edge, edge]).slice(1, -1);
          return lineChart({
            title: `${plainName(part.name)}, ${shared.realismUnits[part.name] ?? ""}; weight ${part.weight}`,
            across: shared.realismUnits[part.name] ?? "",
            series: [
              { name: "rollouts", kind: "line", x: ends, y: shares(part.simulated), color: 0 },
              { name: "recordings", kind: "line", x: ends, y: shares(part.log), color: 2 },
            ],
            format: (value) => number(value, "share"),
          });
        }),
    ),
  );
}

/** The share of each bin, twice. @param {number[]} counts */
function shares(counts) {
  const total = counts.reduce((sum, part) => sum + part, 0) || 1;
  return counts.flatMap((part) => [part / total, part / total]);
}
