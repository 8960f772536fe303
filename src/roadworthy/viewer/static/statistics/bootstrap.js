// The studentized bootstrap over clusters (statistics/bootstrap.py), with the same draws.

import { standardError, valueOf } from "./clusters.js";
import { studentQuantile } from "./distributions.js";
import { Generator } from "./draws.js";

/** @typedef {import("./clusters.js").Sums} Sums */

export const DRAWS = 2000;
export const SEED = 20000;
export const MOST_CLUSTERS = 500;

/**
 * The quantiles of (estimate - truth) / standard error; infinite if draws have no spread.
 * @param {Sums} sums @param {number} level @returns {[number, number]}
 */
export function studentizedQuantiles(sums, level) {
  const tail = (1 - level) / 2;
  const count = sums.total.length;
  if (count > MOST_CLUSTERS) {
    const edge = studentQuantile(count - 1, 1 - tail);
    return [-edge, edge];
  }
  const value = /** @type {number} */ (valueOf(sums));
  const error = standardError(sums);
  const counts = drawn(count);
  const ratios = new Float64Array(DRAWS);
  for (let draw = 0; draw < DRAWS; draw++) ratios[draw] = ratio(counts, draw * count, sums, value, error);
  ratios.sort();
  return [atQuantile(ratios, tail), atQuantile(ratios, 1 - tail)];
}

/**
 * The deviation of a draw's estimate in its standard errors.
 * @param {Uint16Array} counts how often each cluster was drawn, of all draws @param {number} start of this draw
 * @param {Sums} sums @param {number} value @param {number} error
 */
function ratio(counts, start, { total, weight }, value, error) {
  let y = 0,
    w = 0,
    yy = 0,
    yw = 0,
    ww = 0;
  const count = total.length;
  for (let k = 0; k < count; k++) {
    const times = counts[start + k];
    if (times === 0) continue;
    const a = total[k];
    const b = weight[k];
    y += times * a;
    w += times * b;
    yy += times * (a * a);
    yw += times * (a * b);
    ww += times * (b * b);
  }
  const found = y / w;
  const spread = Math.max(yy - 2 * found * yw + found * found * ww, 0);
  const itsError = Math.sqrt((count / (count - 1)) * spread) / w;
  if (itsError <= 1e-9 * error) return Object.is(found - value, -0) || found < value ? -Infinity : Infinity;
  return (found - value) / itsError;
}

/** The value at a quantile by the inverted distribution function. @param {Float64Array} sorted @param {number} q */
function atQuantile(sorted, q) {
  return sorted[Math.min(Math.max(Math.ceil(sorted.length * q - 1), 0), sorted.length - 1)];
}

/** @type {{count: number, counts: Uint16Array}[]} */
const LAST = [];

/** How often each of `count` clusters is drawn, (DRAWS, count). @param {number} count */
function drawn(count) {
  const known = LAST.find((entry) => entry.count === count);
  if (known) return known.counts;
  const generator = new Generator([SEED, count]);
  const counts = new Uint16Array(DRAWS * count);
  for (let draw = 0; draw < DRAWS; draw++) {
    for (let k = 0; k < count; k++) counts[draw * count + generator.below(count)]++;
  }
  LAST.unshift({ count, counts });
  LAST.length = Math.min(LAST.length, 4);
  return counts;
}
