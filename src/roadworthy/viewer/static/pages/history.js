// The history of one suite: a figure of all its runs over checkpoints or over time.

import { address, append, h, replace } from "../dom.js";
import { onLeave } from "../leave.js";
import { lineChart } from "../plots/line_chart.js";
import { intervalCell } from "../widgets/interval.js";
import { count, moment, number, plainName, shared } from "../words.js";

const DAY_MS = 86_400_000;
const COLORS = 5;

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  let runs = (await source.json("data/runs.json")).runs;
  const controls = h("div", { class: "controls" });
  const box = h("div");
  append(root, h("h1", null, "History of a suite"), controls, box);
  draw();
  return onLeave(
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
    const suites = [
      ...new Set(
        runs.filter((/** @type {any} */ run) => run.figures.length).map((/** @type {any} */ run) => run.evaluator),
      ),
    ].sort();
    const size = (/** @type {string} */ name) =>
      runs.filter((/** @type {any} */ run) => run.evaluator === name && !run.role).length;
    const suite = suites.includes(state.get("suite"))
      ? state.get("suite")
      : [...suites].sort((a, b) => size(b) - size(a))[0];
    const members = runs.filter((/** @type {any} */ run) => run.evaluator === suite && run.figures.length && !run.role);
    const known = new Set(
      members.flatMap((/** @type {any} */ run) => run.figures.map((/** @type {any} */ figure) => figure.name)),
    );
    const names = [
      ...shared.headlines.filter((/** @type {string} */ name) => known.has(name)),
      ...[...known].filter((name) => !shared.headlines.includes(name)),
    ];
    const figure = names.includes(state.get("figure")) ? state.get("figure") : names[0];
    const policy = state.get("policy");
    const policies = [...new Set(members.map((/** @type {any} */ run) => run.policy))].sort();
    const byStep =
      state.get("over", members.some((/** @type {any} */ run) => run.step !== null) ? "step" : "time") === "step";
    const change = (/** @type {Record<string, string>} */ values) => {
      state.set(values);
      draw();
    };
    const select = (
      /** @type {string} */ label,
      /** @type {string} */ name,
      /** @type {string} */ chosen,
      /** @type {[string, string][]} */ options,
    ) =>
      h(
        "label",
        null,
        label,
        h(
          "select",
          { onchange: (/** @type {any} */ event) => change({ [name]: event.target.value }) },
          options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
        ),
      );
    if (!suites.length) return replace(box, h("p", { class: "muted" }, "No run has ended yet."));
    replace(
      controls,
      select(
        "Suite",
        "suite",
        suite,
        suites.map((name) => [name, name]),
      ),
      select(
        "Figure",
        "figure",
        figure,
        names.map((name) => [name, plainName(name)]),
      ),
      select("Policy", "policy", policy, [
        ["", "all"],
        ...policies.map((name) => /** @type {[string, string]} */ ([name, name])),
      ]),
      select("Over", "over", byStep ? "step" : "time", [
        ["step", "training step"],
        ["time", "date"],
      ]),
    );
    const shown = members.filter((/** @type {any} */ run) => !policy || run.policy === policy);
    replace(box, chart(shown, figure, byStep), table(shown, figure));
  }
}

/** @param {any[]} runs @param {string} name @param {boolean} byStep */
function chart(runs, name, byStep) {
  const first = Math.min(...runs.map((run) => Date.parse(run.created)));
  const place = (/** @type {any} */ run) => (byStep ? run.step : (Date.parse(run.created) - first) / DAY_MS);
  let unit = "1";
  const series = [...new Set(runs.map((run) => run.policy))]
    .sort()
    .map((policy, k) => {
      const points = runs
        .filter((run) => run.policy === policy && place(run) !== null)
        .sort((a, b) => place(a) - place(b))
        .flatMap((run) => {
          const figure = run.figures.find((/** @type {any} */ other) => other.name === name);
          return figure ? [{ run, figure }] : [];
        });
      if (points.length) unit = points[0].figure.unit;
      return /** @type {import("../plots/line_chart.js").Series} */ ({
        name: policy,
        kind: "points",
        color: k % COLORS,
        x: points.map(({ run }) => place(run)),
        y: points.map(({ figure }) => figure.value),
        low: points.map(({ figure }) => figure.low),
        high: points.map(({ figure }) => figure.high),
        links: points.map(({ run }) => address(["run", run.key])),
        labels: points.map(
          ({ run }) => `${policy}${run.step === null ? "" : `, step ${count(run.step)}`}, ${moment(run.created)}`,
        ),
      });
    })
    .filter((one) => one.x.length);
  if (!series.length)
    return h(
      "p",
      { class: "muted" },
      byStep ? "No run names its training step; choose the date." : "No run has this figure.",
    );
  return h(
    "div",
    { class: "charts wide" },
    lineChart({
      title: plainName(name),
      series,
      across: byStep ? "training step" : "days since the first run",
      range: unit === "share" ? [0, 1] : undefined,
      width: 900,
      format: (value) => number(value, unit),
    }),
  );
}

/** @param {any[]} runs @param {string} name */
function table(runs, name) {
  const order = [...runs].sort((a, b) => (a.created < b.created ? 1 : -1));
  return h(
    "div",
    { class: "scroll", tabindex: 0 },
    h(
      "table",
      { class: "list" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["policy", "step", "started"].map((text) => h("th", { scope: "col" }, text)),
          h("th", { scope: "col", class: "number" }, plainName(name)),
          h("th", { scope: "col", class: "number" }, "episodes"),
        ),
      ),
      h(
        "tbody",
        null,
        order.map((run) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, h("a", { href: address(["run", run.key]) }, run.policy)),
            h("td", null, run.step === null ? "–" : count(run.step)),
            h("td", { class: "date" }, moment(run.created)),
            intervalCell(run.figures.find((/** @type {any} */ figure) => figure.name === name)),
            h("td", { class: "number" }, count(run.ended_episodes)),
          ),
        ),
      ),
    ),
  );
}
