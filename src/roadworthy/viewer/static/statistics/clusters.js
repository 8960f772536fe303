// Sums per cluster, which are all that estimates and intervals need (statistics/clusters.py).

/**
 * Sums over the rows of each of G clusters, without clusters that have no data.
 * @typedef {object} Sums
 * @property {Float64Array} total sum of values
 * @property {Float64Array} weight sum of the denominators: rows, or meters
 * @property {number} rows with data
 * @property {boolean} isOneEach whether every cluster has one row
 * @property {number} units scenarios with data, where each counts once
 * @property {number | null} unitCount the effective number of scenarios, where several lie in a cluster, such as a map
 */

/**
 * Columns with one entry per episode; `missing` is the number of rows that its crash or timeout took.
 * @typedef {{total: ArrayLike<number>, weight: ArrayLike<number>, rows: ArrayLike<number>, missing?: ArrayLike<number>}} EpisodeSums
 */

/**
 * The clusters and the scenarios of episodes, numbered by sorted name; a scenario lies in one cluster.
 * @typedef {{clusters: ArrayLike<number>, clusterCount: number, scenarios: ArrayLike<number>, scenarioCount: number}} Groups
 */

/**
 * Add up the sums of episodes over clusters.
 * @param {EpisodeSums} given
 * @param {Groups} groups
 * @param {Uint32Array} selection the episodes to use
 * @param {{fill?: number | null, isEachOnce?: boolean}} [options] fill: the value that stands for a missing row, null
 *   leaves them out; isEachOnce: each scenario counts once, however many rows it has
 * @returns {Sums}
 */
export function sumsOf(given, groups, selection, { fill = null, isEachOnce = false } = {}) {
  const { total, weight, rows, missing } = given;
  const places = isEachOnce ? groups.scenarios : groups.clusters;
  const count = isEachOnce ? groups.scenarioCount : groups.clusterCount;
  let totals = new Float64Array(count);
  let weights = new Float64Array(count);
  let sizes = new Float64Array(count);
  const clusterOf = new Uint32Array(isEachOnce ? count : 0);
  for (let k = 0; k < selection.length; k++) {
    const episode = selection[k];
    const lacking = fill === null || !missing ? 0 : missing[episode];
    const size = rows[episode] + lacking;
    if (!(size > 0)) continue;
    const place = places[episode];
    totals[place] += total[episode] + (lacking ? lacking * /** @type {number} */ (fill) : 0);
    weights[place] += weight[episode] + lacking;
    sizes[place] += size;
    if (isEachOnce) clusterOf[place] = groups.clusters[episode];
  }
  let units = 0;
  let unitCount = null;
  if (isEachOnce) {
    const means = [totals, weights, sizes];
    [totals, weights, sizes] = [0, 1, 2].map(() => new Float64Array(groups.clusterCount));
    for (let unit = 0; unit < count; unit++) {
      if (means[2][unit] === 0) continue;
      units++;
      totals[clusterOf[unit]] += means[0][unit] / means[1][unit];
      weights[clusterOf[unit]] += 1;
      sizes[clusterOf[unit]] += means[2][unit];
    }
  }
  if (groups.scenarios !== groups.clusters) {
    unitCount = isEachOnce ? units : effective(weightOfUnits(given, groups, selection, fill));
  }
  let used = 0;
  let all = 0;
  let isOneEach = true;
  for (let cluster = 0; cluster < groups.clusterCount; cluster++) {
    if (sizes[cluster] === 0) continue;
    totals[used] = totals[cluster];
    weights[used] = weights[cluster];
    used++;
    all += sizes[cluster];
    if (sizes[cluster] !== 1) isOneEach = false;
  }
  return { total: totals.slice(0, used), weight: weights.slice(0, used), rows: all, isOneEach, units, unitCount };
}

/**
 * The sums of the denominators of scenarios.
 * @param {EpisodeSums} given
 * @param {Groups} groups
 * @param {Uint32Array} selection
 * @param {number | null} fill
 */
function weightOfUnits({ weight, rows, missing }, groups, selection, fill) {
  const weights = new Float64Array(groups.scenarioCount);
  for (const episode of selection) {
    const lacking = fill === null || !missing ? 0 : missing[episode];
    if (rows[episode] + lacking > 0) weights[groups.scenarios[episode]] += weight[episode] + lacking;
  }
  return weights;
}

/** How many equal weights would be as many. @param {Float64Array} weights */
function effective(weights) {
  const squares = sum(weights.map((part) => part * part));
  return squares > 0 ? sum(weights) ** 2 / squares : 0;
}

/** @param {ArrayLike<number>} values */
export function sum(values) {
  let found = 0;
  for (let k = 0; k < values.length; k++) found += values[k];
  return found;
}

/** The estimate: sum over sum; null if the denominator is zero. @param {Sums} sums */
export function valueOf(sums) {
  const weight = sum(sums.weight);
  return weight > 0 ? sum(sums.total) / weight : null;
}

/** The deviation of each cluster from the estimate, as a share of the denominator. @param {Sums} sums */
export function parts(sums) {
  const weight = sum(sums.weight);
  const value = sum(sums.total) / weight;
  return sums.total.map((total, k) => (total - value * sums.weight[k]) / weight);
}

/** The standard error of the estimate, by linearization. @param {Sums} sums */
export function standardError(sums) {
  const count = sums.total.length;
  return Math.sqrt((count / (count - 1)) * sum(parts(sums).map((part) => part * part)));
}

/** The jackknife variance of the estimate over clusters. @param {Sums} sums */
export function jackknifeVariance(sums) {
  const weight = sum(sums.weight);
  const count = sums.total.length;
  let found = 0;
  parts(sums).forEach((part, k) => {
    const leverage = 1 - sums.weight[k] / weight;
    if (leverage > 0) found += (part / leverage) ** 2;
  });
  return ((count - 1) / count) * found;
}

/** The number of clusters of equal size that would have the same weight. @param {Sums} sums */
export function effectiveCount(sums) {
  return effective(sums.weight);
}

const ALIKE_UNITS = 0.25;

/** The design effect if all rows of a cluster, or of its scenarios, were alike. @param {Sums} sums */
export function largestEffect(sums) {
  const clusters = effectiveCount(sums);
  if (sums.unitCount === null) return sums.rows / clusters;
  return (sums.rows / sums.unitCount) * (1 + ALIKE_UNITS * (Math.max(sums.unitCount / clusters, 1) - 1));
}

/** Whether all clusters have the same weight. @param {Sums} sums */
export function hasEqualSizes({ weight }) {
  let low = Infinity;
  let high = -Infinity;
  for (const part of weight) {
    low = Math.min(low, part);
    high = Math.max(high, part);
  }
  return weight.length === 0 || high - low <= 1e-9 * Math.abs(weight[0]);
}

/** The sums of the rarer outcome of a rate. @param {Sums} sums */
export function minority(sums) {
  const isMostlyYes = sum(sums.total) > 0.5 * sum(sums.weight);
  return isMostlyYes ? sums.weight.map((weight, k) => weight - sums.total[k]) : sums.total;
}
