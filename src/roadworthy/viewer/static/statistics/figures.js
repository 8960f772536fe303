// Figures of selected episodes from the sums of each episode, equal to those of metrics.json for all of them.

import { minority, sum } from "./clusters.js";
import { mean, rate, ratio } from "./intervals.js";

/** @typedef {import("./clusters.js").Sums} Sums */
/**
 * A metric of a run (figure_sums.py).
 * @typedef {{name: string, kind: "rate" | "share" | "mean" | "ratio", unit: string, per: string, what: string,
 *   isInverse: boolean, isPerScenario: boolean, version: number}} Metric
 */

/** @param {Metric} metric @param {Sums} sums @returns {import("../words.js").Figure} */
export function figureOf(metric, sums) {
  const names = { name: metric.name, unit: metric.unit };
  if (metric.kind === "ratio") return { ...names, per: metric.per, ...ratioOf(metric, sums) };
  const given = metric.isPerScenario ? eachOnce(sums) : sums;
  const found = metric.kind === "rate" ? rate(given) : mean(given, metric.kind === "share");
  return metric.isPerScenario ? { ...names, per: "scenario", ...found, n: found.clusters } : { ...names, per: metric.per, ...found };
}

/** Whether the interval of a metric takes the bootstrap, which is slow. @param {Metric} metric */
export function isSlow(metric) {
  return metric.kind !== "rate";
}

/** The clusters' means instead of their sums, so that all clusters count the same. @param {Sums} sums @returns {Sums} */
export function eachOnce(sums) {
  return { ...sums, total: sums.total.map((total, k) => total / sums.weight[k]), weight: sums.weight.map(() => 1), minority: minority(sums) };
}

/** @param {Metric} metric @param {Sums} sums @returns {import("./intervals.js").Interval} */
function ratioOf(metric, sums) {
  const found = ratio(sums);
  if (!metric.isInverse) return { ...found, n: round(sum(sums.weight)) };
  const n = round(sum(sums.total));
  const { value, low, high } = found;
  if (value === null || value === 0) return { ...found, n, value: null, note: value === 0 ? "no data: it never happened" : found.note };
  if (low === null || high === null) return { ...found, n, value: 1 / value };
  if (low <= 0) {
    return { ...found, n, value: 1 / value, low: null, high: null, level: null, method: null, note: "not enough data: the rate may be zero" };
  }
  return { ...found, n, value: 1 / value, low: 1 / high, high: 1 / low };
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 1000) / 1000;
}
