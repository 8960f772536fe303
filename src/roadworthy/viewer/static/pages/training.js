// A training: its curves, with the figures of its evaluations on the same axis.

import { address, append, h, replace } from "../dom.js";
import { Episodes } from "../episodes.js";
import { onLeave } from "../leave.js";
import { lineChart } from "../plots/line_chart.js";
import { count, duration, isShare, many, number, plainName, shared } from "../words.js";

const MOST_FIGURES = 6;

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const home = `data/training/${state.path[1]}`;
  let training = await source.json(`${home}/training.json`);
  let runs = (await source.json("data/runs.json")).runs;
  const updates = new Episodes(source, home, "progress");
  await updates.update(training.rows);
  const head = h("div");
  const charts = h("div");
  append(root, head, charts);
  draw();
  return onLeave(
    source.watch(`${home}/training.json`, async (value) => {
      training = value;
      runs = (await source.json("data/runs.json")).runs;
      await updates.update(training.rows);
      draw();
    }),
    source.watch(
      "data/runs.json",
      (value) => {
        runs = value.runs;
        draw();
      },
      3,
    ),
  );

  function draw() {
    const steps = numbers("step");
    const inside = runs.filter((/** @type {any} */ run) => training.runs.includes(run.key));
    const last = updates.count - 1;
    replace(
      head,
      h("p", { class: "over" }, "Training"),
      h("h1", null, training.path),
      h(
        "p",
        { class: "lead" },
        many(updates.count, "update"),
        last >= 0 ? ` · step ${count(steps[last])}` : "",
        updates.get(last, "steps") ? ` of ${count(updates.get(last, "steps"))}` : "",
        updates.get(last, "seconds") ? ` · ${duration(updates.get(last, "seconds"))}` : "",
        updates.get(last, "steps_per_s") ? ` · ${count(Math.round(updates.get(last, "steps_per_s")))} steps/s` : "",
      ),
      updates.get(last, "steps")
        ? h("progress", { max: updates.get(last, "steps"), value: steps[last], "aria-label": "steps" })
        : null,
    );
    /** @type {[number, number]} */
    const domain = [0, Math.max(1, ...steps, ...inside.map((/** @type {any} */ run) => run.step ?? 0))];
    const names = figureNames(inside);
    const others = [...updates.columns.keys()].filter(
      (name) => name.startsWith("losses.") || ["learning_rate", "steps_per_s"].includes(name),
    );
    replace(
      charts,
      h("h2", null, "Figures"),
      h(
        "p",
        { class: "note" },
        "Lines: the egos in training, with its disturbances and random settings. Dots: evaluations, with intervals; each leads to its run.",
      ),
      h(
        "div",
        { class: "charts" },
        names.map((name) => figureChart(name, steps, inside, domain)),
      ),
      h("h2", null, "Losses and speed"),
      h(
        "div",
        { class: "charts" },
        others.map((name) =>
          lineChart({
            title: name === "steps_per_s" ? "steps per second" : plainName(name.replace("losses.", "")),
            across: "step",
            domain,
            series: [{ name: "training", kind: "line", x: steps, y: numbers(name) }],
          }),
        ),
      ),
      inside.length ? evaluations(inside) : null,
    );
  }

  /** @param {any[]} inside @returns {string[]} */
  function figureNames(inside) {
    const trained = [...updates.columns.keys()]
      .filter((name) => name.startsWith("figures."))
      .map((name) => name.slice(8));
    const evaluated = inside.flatMap((run) =>
      run.figures
        .filter((/** @type {any} */ figure) => figure.value !== null)
        .map((/** @type {any} */ figure) => figure.name),
    );
    const known = [...new Set([...trained, ...evaluated])];
    const rank = (/** @type {string} */ name) =>
      shared.headlines.includes(name) ? shared.headlines.indexOf(name) : evaluated.includes(name) ? 50 : 99;
    return known.sort((a, b) => rank(a) - rank(b)).slice(0, MOST_FIGURES);
  }

  /** @param {string} name @param {Float64Array} steps @param {any[]} inside @param {[number, number]} domain */
  function figureChart(name, steps, inside, domain) {
    /** @type {import("../plots/line_chart.js").Series[]} */
    const series = [];
    if (updates.columns.has(`figures.${name}`))
      series.push({ name: "training", kind: "line", x: steps, y: numbers(`figures.${name}`) });
    let unit = "1";
    [...new Set(inside.map((run) => run.evaluator))].sort().forEach((evaluator, k) => {
      const points = inside
        .filter((run) => run.evaluator === evaluator && run.step !== null)
        .sort((a, b) => a.step - b.step)
        .flatMap((run) =>
          run.figures
            .filter((/** @type {any} */ figure) => figure.name === name)
            .map((/** @type {any} */ figure) => ({ run, figure })),
        );
      if (!points.length) return;
      unit = points[0].figure.unit;
      series.push({
        name: evaluator,
        kind: "points",
        color: (k + 1) % 5,
        x: points.map(({ run }) => run.step),
        y: points.map(({ figure }) => figure.value),
        low: points.map(({ figure }) => figure.low),
        high: points.map(({ figure }) => figure.high),
        links: points.map(({ run }) => address(["run", run.key])),
        labels: points.map(({ run }) => `${evaluator} at step ${count(run.step)}`),
      });
    });
    const share = unit === "share" || isShare(name);
    return lineChart({
      title: plainName(name),
      series,
      across: "step",
      domain,
      range: share ? [0, 1] : undefined,
      format: (value) => number(value, share ? "share" : unit),
    });
  }

  /** @param {string} name @returns {Float64Array} */
  function numbers(name) {
    const column = updates.column(name);
    return column?.kind === "number"
      ? column.values.subarray(0, updates.count)
      : new Float64Array(updates.count).fill(NaN);
  }
}

/** @param {any[]} inside */
function evaluations(inside) {
  const suites = [...new Set(inside.map((run) => run.evaluator))].sort();
  return h(
    "section",
    null,
    h("h2", null, "Evaluations"),
    h(
      "ul",
      null,
      suites.map((suite) =>
        h(
          "li",
          null,
          h("a", { href: address(["history"], { suite }) }, `History of ${suite}`),
          ": ",
          inside
            .filter((run) => run.evaluator === suite)
            .sort((a, b) => (a.step ?? 0) - (b.step ?? 0))
            .map((run) => [
              h("a", { href: address(["run", run.key]) }, run.step === null ? run.policy : `step ${count(run.step)}`),
              " ",
            ])
            .flat(),
        ),
      ),
    ),
  );
}
