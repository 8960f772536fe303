// Intervals of rates, means and ratios from sums over clusters: the methods of statistics/intervals.py, step by step.

import { studentizedQuantiles } from "./bootstrap.js";
import {
  effectiveCount,
  hasEqualSizes,
  jackknifeVariance,
  largestEffect,
  minority,
  standardError,
  sum,
  valueOf,
} from "./clusters.js";
import { betaQuantile, gammaQuantile, normalQuantile, studentQuantile } from "./distributions.js";

/** @typedef {import("./clusters.js").Sums} Sums */
/**
 * @typedef {{value: number | null, n: number, clusters: number, low: number | null, high: number | null,
 *   level: number | null, method: string | null, note: string | null}} Interval
 */
/** @typedef {[number, number]} Pair */

export const LEVEL = 0.95;
export const FEWEST_FOR_RATES = 10;
export const FEWEST_FOR_MEANS = 80;
export const FEWEST_WITH_NOTE = 10;
export const FEWEST_UNEQUAL = 15;
export const FEWEST_FOR_RATIOS = 3;
export const FEWEST_WITH_EVENTS = 10;
const FEW_HOLDERS = 4;
const LEAST_DESIGN_EFFECT = 0.6;
const SMALL_SAMPLE = 3;

/** The rate of rows that are 0 or 1. @param {Sums} sums @param {number} [level] @returns {Interval} */
export function rate(sums, level = LEVEL) {
  const found = estimate(sums);
  const p = found.value;
  if (p === null) return found;
  if (sums.isOneEach) {
    const [low, high] = wilson(p, sums.rows, halfNormal(level));
    return { ...found, low, high, level, method: "Wilson" };
  }
  if (found.clusters < FEWEST_FOR_RATES) return oneRowPerCluster(found, sums, level);
  const sizes = effectiveSizes(sums, p * (1 - p));
  const quantile = halfStudent(level, Math.max(effectiveCount(sums) - 1, 1));
  const [nearer, farther] = sizes.map((size) => wilson(p, size, quantile));
  let [low, high] = p <= 0.5 ? [nearer[0], farther[1]] : [farther[0], nearer[1]];
  if (holders(minority(sums)) < FEW_HOLDERS) {
    const exact = clopperPearson(p, sizes[0], level);
    if (p <= 0.5) low = Math.min(low, exact[0]);
    else high = Math.max(high, exact[1]);
  }
  return { ...found, low, high, level, method: "clustered Wilson" };
}

/**
 * The mean of rows with a least and a greatest possible value, or without.
 * @param {Sums} sums @param {Pair | null} [bounds] @param {number} [level] @returns {Interval}
 */
export function mean(sums, bounds = null, level = LEVEL) {
  const found = estimate(sums);
  if (found.value === null) return found;
  const effective = effectiveCount(sums);
  const needed = hasEqualSizes(sums) ? FEWEST_WITH_NOTE : FEWEST_UNEQUAL;
  if (!(found.clusters >= FEWEST_WITH_NOTE && effective >= needed - 1e-9)) {
    return bounds
      ? oneRowPerCluster(found, sums, level, bounds)
      : tooFew(found, `${short(effective)} clusters`, needed);
  }
  if (standardError(sums) <= 1e-12 * Math.max(Math.abs(found.value), 1)) {
    if (!bounds || !bounds.includes(found.value)) return { ...found, note: "not enough data: all clusters are equal" };
    const [low, high] = scaled(wilson, found.value, bounds, sums.rows / largestEffect(sums), halfNormal(level));
    return { ...found, low, high, level, method: "Wilson" };
  }
  return bootstrapped(found, sums, level, bounds);
}

/** A sum over a sum. @param {Sums} sums @param {number} [level] @param {number} [least] @returns {Interval} */
export function ratio(sums, level = LEVEL, least = 0) {
  const found = estimate(sums);
  if (found.value === null) return found;
  if (sums.total.every((total) => total >= 0 && Number.isInteger(total))) {
    if (found.clusters < FEWEST_FOR_RATIOS) return tooFew(found, `${found.clusters} clusters`, FEWEST_FOR_RATIOS);
    const [low, high] = eventsInterval(sums, level);
    return { ...found, low: Math.max(low, least), high, level, method: "clustered Garwood" };
  }
  const effective = effectiveCount(sums);
  if (effective < FEWEST_UNEQUAL) return tooFew(found, `${short(effective)} clusters`, FEWEST_UNEQUAL);
  const spread = sums.total.reduce((n, total) => n + (total !== 0 ? 1 : 0), 0);
  if (spread < FEWEST_WITH_EVENTS) return tooFew(found, `it happened in ${spread} clusters`, FEWEST_WITH_EVENTS);
  return bootstrapped(found, sums, level, [least, Infinity]);
}

/**
 * Wilson's score interval of a share p of n.
 * @param {number} p
 * @param {number} n
 * @param {number} quantile
 * @returns {Pair}
 */
export function wilson(p, n, quantile) {
  const square = quantile ** 2;
  const middle = (p + square / (2 * n)) / (1 + square / n);
  const half = (quantile / (1 + square / n)) * Math.sqrt((p * (1 - p)) / n + square / (4 * n ** 2));
  return [p === 0 ? 0 : Math.max(middle - half, 0), p === 1 ? 1 : Math.min(middle + half, 1)];
}

/**
 * Clopper and Pearson's interval of a share p of n.
 * @param {number} p
 * @param {number} n
 * @param {number} [level]
 * @returns {Pair}
 */
export function clopperPearson(p, n, level = LEVEL) {
  const tail = (1 - level) / 2;
  const yes = p * n;
  return [p <= 0 ? 0 : betaQuantile(yes, n - yes + 1, tail), p >= 1 ? 1 : betaQuantile(yes + 1, n - yes, 1 - tail)];
}

/**
 * Garwood's interval of the expected number of events, given the observed number.
 * @param {number} events
 * @param {number} [level]
 * @returns {Pair}
 */
export function garwood(events, level = LEVEL) {
  const tail = (1 - level) / 2;
  return [events > 0 ? gammaQuantile(events, tail) : 0, gammaQuantile(events + 1, 1 - tail)];
}

/**
 * The effective number of rows toward the nearer bound of a rate, and away from it.
 * @param {Sums} sums
 * @param {number} rowVariance
 * @returns {Pair}
 */
export function effectiveSizes(sums, rowVariance) {
  const largest = largestEffect(sums);
  const effect =
    rowVariance > 0 ? Math.max(jackknifeVariance(sums) / (rowVariance / sums.rows), LEAST_DESIGN_EFFECT) : largest;
  const [nearer, farther] = withDoubt(effect, largest, holders(minority(sums)), rowsEach(sums));
  return [sums.rows / nearer, sums.rows / farther];
}

/** @param {number} level */
function halfNormal(level) {
  return normalQuantile(0.5 + level / 2);
}

/** @param {number} level @param {number} freedom */
function halfStudent(level, freedom) {
  return studentQuantile(freedom, 0.5 + level / 2);
}

/** @param {Sums} sums @returns {Interval} */
function estimate(sums) {
  const value = valueOf(sums);
  const note = sums.rows === 0 || value === null ? "no data" : null;
  return { value, n: sums.rows, clusters: sums.total.length, low: null, high: null, level: null, method: null, note };
}

/** The effective number of clusters that hold events. @param {Float64Array} events */
function holders(events) {
  const squares = sum(events.map((part) => part * part));
  return squares > 0 ? sum(events) ** 2 / squares : 0;
}

/** The number of rows that may all be alike. @param {Sums} sums */
function rowsEach(sums) {
  return sums.unitCount === null ? sums.rows / sums.total.length : largestEffect(sums);
}

/**
 * @param {number} effect
 * @param {number} largest
 * @param {number} held
 * @param {number} each
 * @returns {Pair}
 */
function withDoubt(effect, largest, held, each) {
  const most = Math.max(largest, effect);
  const nearer = 1 / (1 + held);
  const farther = 1 / (1 + held / each);
  return [effect + nearer * (most - effect), effect + farther * (most - effect)];
}

/** @param {Interval} found @param {Sums} sums @param {number} level @param {Pair} [bounds] @returns {Interval} */
function oneRowPerCluster(found, sums, level, bounds = [0, 1]) {
  if (found.clusters < 2) return tooFew(found, `${found.clusters} cluster with ${sums.rows} rows`, 2);
  const [low, high] = scaled(clopperPearson, /** @type {number} */ (found.value), bounds, effectiveCount(sums), level);
  return { ...found, low, high, level, method: "Clopper-Pearson, one row per cluster" };
}

/**
 * The interval of a mean between bounds by a method for shares.
 * @param {(p: number, n: number, argument: number) => Pair} method @param {number} value @param {Pair} bounds @param {number} n @param {number} argument
 * @returns {Pair}
 */
function scaled(method, value, [least, most], n, argument) {
  const width = most - least;
  const [low, high] = method(Math.min(Math.max((value - least) / width, 0), 1), n, argument);
  return [least + width * low, least + width * high];
}

/**
 * Garwood's interval of events per denominator with a design effect.
 * @param {Sums} sums
 * @param {number} level
 * @returns {Pair}
 */
function eventsInterval(sums, level) {
  const events = sum(sums.total);
  const over = sum(sums.weight);
  const clusters = effectiveCount(sums);
  const largest = largestEffect(sums);
  const effect = events > 0 ? Math.max(jackknifeVariance(sums) / (events / over / over), 1) : largest;
  const spread = (halfStudent(level, Math.max(clusters - 1, 1)) / halfNormal(level)) ** 2;
  const [nearer, farther] = withDoubt(effect, largest, holders(sums.total), rowsEach(sums)).map(
    (part) => part * spread,
  );
  return [(garwood(events / nearer, level)[0] * nearer) / over, (garwood(events / farther, level)[1] * farther) / over];
}

/** @param {Interval} found @param {Sums} sums @param {number} level @param {Pair | null} bounds @returns {Interval} */
function bootstrapped(found, sums, level, bounds) {
  let [low, high] = studentizedQuantiles(sums, level);
  const clusters = effectiveCount(sums);
  const student = halfStudent(level, clusters - 1);
  const few = student / halfStudent(level, found.clusters - 1);
  [low, high] = [Math.min(low * few, -student), Math.max(high * few, student)];
  const isBounded = bounds !== null && Number.isFinite(bounds[1]);
  if (!Number.isFinite(low) || !Number.isFinite(high)) {
    return isBounded
      ? oneRowPerCluster(found, sums, level, bounds)
      : { ...found, note: "not enough data: too few clusters differ from the others" };
  }
  const error = Math.sqrt(jackknifeVariance(sums)) * (1 + SMALL_SAMPLE / clusters);
  const value = /** @type {number} */ (found.value);
  const [least, most] = isBounded
    ? scaled(clopperPearson, value, bounds, clusters, level)
    : (bounds ?? [-Infinity, Infinity]);
  const note =
    found.clusters < FEWEST_FOR_MEANS
      ? `assumes that no rare extreme values are missing from its ${found.clusters} clusters`
      : null;
  return {
    ...found,
    low: Math.max(value - high * error, least),
    high: Math.min(value - low * error, most),
    level,
    method: "bootstrap-t",
    note,
  };
}

/** @param {Interval} found @param {string} given @param {number} needed @returns {Interval} */
function tooFew(found, given, needed) {
  return { ...found, note: `not enough data: ${given}, an interval needs ${needed}` };
}

/** @param {number} value */
function short(value) {
  return String(+value.toPrecision(3));
}
