// The main figures of each class, for the selected episodes.

import { address, h } from "../dom.js";
import { filterText } from "../selection.js";
import { count, plainName, shared } from "../words.js";
import { intervalCell } from "./interval.js";

const MOST_CLASSES = 60;
const MOST_FIGURES = 4;

/**
 * @param {any} run @param {import("../episodes.js").Episodes} episodes
 * @param {import("../figures_of_selection.js").SelectionFigures} figures @param {Uint32Array} rows
 */
export function classTable(run, episodes, figures, rows) {
  const column = episodes.column("tags");
  if (column?.kind !== "word") return null;
  /** @type {Map<string, number[]>} */
  const members = new Map();
  for (const row of rows)
    for (const tag of column.words[column.codes[row]] ?? []) {
      const found = members.get(tag);
      if (found) found.push(row);
      else members.set(tag, [row]);
    }
  if (members.size < 2 || members.size > MOST_CLASSES || !figures.sums) return null;
  const known = new Set(figures.metrics.map(({ name }) => name));
  const names = shared.columns.filter((/** @type {string} */ name) => known.has(name)).slice(0, MOST_FIGURES);
  if (!names.length) return null;
  const lines = [...members].map(([name, list]) => ({
    name,
    list,
    found: figures.quick(Uint32Array.from(list), names),
  }));
  const first = (/** @type {any} */ line) =>
    line.found.find((/** @type {any} */ figure) => figure.name === names[0])?.value ?? Infinity;
  lines.sort((a, b) => first(a) - first(b) || (a.name < b.name ? -1 : 1));
  const roles = run.references.filter((/** @type {any} */ reference) => Object.keys(reference.by_class).length);
  return h(
    "section",
    { "aria-label": "By class" },
    h("h2", null, "By class, worst first"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "By class" },
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "class"),
            h("th", { scope: "col", class: "number" }, "episodes"),
            names.map((/** @type {string} */ name) => h("th", { scope: "col", class: "number" }, plainName(name))),
            roles.map((/** @type {any} */ reference) =>
              h(
                "th",
                { scope: "col", class: "number" },
                `${reference.role}: ${reference.policy}, ${plainName(names[0])}`,
              ),
            ),
          ),
        ),
        h(
          "tbody",
          null,
          lines.map((line) =>
            h(
              "tr",
              { "data-class": line.name },
              h(
                "th",
                { scope: "row" },
                h(
                  "a",
                  {
                    href: address(["run", run.key], {
                      f: filterText({ column: "tags", operation: "in", words: [line.name] }),
                    }),
                  },
                  line.name,
                ),
              ),
              h("td", { class: "number" }, count(line.list.length)),
              names.map((/** @type {string} */ name) =>
                intervalCell(line.found.find((figure) => figure.name === name)),
              ),
              roles.map((/** @type {any} */ reference) =>
                intervalCell(
                  reference.by_class[line.name]?.find((/** @type {any} */ figure) => figure.name === names[0]),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
