// The distribution of a column: all episodes pale, the selection dark; dragging, or arrow keys, select a range.

import { h, replace, s } from "../dom.js";
import { columnName, count, digits } from "../words.js";
import { extent, Scale, tickText } from "./scale.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */
/** @typedef {import("../selection.js").Filter} Filter */

const WIDTH = 320;
const HEIGHT = 130;
const BINS = 32;
const BOTTOM = 20;

/**
 * @param {Episodes} episodes
 * @param {string} name the column
 * @param {(filter: Filter | null, isDone: boolean) => void} brushed
 */
export function histogram(episodes, name, brushed) {
  const column = /** @type {import("../episodes.js").LongColumn} */ (episodes.column(name));
  const [low, high] = extent(column.values, episodes.count) ?? [0, 1];
  const isWhole = isWholeNumbers(column.values, episodes.count) && high - low < 2 * BINS;
  const edge = isWhole ? [low - 0.5, high + 0.5] : [low, high === low ? low + 1 : high];
  const bins = isWhole ? Math.min(high - low + 1, BINS) : BINS;
  const x = new Scale(edge[0], edge[1], 8, WIDTH - 8);
  const bars = s("g", null);
  const brush = s("rect", { class: "brush", y: 0, height: HEIGHT - BOTTOM, width: 0 });
  const svg = s(
    "svg",
    {
      class: "chart histogram",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      tabindex: 0,
      role: "group",
      "aria-label": `${columnName(name)}: arrow keys select a range, Shift and arrows size it, Escape clears it`,
      onpointerdown: start,
      onkeydown: onKey,
    },
    bars,
    brush,
    x
      .ticks()
      .filter((tick) => !isWhole || Number.isInteger(tick))
      .map((tick) =>
        s("text", { class: "axis", x: x.at(tick), y: HEIGHT - 5, "text-anchor": "middle" }, tickText(tick)),
      ),
  );
  const note = h("div", { class: "note" });
  /** @type {[number, number] | null} */
  let range = null;
  const all = binned(Uint32Array.from({ length: episodes.count }, (_, row) => row));
  return { box: h("div", null, svg, note), draw };

  /** @param {Uint32Array} rows @param {Filter | undefined} filter */
  function draw(rows, filter) {
    const chosen = binned(rows);
    const most = Math.max(1, ...all);
    const y = (/** @type {number} */ n) => ((HEIGHT - BOTTOM - 6) * n) / most;
    const width = (x.end - x.start) / bins;
    replace(
      bars,
      [...all].map((n, bin) => {
        const from = edge[0] + ((edge[1] - edge[0]) * bin) / bins;
        return s(
          "g",
          null,
          s(
            "title",
            null,
            `${digits(from)} to ${digits(from + (edge[1] - edge[0]) / bins)}: ${count(chosen[bin])} of ${count(n)}`,
          ),
          s("rect", {
            class: "pale",
            x: x.start + bin * width + 0.5,
            width: Math.max(width - 1, 1),
            y: HEIGHT - BOTTOM - y(n),
            height: y(n),
          }),
          s("rect", {
            class: "filled",
            x: x.start + bin * width + 0.5,
            width: Math.max(width - 1, 1),
            y: HEIGHT - BOTTOM - y(chosen[bin]),
            height: y(chosen[bin]),
          }),
        );
      }),
    );
    range = filter?.operation === "range" ? [filter.low ?? edge[0], filter.high ?? edge[1]] : null;
    drawBrush();
  }

  function drawBrush() {
    const [from, to] = range ? range.map((value) => x.at(value)) : [0, 0];
    brush.setAttribute("x", String(from));
    brush.setAttribute("width", String(Math.max(to - from, range ? 1 : 0)));
    replace(note, range ? `${digits(range[0])} to ${digits(range[1])}` : "");
  }

  /** @param {Uint32Array} rows */
  function binned(rows) {
    const counts = new Uint32Array(bins);
    const scale = bins / (edge[1] - edge[0]);
    for (let k = 0; k < rows.length; k++) {
      const value = column.values[rows[k]];
      if (value === value) counts[Math.min(bins - 1, Math.max(0, Math.floor((value - edge[0]) * scale)))]++;
    }
    return counts;
  }

  /** @param {boolean} isDone */
  function tell(isDone) {
    brushed(range ? { column: name, operation: "range", low: range[0], high: range[1] } : null, isDone);
  }

  /** @param {PointerEvent} event */
  function start(event) {
    if (event.button !== 0) return;
    svg.setPointerCapture(event.pointerId);
    const first = valueAt(event);
    let isMoved = false;
    let frame = 0;
    const moved = (/** @type {PointerEvent} */ next) => {
      const value = valueAt(next);
      if (Math.abs(x.at(value) - x.at(first)) < 3 && !isMoved) return;
      isMoved = true;
      range = [Math.min(first, value), Math.max(first, value)];
      drawBrush();
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => tell(false));
    };
    const ended = () => {
      svg.removeEventListener("pointermove", moved);
      svg.removeEventListener("pointerup", ended);
      cancelAnimationFrame(frame);
      if (!isMoved) range = null;
      tell(true);
    };
    svg.addEventListener("pointermove", moved);
    svg.addEventListener("pointerup", ended);
  }

  /** @param {PointerEvent} event */
  function valueAt(event) {
    const box = svg.getBoundingClientRect();
    return x.value(((event.clientX - box.left) / box.width) * WIDTH);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const step = (edge[1] - edge[0]) / bins;
    const way = event.key === "ArrowRight" ? step : event.key === "ArrowLeft" ? -step : 0;
    if (event.key === "Escape") range = null;
    else if (!way) return;
    else if (!range) range = way > 0 ? [edge[0], edge[0] + 4 * step] : [edge[1] - 4 * step, edge[1]];
    else if (event.shiftKey) range = [range[0], Math.min(Math.max(range[1] + way, range[0] + step), edge[1])];
    else if (range[0] + way >= edge[0] - 1e-9 && range[1] + way <= edge[1] + 1e-9)
      range = [range[0] + way, range[1] + way];
    event.preventDefault();
    drawBrush();
    tell(true);
  }
}

/** @param {Float64Array} values @param {number} rows */
function isWholeNumbers(values, rows) {
  for (let row = 0; row < rows; row++) if (values[row] === values[row] && !Number.isInteger(values[row])) return false;
  return true;
}
