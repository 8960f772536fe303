// The outcome of the same episodes in two runs: each pair a dot, above the diagonal where B is higher; counts of flips.

import { h, s } from "../dom.js";
import { columnName, count } from "../words.js";
import { Scale, tickText } from "./scale.js";

const SIZE = 300;
const EDGE = 40;
const CELLS = 24;

/** @param {{left: any, right: any, same: Uint32Array, outcome: string, first: any, second: any}} by */
export function pairedDots({ left, right, same, outcome, first, second }) {
  const [xs, ys] = [left, right].map((episodes) => episodes.column(outcome).values);
  /** @type {Map<string, {x: number, y: number, n: number}>} */
  const cells = new Map();
  let low = Infinity,
    high = -Infinity,
    higher = 0,
    lower = 0,
    equal = 0;
  for (let k = 0; k < same.length; k += 2) {
    const a = xs[same[k]];
    const b = ys[same[k + 1]];
    if (a !== a || b !== b) continue;
    low = Math.min(low, a, b);
    high = Math.max(high, a, b);
    if (b > a) higher++;
    else if (b < a) lower++;
    else equal++;
  }
  if (low > high) return h("p", { class: "muted" }, "No pair has this outcome in both runs.");
  const span = high - low || 1;
  for (let k = 0; k < same.length; k += 2) {
    const [a, b] = [xs[same[k]], ys[same[k + 1]]].map((value) => Math.round(((value - low) / span) * CELLS));
    if (Number.isNaN(a) || Number.isNaN(b)) continue;
    const found = cells.get(`${a} ${b}`) ?? { x: low + (a / CELLS) * span, y: low + (b / CELLS) * span, n: 0 };
    found.n++;
    cells.set(`${a} ${b}`, found);
  }
  const x = new Scale(low - 0.06 * span, high + 0.06 * span, EDGE, SIZE - 6);
  const y = new Scale(low - 0.06 * span, high + 0.06 * span, SIZE - EDGE, 6);
  const most = Math.max(...[...cells.values()].map(({ n }) => n));
  return h(
    "div",
    { class: "pairs" },
    s(
      "svg",
      {
        class: "chart",
        width: SIZE,
        height: SIZE,
        viewBox: `0 0 ${SIZE} ${SIZE}`,
        role: "img",
        "aria-label": `${columnName(outcome)}: B higher in ${higher} pairs, lower in ${lower}, equal in ${equal}`,
      },
      x
        .ticks(50)
        .map((tick) => [
          s("text", { class: "axis", x: x.at(tick), y: SIZE - EDGE + 15, "text-anchor": "middle" }, tickText(tick)),
          s("text", { class: "axis", x: EDGE - 5, y: y.at(tick) + 4, "text-anchor": "end" }, tickText(tick)),
        ])
        .flat(),
      s("line", { class: "zero", x1: x.start, y1: y.start, x2: x.end, y2: y.end }),
      [...cells.values()].map((cell) =>
        s(
          "circle",
          {
            class: ["pair-dot", cell.y > cell.x ? "good" : cell.y < cell.x ? "bad" : ""],
            cx: x.at(cell.x),
            cy: y.at(cell.y),
            r: 3 + 9 * Math.sqrt(cell.n / most) * (most > 1 ? 1 : 0),
          },
          s(
            "title",
            null,
            `${count(cell.n)} pairs: A ${tickText(+cell.x.toPrecision(3))}, B ${tickText(+cell.y.toPrecision(3))}`,
          ),
        ),
      ),
      s("text", { class: "axis", x: (EDGE + SIZE) / 2, y: SIZE - 4, "text-anchor": "middle" }, `A: ${first.policy}`),
      s(
        "text",
        {
          class: "axis",
          x: 10,
          y: SIZE / 2 - 20,
          transform: `rotate(-90 10 ${SIZE / 2 - 20})`,
          "text-anchor": "middle",
        },
        `B: ${second.policy}`,
      ),
    ),
    h(
      "dl",
      { class: "flips" },
      [
        ["B higher", higher, "good"],
        ["B lower", lower, "bad"],
        ["equal", equal, "muted"],
      ].map(([name, n, style]) => h("div", null, h("dt", null, name), h("dd", { class: style }, count(Number(n))))),
    ),
  );
}
