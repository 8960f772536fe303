// Plots of columns that select episodes: histograms, bars, and two columns against each other.

import { h, replace } from "../dom.js";
import { bars } from "../plots/bars.js";
import { histogram } from "../plots/histogram.js";
import { scatter } from "../plots/scatter.js";
import { setFilter } from "../selection.js";
import { columnName, shared } from "../words.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */
/** @typedef {import("../selection.js").Filter} Filter */

const MOST = 3;
const NOT_OFFERED = new Set([
  "number",
  "artifacts",
  "artifact_errors",
  "scenario",
  "episode_id",
  "seed",
  "error",
  "has_trace",
]);
const MOST_WORDS = 400;

/** @param {Episodes} episodes @param {import("../state.js").State} state @param {() => void} changed */
export function plotPanel(episodes, state, changed) {
  const names = [...episodes.columns.keys()].filter((name) => offered(episodes, name));
  const box = h("div", { class: "plots" });
  /** @type {{draw: (rows: Uint32Array, filters: Filter[]) => void}[]} */
  let drawn = [];
  let made = "";
  let rowCount = -1;
  return { box, draw };

  /** @param {Uint32Array} rows @param {Filter[]} filters */
  function draw(rows, filters) {
    const wanted = `${state.get("plots")} ${state.get("xy")}`;
    if (wanted !== made || rowCount !== episodes.count) {
      made = wanted;
      rowCount = episodes.count;
      make();
    }
    for (const plot of drawn) plot.draw(rows, filters);
  }

  function make() {
    const chosen = chosenPlots();
    const numeric = names.filter((name) => episodes.column(name)?.kind === "number");
    const [across, up] = state.get("xy").split(",");
    drawn = [];
    const plots = chosen.map((name, place) => {
      const one =
        episodes.column(name)?.kind === "number"
          ? histogram(episodes, name, brushed(name))
          : bars(episodes, name, state, brushed(name));
      drawn.push({
        draw: (rows, filters) =>
          one.draw(
            rows,
            filters.find((filter) => filter.column === name),
          ),
      });
      return h(
        "div",
        { class: "plot-box" },
        picker(`plot ${place + 1}`, names, name, (value) => {
          state.set({ plots: chosen.map((other, k) => (k === place ? value : other)).join(",") });
          changed();
        }),
        one.box,
      );
    });
    replace(box, plots, numeric.length > 1 ? scatterBox(numeric, across, up) : null);
  }

  /** @param {string[]} numeric @param {string} across @param {string} up */
  function scatterBox(numeric, across, up) {
    const isShown = numeric.includes(across) && numeric.includes(up);
    const set = (/** @type {string} */ x, /** @type {string} */ y) => {
      state.set({ xy: x && y ? `${x},${y}` : "" });
      changed();
    };
    if (!isShown) {
      const factor = numeric.find((name) => name.startsWith("factors.")) ?? numeric[0];
      const outcome = numeric.find((name) => name.startsWith("outcomes.") && name !== factor) ?? numeric[1];
      return h(
        "button",
        { type: "button", class: "quiet", onclick: () => set(factor, outcome) },
        "Plot two columns against each other",
      );
    }
    const plot = scatter(episodes, across, up, (x, y, isDone) => {
      setFilter(state, across, x);
      setFilter(state, up, y, isDone);
      changed();
    });
    drawn.push({ draw: plot.draw });
    return h(
      "div",
      { class: "plot-box wide" },
      h(
        "div",
        { class: "pickers" },
        picker("up", numeric, up, (value) => set(across, value)),
        picker("across", numeric, across, (value) => set(value, up)),
        h("button", { type: "button", class: "quiet", onclick: () => set("", "") }, "Close"),
      ),
      plot.box,
    );
  }

  /** @param {string} column @returns {(filter: Filter | null, isDone: boolean) => void} */
  function brushed(column) {
    return (filter, isDone) => {
      setFilter(state, column, filter, isDone);
      changed();
    };
  }

  function chosenPlots() {
    const given = state
      .get("plots")
      .split(",")
      .filter((name) => names.includes(name));
    if (given.length) return given.slice(0, MOST);
    const main = shared.mainOutcomes
      .map((/** @type {string} */ name) => `outcomes.${name}`)
      .find((/** @type {string} */ name) => names.includes(name));
    const factors = names.filter((name) => name.startsWith("factors."));
    const outcomes = names.filter((name) => name.startsWith("outcomes.") && name !== main);
    return [...new Set([names.includes("tags") ? "tags" : null, main, factors[0], ...outcomes, ...factors, "steps"])]
      .filter((name) => name && names.includes(name))
      .slice(0, MOST);
  }
}

/** @param {string} label @param {string[]} names @param {string} chosen @param {(name: string) => void} changed */
function picker(label, names, chosen, changed) {
  return h(
    "select",
    {
      class: "plot-name",
      "aria-label": `column of ${label}`,
      onchange: (/** @type {any} */ event) => changed(event.target.value),
    },
    names.map((name) => h("option", { value: name, selected: name === chosen }, columnName(name))),
  );
}

/** @param {Episodes} episodes @param {string} name */
function offered(episodes, name) {
  const column = episodes.column(name);
  if (!column || NOT_OFFERED.has(name) || column.kind === "text") return false;
  if (column.kind === "number")
    return column.values.subarray(0, episodes.count).some((value) => value === value && value !== column.values[0]);
  return column.words.length <= MOST_WORDS && new Set(column.words.flat()).size > 1;
}
