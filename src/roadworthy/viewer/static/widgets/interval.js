// Figures with their intervals, as text and as a dot on a line, as in reports.

import { h, s } from "../dom.js";
import { intervalOf, isGain, missingOf, plainName, valueOf, whyOf } from "../words.js";

/** @typedef {import("../words.js").Figure} Figure */

/** A cell of a table: value, a small bar for shares, and the interval. @param {Figure | undefined} figure */
export function intervalCell(figure) {
  if (!figure) return h("td", { class: "number muted" }, "–");
  return h(
    "td",
    { class: "number figure", title: whyOf(figure) },
    h("div", null, valueOf(figure)),
    h("div", { class: "note" }, intervalOf(figure)),
    figure.missing ? h("div", { class: "note middling" }, missingOf(figure)) : null,
    figure.unit === "share" || figure.unit === "likelihood"
      ? intervalBar(figure, { low: isGain(figure) ? -1 : 0, high: 1 }, 90, 12)
      : null,
  );
}

/**
 * Draw a figure as a dot on its interval; the dot is hollow where there is no interval.
 * @param {Figure} figure
 * @param {{low: number, high: number}} scale
 * @param {number} [width]
 * @param {number} [height]
 * @param {Figure[]} [marks] figures to mark: floor and ceiling
 */
export function intervalBar(figure, scale, width = 220, height = 20, marks = []) {
  const margin = 6;
  const at = (/** @type {number} */ value) =>
    margin + (width - 2 * margin) * Math.min(Math.max((value - scale.low) / (scale.high - scale.low || 1), 0), 1);
  const middle = height / 2;
  const { value, low, high } = figure;
  const has = low !== null && low !== undefined && high !== null && high !== undefined;
  const zero = scale.low < 0 && scale.high > 0 ? 0 : scale.low;
  return s(
    "svg",
    {
      class: "bar",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `${plainName(figure.name)}: ${valueOf(figure)}, ${intervalOf(figure)}`,
    },
    s("line", { class: "grid", x1: margin, x2: width - margin, y1: middle, y2: middle }),
    s("line", { class: "zero", x1: at(zero), x2: at(zero), y1: 2, y2: height - 2 }),
    marks.map((mark) =>
      mark.value === null
        ? null
        : s(
            "path",
            { class: "mark", d: `M${at(mark.value) - 3.5} 1h7l-3.5 5z` },
            s("title", null, `${plainName(mark.name)}: ${valueOf(mark)}`),
          ),
    ),
    figure.missing && isKnown(figure.worst_low) && isKnown(figure.worst_high)
      ? s("line", {
          class: "worst",
          x1: at(Number(figure.worst_low)),
          x2: at(Number(figure.worst_high)),
          y1: middle,
          y2: middle,
        })
      : null,
    has ? s("line", { class: "range", x1: at(low), x2: at(high), y1: middle, y2: middle }) : null,
    value === null
      ? null
      : s("circle", { class: has ? "dot" : "hollow", cx: at(value), cy: middle, r: Math.min(4.5, height / 3) }),
  );
}

/** @param {unknown} value */
function isKnown(value) {
  return value !== null && value !== undefined;
}

/** The scale that figures of one unit share. @param {Figure[]} figures */
export function sharedScale(figures) {
  const values = figures
    .flatMap((figure) => [figure.value, figure.low, figure.high, figure.worst_low, figure.worst_high])
    .filter((value) => value !== null && value !== undefined);
  let low = Math.min(0, ...values);
  let high = Math.max(...values, low);
  if (figures.length && figures.every((figure) => figure.unit === "share" || figure.unit === "likelihood")) {
    if (low >= 0) return { low: 0, high: 1 };
    const size = Math.max(-low, high, 0.1);
    return { low: -size, high: size };
  }
  if (high <= low) high = low + 1;
  return { low, high };
}
