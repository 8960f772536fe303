// Which columns a table of episodes shows.

import { h } from "../dom.js";
import { columnName, shared } from "../words.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */

const MOST_OUTCOMES = 4;
const MOST_FACTORS = 3;
const NOT_OFFERED = new Set(["has_trace", "scenario"]);

/** @param {Episodes} episodes @param {import("../state.js").State} state @returns {string[]} */
export function chosenColumns(episodes, state) {
  const given = state
    .get("cols")
    .split(",")
    .filter((name) => episodes.columns.has(name));
  return given.length ? given : defaults(episodes);
}

/** @param {Episodes} episodes @param {import("../state.js").State} state @param {() => void} changed */
export function columnChooser(episodes, state, changed) {
  const names = episodes.namesWithValues().filter((name) => !NOT_OFFERED.has(name));
  return h(
    "details",
    { class: "chooser" },
    h("summary", null, "Columns"),
    h(
      "div",
      { class: "chooser-list" },
      names.map((name) =>
        h(
          "label",
          { class: "check" },
          h("input", {
            type: "checkbox",
            checked: chosenColumns(episodes, state).includes(name),
            onchange: (/** @type {any} */ event) => {
              const chosen = new Set(chosenColumns(episodes, state));
              event.target.checked ? chosen.add(name) : chosen.delete(name);
              state.set({ cols: names.filter((other) => chosen.has(other)).join(",") });
              changed();
            },
          }),
          columnName(name),
        ),
      ),
    ),
  );
}

/** @param {Episodes} episodes */
function defaults(episodes) {
  const names = episodes.namesWithValues();
  const outcomes = names.filter((name) => name.startsWith("outcomes."));
  const rank = (/** @type {string} */ name) => {
    const place = shared.mainOutcomes.indexOf(name.slice(9));
    return place < 0 ? 99 : place;
  };
  outcomes.sort((a, b) => rank(a) - rank(b));
  const varied = (/** @type {string} */ name) => {
    const column = episodes.column(name);
    return column && (column.kind !== "word" || column.words.length > 1);
  };
  return [
    "episode_id",
    ...["tags", "status"].filter(varied),
    ...outcomes.slice(0, MOST_OUTCOMES),
    ...names.filter((name) => name.startsWith("factors.")).slice(0, MOST_FACTORS),
    "steps",
  ].filter((name) => names.includes(name));
}
