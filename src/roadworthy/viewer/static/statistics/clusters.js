// Sums per cluster, which are all that estimates and intervals need (statistics/clusters.py).

/**
 * Sums over the rows of each of G clusters, without clusters that have no data.
 * @typedef {object} Sums
 * @property {Float64Array} total sum of values
 * @property {Float64Array} weight sum of the denominators: rows, or meters
 * @property {number} rows with data
 * @property {boolean} isOneEach whether every cluster has one row
 * @property {Float64Array} [minority] of rates: the sum of the rarer outcome, if it differs from that of the totals
 */

/**
 * Add up the sums of episodes over clusters.
 * @param {ArrayLike<number>} total by episode
 * @param {ArrayLike<number>} weight by episode
 * @param {ArrayLike<number>} rows by episode
 * @param {ArrayLike<number>} clusters by episode, numbered by sorted name from 0 to `count` - 1
 * @param {number} count
 * @param {Uint32Array} selection the episodes to use
 * @returns {Sums}
 */
export function sumsOf(total, weight, rows, clusters, count, selection) {
  const totals = new Float64Array(count);
  const weights = new Float64Array(count);
  const sizes = new Float64Array(count);
  for (let k = 0; k < selection.length; k++) {
    const episode = selection[k];
    const size = rows[episode];
    if (!(size > 0)) continue;
    const cluster = clusters[episode];
    totals[cluster] += total[episode];
    weights[cluster] += weight[episode];
    sizes[cluster] += size;
  }
  let used = 0;
  let all = 0;
  let isOneEach = true;
  for (let cluster = 0; cluster < count; cluster++) {
    if (sizes[cluster] === 0) continue;
    totals[used] = totals[cluster];
    weights[used] = weights[cluster];
    used++;
    all += sizes[cluster];
    if (sizes[cluster] !== 1) isOneEach = false;
  }
  return { total: totals.slice(0, used), weight: weights.slice(0, used), rows: all, isOneEach };
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

/** The sums of the rarer outcome of a rate. @param {Sums} sums */
export function minority(sums) {
  if (sums.minority) return sums.minority;
  const isMostlyYes = sum(sums.total) > 0.5 * sum(sums.weight);
  return isMostlyYes ? sums.weight.map((weight, k) => weight - sums.total[k]) : sums.total;
}
