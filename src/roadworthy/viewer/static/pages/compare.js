// Two runs side by side: their figures, the differences, and the episodes whose outcome flipped.

import { pairs } from "../compare_pairs.js";
import { address, append, h, replace } from "../dom.js";
import { Episodes } from "../episodes.js";
import { differences } from "../widgets/differences.js";
import { flipTable } from "../widgets/flip_table.js";
import { pairedDots } from "../plots/paired_dots.js";
import { intervalBar, sharedScale } from "../widgets/interval.js";
import { statusChip } from "../widgets/chips.js";
import { columnName, intervalOf, many, moment, plainName, shared, valueOf } from "../words.js";

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const { runs } = await source.json("data/runs.json");
  const [, a, b] = state.path;
  append(root, h("h1", null, "Compare two runs"), chooser(runs, a, b));
  const known = new Set(runs.map((/** @type {any} */ run) => run.key));
  if (!a || !b) return;
  for (const key of [a, b]) if (!known.has(key)) throw new Error(`there is no run ${key} below these folders`);
  const [first, second] = await Promise.all([a, b].map((key) => source.json(`data/run/${key}/run.json`)));
  append(root, heads(first, second));
  const found = await comparison(source, a, b);
  append(
    root,
    found.value
      ? differences(found.value, first, second)
      : h("div", null, found.note ? h("p", { class: "note" }, found.note) : null, sideBySide(first, second)),
  );
  const [left, right] = await Promise.all([a, b].map((key) => Episodes.open(source, key)));
  const same = pairs(left, right);
  if (!same.length) {
    append(
      root,
      h(
        "p",
        { class: "warnings" },
        "The two runs share no episode (no scenario with the same seed and replicate), so they can't be compared in pairs.",
      ),
    );
    return;
  }
  const outcomes = [...left.columns.keys()].filter((name) => name.startsWith("outcomes.") && right.columns.has(name));
  const main =
    shared.mainOutcomes
      .map((/** @type {string} */ name) => `outcomes.${name}`)
      .find((/** @type {string} */ name) => outcomes.includes(name)) ?? outcomes[0];
  const box = h("section", { "aria-label": "Pairs" });
  append(root, box);
  draw();
  if (state.get("class")) requestAnimationFrame(() => box.scrollIntoView());

  function draw() {
    const outcome = outcomes.includes(state.get("outcome")) ? state.get("outcome") : main;
    if (!outcome) return;
    const by = { left, right, same, outcome, first, second };
    replace(
      box,
      h("h2", null, `${many(same.length / 2, "pair")} of episodes`),
      h(
        "div",
        { class: "controls" },
        h(
          "label",
          null,
          "Outcome",
          h(
            "select",
            {
              onchange: (/** @type {any} */ event) => {
                state.set({ outcome: event.target.value });
                draw();
              },
            },
            outcomes.map((name) => h("option", { value: name, selected: name === outcome }, columnName(name))),
          ),
        ),
      ),
      pairedDots(by),
      flipTable(by, state, draw),
    );
  }
}

/** @param {import("../source.js").Source} source @param {string} a @param {string} b */
async function comparison(source, a, b) {
  try {
    const found = await source.json(`data/compare/${a}/${b}.json`);
    return { value: found.comparison, note: found.reason };
  } catch (error) {
    const isLeftOut = /** @type {any} */ (error).status === 404 && !source.isLive; // a bundle has the pairs it was given
    if (!isLeftOut) throw error;
    return { value: null, note: "This bundle holds no comparison of these two runs; the figures are side by side." };
  }
}

/** @param {any[]} runs @param {string | undefined} a @param {string | undefined} b */
function chooser(runs, a, b) {
  const usable = runs.filter((run) => run.status !== "damaged");
  const select = (/** @type {string} */ name, /** @type {string | undefined} */ chosen) =>
    h(
      "select",
      { name, required: true },
      h("option", { value: "" }, "choose a run"),
      usable.map((run) =>
        h(
          "option",
          { value: run.key, selected: run.key === chosen },
          `${run.evaluator}: ${run.policy}, ${moment(run.created).slice(0, 16)}${run.role ? `, ${run.role}` : ""}`,
        ),
      ),
    );
  const form = h(
    "form",
    {
      class: "controls",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const data = new FormData(form);
        location.hash = address(["compare", String(data.get("a")), String(data.get("b"))]);
      },
    },
    h("label", { class: "grow" }, "A", select("a", a)),
    h("label", { class: "grow" }, "B", select("b", b)),
    h("button", null, "Compare"),
    a && b ? h("a", { href: address(["compare", b, a]) }, "Swap") : null,
  );
  return form;
}

/** @param {any} first @param {any} second */
function heads(first, second) {
  return h(
    "div",
    { class: "heads" },
    [first, second].map((run, k) =>
      h(
        "div",
        { class: ["head", k ? "c3" : "c0"] },
        h("b", null, "AB"[k], " "),
        h("a", { href: address(["run", run.key]) }, `${run.evaluator}: ${run.policy}`),
        " ",
        statusChip(run.status),
        h("div", { class: "note" }, moment(run.created)),
      ),
    ),
    first.ledger_hash === second.ledger_hash
      ? h("p", { class: "note" }, "Both ran the same episodes.")
      : h("p", { class: "note" }, "The two ledgers differ; only episodes that both have are paired."),
  );
}

/** The figures of both, without an interval of the difference. @param {any} first @param {any} second */
function sideBySide(first, second) {
  const others = new Map((second.metrics.figures ?? []).map((/** @type {any} */ figure) => [figure.name, figure]));
  const both = (first.metrics.figures ?? []).filter(
    (/** @type {any} */ figure) => figure.per !== "scenario" && others.has(figure.name) && figure.value !== null,
  );
  if (!both.length) return h("p", { class: "muted" }, "There are no figures of both runs yet.");
  return h(
    "section",
    { "aria-label": "Figures" },
    h("h2", null, "Figures"),
    h(
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
            ["figure", "A", "", "B", ""].map((text) => h("th", { scope: "col" }, text)),
          ),
        ),
        h(
          "tbody",
          null,
          both.map((/** @type {any} */ figure) => {
            const other = /** @type {any} */ (others.get(figure.name));
            const scale = sharedScale([figure, other]);
            return h(
              "tr",
              { "data-figure": figure.name },
              h("th", { scope: "row" }, plainName(figure.name)),
              [figure, other].flatMap((one, k) => [
                h("td", { class: "number" }, valueOf(one), h("div", { class: "note" }, intervalOf(one))),
                h("td", { class: ["plot", k ? "c3" : "c0"] }, intervalBar(one, scale, 120)),
              ]),
            );
          }),
        ),
      ),
    ),
  );
}
