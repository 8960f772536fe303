// The pairs of episodes whose outcome differs, largest change first; each leads to both policies side by side.

import { address, h } from "../dom.js";
import { columnName, count, digits } from "../words.js";

const MOST = 200;
const KINDS = { all: "all differences", worse: "B lower", better: "B higher" };

/**
 * @param {{left: any, right: any, same: Uint32Array, outcome: string, first: any, second: any}} by
 * @param {import("../state.js").State} state @param {() => void} draw
 */
export function flipTable({ left, right, same, outcome, first, second }, state, draw) {
  const [xs, ys] = [left, right].map((episodes) => episodes.column(outcome).values);
  const kind = state.get("flips", "all");
  const tag = state.get("class");
  const rows = [];
  const classes = new Set();
  for (let k = 0; k < same.length; k += 2) {
    const difference = ys[same[k + 1]] - xs[same[k]];
    if (!difference) continue; // equal, or no data
    const tags = left.get(same[k], "tags") ?? [];
    tags.forEach((/** @type {string} */ name) => classes.add(name));
    if ((kind === "worse" && difference > 0) || (kind === "better" && difference < 0) || (tag && !tags.includes(tag)))
      continue;
    rows.push({ a: same[k], b: same[k + 1], difference, tags });
  }
  rows.sort((one, other) => Math.abs(other.difference) - Math.abs(one.difference) || one.a - other.a);
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
        {
          onchange: (/** @type {any} */ event) => {
            state.set({ [name]: event.target.value });
            draw();
          },
        },
        options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
      ),
    );
  return h(
    "div",
    null,
    h("h3", null, "Episodes that differ"),
    h(
      "div",
      { class: "controls" },
      select("Show", "flips", kind, Object.entries(KINDS)),
      classes.size > 1
        ? select("Class", "class", tag, [
            ["", "all"],
            ...[...classes].sort().map((name) => /** @type {[string, string]} */ ([name, name])),
          ])
        : null,
    ),
    h(
      "p",
      { class: "note", role: "status" },
      `${count(rows.length)} of ${count(same.length / 2)} pairs${rows.length > MOST ? `; the ${MOST} largest differences are shown` : ""}`,
    ),
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
            h("th", { scope: "col" }, "episode"),
            h("th", { scope: "col" }, "class"),
            ["A", "B", `${columnName(outcome)}, B minus A`].map((text) =>
              h("th", { scope: "col", class: "number" }, text),
            ),
          ),
        ),
        h(
          "tbody",
          null,
          rows
            .slice(0, MOST)
            .map((row) =>
              h(
                "tr",
                null,
                h(
                  "th",
                  { scope: "row" },
                  h(
                    "a",
                    { href: address(["episode", first.key, String(left.get(row.a, "number"))], { with: second.key }) },
                    String(left.get(row.a, "episode_id")),
                  ),
                ),
                h("td", null, row.tags.join(", ")),
                h("td", { class: "number" }, digits(xs[row.a])),
                h("td", { class: "number" }, digits(ys[row.b])),
                h("td", { class: ["number", row.difference > 0 ? "good" : "bad"] }, digits(row.difference, true)),
              ),
            ),
        ),
      ),
    ),
  );
}
