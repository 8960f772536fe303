// Two columns against each other: a dot for each episode; dragging selects a rectangle.

import { h, s } from "../dom.js";
import { columnName } from "../words.js";
import { extent, Scale, tickText } from "./scale.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */
/** @typedef {import("../selection.js").Filter} Filter */

const WIDTH = 420;
const HEIGHT = 260;
const LEFT = 44;
const BOTTOM = 34;

/**
 * @param {Episodes} episodes @param {string} across a column of numbers @param {string} up another one
 * @param {(x: Filter | null, y: Filter | null, isDone: boolean) => void} brushed
 */
export function scatter(episodes, across, up, brushed) {
  const [xs, ys] = [across, up].map(
    (name) => /** @type {import("../episodes.js").LongColumn} */ (episodes.column(name)).values,
  );
  const x = new Scale(...padded(extent(xs, episodes.count)), LEFT, WIDTH - 8);
  const y = new Scale(...padded(extent(ys, episodes.count)), HEIGHT - BOTTOM, 8);
  const canvas = h("canvas", { width: 2 * WIDTH, height: 2 * HEIGHT, "aria-hidden": "true" });
  const brush = s("rect", { class: "brush" });
  const svg = s(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      onpointerdown: start,
      role: "img",
      "aria-label": `${columnName(up)} over ${columnName(across)}; the filters above select by number`,
    },
    x
      .ticks()
      .map((tick) => [
        s("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: 8, y2: HEIGHT - BOTTOM }),
        s("text", { class: "axis", x: x.at(tick), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, tickText(tick)),
      ])
      .flat(),
    y
      .ticks(40)
      .map((tick) => [
        s("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y.at(tick), y2: y.at(tick) }),
        s("text", { class: "axis", x: LEFT - 5, y: y.at(tick) + 4, "text-anchor": "end" }, tickText(tick)),
      ])
      .flat(),
    s("text", { class: "axis", x: (LEFT + WIDTH) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, columnName(across)),
    brush,
  );
  return { box: h("div", { class: "scatter" }, canvas, svg), draw };

  /** @param {Uint32Array} rows @param {Filter[]} filters */
  function draw(rows, filters) {
    const context = canvas.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(document.documentElement);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.globalAlpha = 0.5;
    context.fillStyle = style.getPropertyValue("--line");
    for (let row = 0; row < episodes.count; row++) dot(context, row);
    context.globalAlpha = rows.length > 2000 ? 0.25 : 0.7;
    context.fillStyle = style.getPropertyValue("--accent");
    for (let k = 0; k < rows.length; k++) dot(context, rows[k]);
    const [byX, byY] = [across, up].map((name) =>
      filters.find((filter) => filter.column === name && filter.operation === "range"),
    );
    if (byX?.operation === "range" || byY?.operation === "range") {
      const [left, right] = ends(byX, x);
      const [low, high] = ends(byY, y);
      place(left, right, high, low);
    } else {
      place(0, 0, 0, 0);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {number} row */
  function dot(context, row) {
    const a = xs[row];
    const b = ys[row];
    if (a === a && b === b) context.fillRect(2 * x.at(a) - 2.5, 2 * y.at(b) - 2.5, 5, 5);
  }

  /** @param {number} left @param {number} right @param {number} top @param {number} bottom */
  function place(left, right, top, bottom) {
    for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top }))
      brush.setAttribute(name, String(value));
  }

  /** @param {PointerEvent} event */
  function start(event) {
    if (event.button !== 0) return;
    svg.setPointerCapture(event.pointerId);
    const first = valuesAt(event);
    let frame = 0;
    /** @type {[Filter, Filter] | null} */
    let found = null;
    const moved = (/** @type {PointerEvent} */ next) => {
      const last = valuesAt(next);
      if (Math.hypot(x.at(last[0]) - x.at(first[0]), y.at(last[1]) - y.at(first[1])) < 4 && !found) return;
      const range = (/** @type {string} */ column, /** @type {number} */ k) =>
        /** @type {Filter} */ ({
          column,
          operation: "range",
          low: Math.min(first[k], last[k]),
          high: Math.max(first[k], last[k]),
        });
      found = [range(across, 0), range(up, 1)];
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => found && brushed(...found, false));
    };
    const ended = () => {
      svg.removeEventListener("pointermove", moved);
      svg.removeEventListener("pointerup", ended);
      cancelAnimationFrame(frame);
      brushed(found?.[0] ?? null, found?.[1] ?? null, true);
    };
    svg.addEventListener("pointermove", moved);
    svg.addEventListener("pointerup", ended);
  }

  /** @param {PointerEvent} event @returns {[number, number]} */
  function valuesAt(event) {
    const box = svg.getBoundingClientRect();
    return [
      x.value(((event.clientX - box.left) / box.width) * WIDTH),
      y.value(((event.clientY - box.top) / box.height) * HEIGHT),
    ];
  }
}

/** @param {Filter | undefined} filter @param {Scale} scale @returns {[number, number]} */
function ends(filter, scale) {
  return filter?.operation === "range"
    ? [scale.at(filter.low ?? scale.low), scale.at(filter.high ?? scale.high)]
    : [scale.start, scale.end];
}

/** @param {[number, number] | null} range @returns {[number, number]} */
function padded(range) {
  const [low, high] = range ?? [0, 1];
  const margin = (high - low || 1) * 0.04;
  return [low - margin, high + margin];
}
