// Lines with bands and points with intervals over one axis, with a cursor that reads values.

import { h, replace, s } from "../dom.js";
import { digits } from "../words.js";
import { Scale, tickText } from "./scale.js";

/**
 * `kind` line: values joined; points: a dot for each, on its interval. `low` and `high` are a band or intervals.
 * @typedef {{name: string, kind: "line" | "points", x: ArrayLike<number>, y: ArrayLike<number | null>, low?: ArrayLike<number | null>,
 *   high?: ArrayLike<number | null>, color?: number, links?: string[], labels?: string[]}} Series
 */

const WIDE = 460;
const HEIGHT = 230;
const LEFT = 52;
const BOTTOM = 34;
const TOP = 10;
const APART = 5; // pixels between points of different series at the same place
const MOST_POINTS = 800; // of a drawn line

/**
 * @param {object} options
 * @param {string} options.title
 * @param {Series[]} options.series
 * @param {string} options.across the name of the axis
 * @param {[number, number]} [options.domain] the ends of the axis, which several charts may share
 * @param {[number, number]} [options.range] the ends of the vertical axis
 * @param {(value: number) => string} [options.format] of values
 * @param {string[]} [options.words] the names of whole numbers across, instead of numbers
 * @param {number} [options.width]
 */
export function lineChart({ title, series, across, domain, range, format = digits, words, width = WIDE }) {
  const xs = series.flatMap((one) => ends(one.x));
  const ys = series.flatMap((one) => [...ends(one.y), ...ends(one.low ?? []), ...ends(one.high ?? [])]);
  const [left, right] = domain ?? padded(Math.min(...xs), Math.max(...xs));
  const [low, high] = range ?? padded(Math.min(...ys), Math.max(...ys));
  const x = new Scale(left, right, LEFT, width - 14);
  const y = new Scale(low, high, HEIGHT - BOTTOM, TOP);
  const cursor = s("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const reading = h("div", { class: "note reading" });
  const ticks = words ? words.map((_, k) => k) : x.ticks(70);
  const svg = s(
    "svg",
    {
      class: "chart lines",
      viewBox: `0 0 ${width} ${HEIGHT}`,
      role: "img",
      "aria-label": describe(title, series, format),
      onpointermove: read,
      onpointerleave: () => cursor.setAttribute("visibility", "hidden"),
    },
    y
      .ticks(36)
      .map((tick) => [
        s("line", { class: "grid", x1: LEFT, x2: width - 14, y1: y.at(tick), y2: y.at(tick) }),
        s("text", { class: "axis", x: LEFT - 6, y: y.at(tick) + 4, "text-anchor": "end" }, shortFormat(tick, format)),
      ])
      .flat(),
    ticks.map((tick) =>
      s(
        "text",
        { class: "axis", x: x.at(tick), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" },
        words ? words[tick] : tickText(tick),
      ),
    ),
    s("text", { class: "axis", x: (LEFT + width) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, across),
    series.map((one, k) =>
      one.kind === "line" ? line(one, x, y) : points(one, x, y, format, APART * (k - (series.length - 1) / 2)),
    ),
    cursor,
  );
  return h(
    "figure",
    { class: "chart-box" },
    h("figcaption", null, title, series.length > 1 ? legend(series) : null),
    svg,
    reading,
  );

  /** @param {PointerEvent} event */
  function read(event) {
    const box = svg.getBoundingClientRect();
    const at = x.value(((event.clientX - box.left) / box.width) * width);
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", String(x.at(at)));
    cursor.setAttribute("x2", String(x.at(at)));
    replace(
      reading,
      `${words ? (words[Math.round(at)] ?? "") : tickText(+at.toPrecision(4))}: ${series
        .map((one) => {
          const place = nearest(one.x, at);
          const value = one.y[place];
          return `${one.name} ${value === null || value === undefined || Number.isNaN(value) ? "–" : format(value)}`;
        })
        .join(", ")}`,
    );
  }
}

/** @param {Series} one @param {Scale} x @param {Scale} y */
function line(one, x, y) {
  const step = Math.max(1, Math.ceil(one.x.length / MOST_POINTS));
  const places = [];
  for (let k = 0; k < one.x.length; k += step) if (isKnown(one.y[k])) places.push(k);
  if (places.at(-1) !== one.x.length - 1 && isKnown(one.y[one.x.length - 1])) places.push(one.x.length - 1);
  const path = (/** @type {ArrayLike<any>} */ values, /** @type {number[]} */ order) =>
    order.map((k) => `${x.at(one.x[k]).toFixed(1)},${y.at(values[k]).toFixed(1)}`);
  const { low, high } = one;
  return s(
    "g",
    { class: `c${one.color ?? 0}` },
    low && high
      ? s("polygon", { class: "band", points: [...path(low, places), ...path(high, [...places].reverse())].join(" ") })
      : null,
    s("polyline", { class: "curve", points: path(one.y, places).join(" ") }),
  );
}

/**
 * @param {Series} one
 * @param {Scale} x
 * @param {Scale} y
 * @param {(value: number) => string} format
 * @param {number} shift
 */
function points(one, x, y, format, shift) {
  return s(
    "g",
    { class: `c${one.color ?? 0}` },
    Array.from(one.x, (at, k) => {
      const value = one.y[k];
      if (!isKnown(value)) return null;
      const [low, high] = [one.low?.[k], one.high?.[k]];
      const has = isKnown(low) && isKnown(high);
      const label = `${one.labels?.[k] ?? one.name}: ${format(/** @type {number} */ (value))}${has ? `, ${format(/** @type {number} */ (low))} to ${format(/** @type {number} */ (high))}` : ""}`;
      const mark = [
        s("title", null, label),
        has
          ? s("line", {
              class: "range",
              x1: x.at(at) + shift,
              x2: x.at(at) + shift,
              y1: y.at(/** @type {number} */ (low)),
              y2: y.at(/** @type {number} */ (high)),
            })
          : null,
        s("circle", {
          class: has ? "dot" : "hollow",
          cx: x.at(at) + shift,
          cy: y.at(/** @type {number} */ (value)),
          r: 4.5,
        }),
      ];
      return one.links?.[k] ? s("a", { href: one.links[k], "aria-label": label }, mark) : s("g", null, mark);
    }),
  );
}

/** @param {Series[]} series */
function legend(series) {
  return h(
    "span",
    { class: "chart-legend" },
    series.map((one) => h("span", { class: `c${one.color ?? 0}` }, h("i", { class: "swatch" }), ` ${one.name} `)),
  );
}

/** @param {ArrayLike<number | null>} values @returns {number[]} the least and the greatest */
function ends(values) {
  let low = Infinity;
  let high = -Infinity;
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    if (value === null || value !== value) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [];
}

/** @param {number} low @param {number} high @returns {[number, number]} */
function padded(low, high) {
  if (!Number.isFinite(low)) return [0, 1];
  const margin = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low - margin < 0 ? 0 : low - margin, high + margin];
}

/** @param {ArrayLike<number>} values ascending @param {number} at */
function nearest(values, at) {
  let best = 0;
  for (let k = 1; k < values.length; k++) if (Math.abs(values[k] - at) < Math.abs(values[best] - at)) best = k;
  return best;
}

/** @param {unknown} value */
function isKnown(value) {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

/** @param {number} tick @param {(value: number) => string} format */
function shortFormat(tick, format) {
  return format(1) === "100.0%" ? `${Math.round(100 * tick)}%` : tickText(tick);
}

/** @param {string} title @param {Series[]} series @param {(value: number) => string} format */
function describe(title, series, format) {
  return `${title}: ${series
    .map((one) => {
      const last = Array.from(one.y).filter(isKnown).at(-1);
      return `${one.name} ends at ${last === undefined ? "–" : format(/** @type {number} */ (last))}`;
    })
    .join("; ")}`;
}
