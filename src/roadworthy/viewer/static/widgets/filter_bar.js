// The filters on episodes: a chip for each, and a form that adds one.

import { h, replace } from "../dom.js";
import { filtersOf, setFilter } from "../selection.js";
import { columnName, digits, shared } from "../words.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */
/** @typedef {import("../selection.js").Filter} Filter */

/** Columns that filters are not offered for. */
const HIDDEN = new Set(["number", "artifacts", "artifact_errors", "scenario"]);
const MOST_WORDS = 200;

/**
 * @param {Episodes} episodes
 * @param {import("../state.js").State} state
 * @param {() => void} changed
 */
export function filterBar(episodes, state, changed) {
  const chips = h("div", { class: "chips", role: "list", "aria-label": "Filters" });
  const value = h("span", { class: "filter-value" });
  const column = h("select", { "aria-label": "Column to filter by", onchange: drawValue });
  let rowCount = -1;
  let shown = "";
  const form = h(
    "form",
    { class: "controls filter-form", onsubmit: add },
    h("label", null, "Filter by", column),
    value,
    h("button", null, "Add"),
    h("button", { type: "button", class: "quiet clear", onclick: clear }, "Clear all"),
  );
  offer();
  const box = h("div", { class: "filters" }, form, chips);
  return { box, draw };

  /** Offer the columns that have values; more may have some when more episodes have ended. */
  function offer() {
    if (rowCount === episodes.count) return;
    rowCount = episodes.count;
    const names = episodes
      .namesWithValues()
      .filter((name) => !HIDDEN.has(name))
      .sort((a, b) => columnName(a).localeCompare(columnName(b)));
    const offered = [...column.options].map((option) => option.value);
    if (offered.join() === names.join()) return;
    const main = ["tags", ...shared.mainOutcomes.map((/** @type {string} */ name) => `outcomes.${name}`)];
    const chosen = [column.value, ...main].find((name) => names.includes(name)) ?? names[0];
    replace(
      column,
      names.map((name) => h("option", { value: name, selected: name === chosen }, columnName(name))),
    );
    if (!offered.length || column.value !== shown) drawValue();
  }

  function draw() {
    offer();
    const filters = filtersOf(state);
    replace(
      chips,
      filters.map((filter) =>
        h(
          "span",
          { class: "chip filter-chip", role: "listitem" },
          describe(filter),
          h(
            "button",
            {
              type: "button",
              class: "quiet",
              "aria-label": `remove the filter ${describe(filter)}`,
              onclick: () => {
                state.set({ f: state.all("f").filter((_, k) => k !== filters.indexOf(filter)) }, { push: true });
                changed();
              },
            },
            "×",
          ),
        ),
      ),
    );
    /** @type {HTMLElement} */ (form.querySelector(".clear")).hidden = filters.length === 0;
  }

  function drawValue() {
    shown = column.value;
    const found = episodes.column(column.value);
    if (!found) return;
    if (found.kind === "number") {
      replace(
        value,
        h("label", null, "from", h("input", { type: "number", name: "low", step: "any" })),
        h("label", null, "to", h("input", { type: "number", name: "high", step: "any" })),
      );
      return;
    }
    const words =
      found.kind === "word" ? [...new Set(found.words.flat())].filter((word) => typeof word === "string").sort() : [];
    if (words.length && words.length <= MOST_WORDS) {
      replace(
        value,
        h(
          "label",
          null,
          "is",
          h(
            "select",
            { name: "word" },
            words.map((word) => h("option", { value: word }, word)),
          ),
        ),
      );
    } else {
      replace(value, h("label", null, "contains", h("input", { type: "text", name: "text" })));
    }
  }

  /** @param {Event} event */
  function add(event) {
    event.preventDefault();
    const filter = given(column.value, new FormData(form));
    if (!filter) return;
    setFilter(state, filter.column, filter, true);
    changed();
  }

  /** @param {string} name @param {FormData} data @returns {Filter | null} */
  function given(name, data) {
    if (data.has("word")) {
      const word = String(data.get("word"));
      const known = filtersOf(state).find((filter) => filter.column === name && filter.operation === "in");
      const words = known?.operation === "in" ? known.words : [];
      return { column: name, operation: "in", words: [...new Set([...words, word])] };
    }
    if (data.has("text"))
      return data.get("text") ? { column: name, operation: "has", text: String(data.get("text")) } : null;
    const [low, high] = ["low", "high"].map((end) => (data.get(end) === "" ? null : Number(data.get(end))));
    return low === null && high === null
      ? { column: name, operation: "none" }
      : { column: name, operation: "range", low, high };
  }

  function clear() {
    state.set({ f: [] }, { push: true });
    changed();
  }
}

/** Return a filter in words. @param {Filter} filter */
export function describe(filter) {
  const name = columnName(filter.column);
  switch (filter.operation) {
    case "in":
      return `${name}: ${filter.words.join(" or ")}`;
    case "has":
      return `${name} contains ${filter.text}`;
    case "none":
      return `${name}: no data`;
    default: {
      const low = filter.low === null ? null : digits(filter.low);
      const high = filter.high === null ? null : digits(filter.high);
      return low === null
        ? `${name} up to ${high}`
        : high === null
          ? `${name} from ${low}`
          : `${name}: ${low} to ${high}`;
    }
  }
}
