// Intervals of rates, means and ratios from sums over clusters: the methods of statistics/intervals.py.

import { studentizedQuantiles } from "./bootstrap.js";
import { jackknifeVariance, minority, standardError, sum, valueOf } from "./clusters.js";
import { normalQuantile, studentQuantile } from "./distributions.js";

/** @typedef {import("./clusters.js").Sums} Sums */
/**
 * @typedef {{value: number | null, n: number, clusters: number, low: number | null, high: number | null,
 *   level: number | null, method: string | null, note: string | null}} Interval
 */

export const LEVEL = 0.95;
export const FEWEST_FOR_RATES = 10;
export const FEWEST_FOR_MEANS = 80;
export const FEWEST_WITH_EVENTS = 10;
const LEAST_DESIGN_EFFECT = 0.6;

/** The rate of rows that are 0 or 1. @param {Sums} sums @param {number} [level] @returns {Interval} */
export function rate(sums, level = LEVEL) {
  const found = estimate(sums);
  if (found.value === null) return found;
  const p = found.value;
  if (sums.isOneEach) {
    const [low, high] = wilson(p, sums.rows, normalQuantile(0.5 + level / 2));
    return { ...found, low, high, level, method: "Wilson" };
  }
  const count = sums.total.length;
  if (count < FEWEST_FOR_RATES) return tooFew(found, `${count} scenarios with several rows each`, FEWEST_FOR_RATES);
  const size = effectiveSize(sums, p * (1 - p));
  const [low, high] = wilson(p, size, studentQuantile(count - 1, 0.5 + level / 2));
  return { ...found, low, high, level, method: "clustered Wilson" };
}

/**
 * The mean of rows; shares are from 0 to 1.
 * @param {Sums} sums @param {boolean} [isShare] @param {number} [level] @returns {Interval}
 */
export function mean(sums, isShare = false, level = LEVEL) {
  const found = estimate(sums);
  if (found.value === null) return found;
  const count = sums.total.length;
  if (count < FEWEST_FOR_MEANS) return tooFew(found, `${count} scenarios`, FEWEST_FOR_MEANS);
  if (standardError(sums) <= 1e-12 * Math.max(Math.abs(found.value), 1)) {
    if (!isShare || (found.value !== 0 && found.value !== 1)) return { ...found, note: "not enough data: all scenarios are equal" };
    const [low, high] = wilson(found.value, count, normalQuantile(0.5 + level / 2));
    return { ...found, low, high, level, method: "Wilson" };
  }
  return bootstrapped(found, sums, level, isShare ? [0, 1] : [-Infinity, Infinity]);
}

/** A sum over a sum. @param {Sums} sums @param {number} [level] @param {number} [least] @returns {Interval} */
export function ratio(sums, level = LEVEL, least = 0) {
  const found = estimate(sums);
  if (found.value === null) return found;
  const count = sums.total.length;
  const events = sums.total.reduce((n, total) => n + (total !== 0 ? 1 : 0), 0);
  if (count < FEWEST_FOR_MEANS) return tooFew(found, `${count} scenarios`, FEWEST_FOR_MEANS);
  if (events < FEWEST_WITH_EVENTS) return tooFew(found, `it happened in ${events} scenarios`, FEWEST_WITH_EVENTS);
  return bootstrapped(found, sums, level, [least, Infinity]);
}

/** Wilson's score interval of a share p of n. @param {number} p @param {number} n @param {number} quantile @returns {[number, number]} */
export function wilson(p, n, quantile) {
  const square = quantile ** 2;
  const middle = (p + square / (2 * n)) / (1 + square / n);
  const half = (quantile / (1 + square / n)) * Math.sqrt((p * (1 - p)) / n + square / (4 * n ** 2));
  return [p === 0 ? 0 : Math.max(middle - half, 0), p === 1 ? 1 : Math.min(middle + half, 1)];
}

/** The number of independent rows with the same information. @param {Sums} sums @param {number} rowVariance */
export function effectiveSize(sums, rowVariance) {
  const weight = sum(sums.weight);
  const largest = (sums.rows * sum(sums.weight.map((part) => part * part))) / weight ** 2;
  let effect = rowVariance > 0
    ? Math.max(jackknifeVariance(sums) / (rowVariance / sums.rows), LEAST_DESIGN_EFFECT) : largest;
  const rarer = minority(sums);
  const squares = sum(rarer.map((part) => part * part));
  const holders = squares > 0 ? sum(rarer) ** 2 / squares : 0;
  const doubt = 0.5 ** holders;
  effect = (1 - doubt) * effect + doubt * Math.max(largest, effect);
  return sums.rows / effect;
}

/** @param {Sums} sums @returns {Interval} */
function estimate(sums) {
  const value = valueOf(sums);
  const note = sums.rows === 0 || value === null ? "no data" : null;
  return { value, n: sums.rows, clusters: sums.total.length, low: null, high: null, level: null, method: null, note };
}

/** @param {Interval} found @param {Sums} sums @param {number} level @param {[number, number]} bounds @returns {Interval} */
function bootstrapped(found, sums, level, bounds) {
  const [low, high] = studentizedQuantiles(sums, level);
  if (!Number.isFinite(low) || !Number.isFinite(high)) {
    return { ...found, note: "not enough data: too few scenarios differ from the others" };
  }
  const error = standardError(sums);
  const value = /** @type {number} */ (found.value);
  return { ...found, low: Math.max(value - high * error, bounds[0]), high: Math.min(value - low * error, bounds[1]),
    level, method: "bootstrap-t" };
}

/** @param {Interval} found @param {string} given @param {number} needed @returns {Interval} */
function tooFew(found, given, needed) {
  return { ...found, note: `not enough data: ${given}, an interval needs ${needed}` };
}
