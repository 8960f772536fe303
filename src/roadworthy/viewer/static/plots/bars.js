// How often each word of a column occurs: all episodes pale, the selection dark; a press selects a word.

import { h, replace } from "../dom.js";
import { filtersOf } from "../selection.js";
import { columnName, count } from "../words.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */

const MOST = 14;

/**
 * @param {Episodes} episodes @param {string} name @param {import("../state.js").State} state
 * @param {(filter: import("../selection.js").Filter | null, isDone: boolean) => void} brushed
 */
export function bars(episodes, name, state, brushed) {
  const column = /** @type {import("../episodes.js").LongColumn} */ (episodes.column(name));
  const all = counted(Uint32Array.from({ length: episodes.count }, (_, row) => row));
  const words = [...all.keys()]
    .sort((a, b) => (all.get(b) ?? 0) - (all.get(a) ?? 0) || (a < b ? -1 : 1))
    .slice(0, MOST);
  words.sort();
  const box = h("div", { class: "bars", role: "group", "aria-label": columnName(name) });
  return {
    box: h(
      "div",
      null,
      box,
      all.size > MOST ? h("div", { class: "note" }, `the ${MOST} most frequent of ${count(all.size)}`) : null,
    ),
    draw,
  };

  /** @param {Uint32Array} rows */
  function draw(rows) {
    const chosen = counted(rows);
    const most = Math.max(1, ...all.values());
    const filter = filtersOf(state).find((other) => other.column === name && other.operation === "in");
    const picked = new Set(filter?.operation === "in" ? filter.words : []);
    const focused = /** @type {HTMLElement | null} */ (
      box.contains(document.activeElement) ? document.activeElement : null
    )?.dataset.word;
    replace(
      box,
      words.map((word) => {
        const button = h(
          "button",
          {
            type: "button",
            class: "bar-row",
            "aria-pressed": String(picked.has(word)),
            "data-word": word,
            "aria-label": `${word}: ${count(chosen.get(word) ?? 0)} of ${count(all.get(word) ?? 0)}`,
            onclick: () => {
              picked.has(word) ? picked.delete(word) : picked.add(word);
              brushed(picked.size ? { column: name, operation: "in", words: [...picked] } : null, true);
            },
          },
          h("span", { class: "bar-name" }, word),
          h("span", { class: "bar-count" }, count(chosen.get(word) ?? 0)),
          h(
            "span",
            { class: "bar-track" },
            h("span", { class: "bar-pale", style: { width: `${(100 * (all.get(word) ?? 0)) / most}%` } }),
            h("span", { class: "bar-fill", style: { width: `${(100 * (chosen.get(word) ?? 0)) / most}%` } }),
          ),
        );
        if (focused === word) queueMicrotask(() => button.focus());
        return button;
      }),
    );
  }

  /** @param {Uint32Array} rows @returns {Map<string, number>} */
  function counted(rows) {
    const sizes = new Float64Array(column.words.length);
    for (let k = 0; k < rows.length; k++) sizes[column.codes[rows[k]]]++;
    /** @type {Map<string, number>} */
    const found = new Map();
    column.words.forEach((word, place) => {
      if (!sizes[place]) return;
      for (const text of word === null ? [] : [word].flat().map(String))
        found.set(text, (found.get(text) ?? 0) + sizes[place]);
    });
    return found;
  }
}
