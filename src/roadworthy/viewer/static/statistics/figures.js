// Figures of selected episodes from the sums of each episode, equal to those of metrics.json for all of them.

import { sumsOf, sum } from "./clusters.js";
import { mean, rate, ratio } from "./intervals.js";

/** @typedef {import("./clusters.js").Sums} Sums */
/**
 * A metric of a run (figure_sums.py).
 * @typedef {{name: string, kind: "rate" | "share" | "mean" | "ratio", unit: string, per: string, what: string, isInverse: boolean,
 *   isPerScenario: boolean, version: number, bounds: [number, number] | null, failed: number | null}} Metric
 */
/**
 * What a figure is computed from: the sums with missing rows as the metric counts them, and with their least and
 * greatest value if rows have bounds and some are missing.
 * @typedef {{sums: Sums, least: Sums | null, most: Sums | null, missing: number}} Given
 */

/**
 * @param {Metric} metric @param {import("./clusters.js").EpisodeSums} columns @param {import("./clusters.js").Groups} groups
 * @param {Uint32Array} selection @returns {Given}
 */
export function givenOf(metric, columns, groups, selection) {
  const isEachOnce = metric.isPerScenario;
  const sums = sumsOf(columns, groups, selection, { fill: metric.failed, isEachOnce });
  let lacking = 0;
  let known = 0;
  for (const episode of selection) {
    if (columns.missing) lacking += columns.missing[episode] || 0;
    known += columns.rows[episode] || 0;
  }
  if (!lacking) return { sums, least: null, most: null, missing: 0 };
  const bound = (/** @type {0 | 1} */ k) =>
    metric.bounds && metric.kind !== "ratio"
      ? sumsOf(columns, groups, selection, { fill: metric.bounds[k], isEachOnce })
      : null;
  return { sums, least: bound(0), most: bound(1), missing: lacking / (lacking + known) };
}

/** @param {Metric} metric @param {Given} given @returns {import("../words.js").Figure} */
export function figureOf(metric, { sums, least, most, missing }) {
  const names = { name: metric.name, unit: metric.unit, per: metric.isPerScenario ? "scenario" : metric.per, missing };
  if (metric.kind === "ratio") return { ...names, ...ratioOf(metric, sums, missing) };
  const found = estimate(metric, sums);
  const n = metric.isPerScenario ? sums.units : found.n;
  if (!missing) return { ...names, ...found, n, worst_low: found.low, worst_high: found.high };
  if (!least || !most) return { ...names, ...found, n, worst_low: null, worst_high: null };
  const lows = [found.low, estimate(metric, least).low].filter((end) => end !== null);
  const highs = [found.high, estimate(metric, most).high].filter((end) => end !== null);
  return {
    ...names,
    ...found,
    n,
    worst_low: lows.length ? Math.min(...lows) : null,
    worst_high: highs.length ? Math.max(...highs) : null,
  };
}

/**
 * The value of a figure without its interval, which is being computed.
 * @param {Metric} metric
 * @param {Given} given
 * @returns {import("../words.js").Figure}
 */
export function waitingFigure(metric, { sums, missing }) {
  const total = sum(sums.total);
  const weight = sum(sums.weight);
  const [above, below] = metric.isInverse ? [weight, total] : [total, weight];
  const n = metric.isPerScenario ? sums.units : metric.kind === "ratio" ? below : sums.rows;
  return {
    name: metric.name,
    unit: metric.unit,
    per: metric.isPerScenario ? "scenario" : metric.per,
    value: below > 0 ? above / below : null,
    low: null,
    high: null,
    n,
    missing,
    note: "computing the interval ...",
  };
}

/** @param {Metric} metric @param {Sums} sums */
function estimate(metric, sums) {
  return metric.kind === "rate" ? rate(sums) : mean(sums, metric.bounds);
}

/** @param {Metric} metric @param {Sums} sums @param {number} missing */
function ratioOf(metric, sums, missing) {
  const found = ratio(sums);
  const worst = (/** @type {import("./intervals.js").Interval} */ one) =>
    missing ? { worst_low: null, worst_high: null } : { worst_low: one.low, worst_high: one.high };
  if (!metric.isInverse) return { ...found, n: round(sum(sums.weight)), ...worst(found) };
  const n = round(sum(sums.total));
  const { value, low, high } = found;
  const without = { n, low: null, high: null, level: null, method: null, worst_low: null, worst_high: null };
  if (value === null || value === 0)
    return { ...found, ...without, value: null, note: value === 0 ? "no data: it never happened" : found.note };
  if (low === null || high === null) return { ...found, n, value: 1 / value, worst_low: null, worst_high: null };
  if (low <= 0) return { ...found, ...without, value: 1 / value, note: "not enough data: the rate may be zero" };
  const turned = { ...found, n, value: 1 / value, low: 1 / high, high: 1 / low };
  return { ...turned, ...worst(turned) };
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 1000) / 1000;
}
