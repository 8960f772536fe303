// A head of a table that sorts by its column when it is pressed.

import { h } from "../dom.js";

/**
 * @param {string} text
 * @param {string} by the name of the column
 * @param {string} current the order now: a name, with `-` before it for descending
 * @param {(order: string) => void} sort
 * @param {boolean} [isNumber]
 */
export function sortHead(text, by, current, sort, isNumber = false) {
  const order = current === by ? "ascending" : current === `-${by}` ? "descending" : null;
  const next = order === "ascending" ? `-${by}` : order === "descending" ? by : isNumber ? `-${by}` : by;
  return h(
    "th",
    { scope: "col", "aria-sort": order ?? "none", class: isNumber ? "number" : null },
    h(
      "button",
      { type: "button", class: "sort", "data-focus": `sort-${by}`, onclick: () => sort(next) },
      text,
      h(
        "span",
        { class: "arrow", "aria-hidden": "true" },
        order === "ascending" ? " ▲" : order === "descending" ? " ▼" : "",
      ),
    ),
  );
}
