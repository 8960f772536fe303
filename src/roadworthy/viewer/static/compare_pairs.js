// Episodes of two runs that are the same: the same scenario, seed and replicate, and the same factors.

/** @typedef {import("./episodes.js").Episodes} Episodes */

const KEYS = ["scenario_id", "seed", "replicate"];

/**
 * Return the rows of the same episodes, (n, 2) one after another, in the order of the first run.
 * @param {Episodes} a @param {Episodes} b @returns {Uint32Array}
 */
export function pairs(a, b) {
  const places = new Map(Array.from({ length: b.count }, (_, row) => [identity(b, row), row]));
  const found = new Uint32Array(2 * a.count);
  let count = 0;
  for (let row = 0; row < a.count; row++) {
    const other = places.get(identity(a, row));
    if (other === undefined) continue;
    found[count++] = row;
    found[count++] = other;
  }
  return found.subarray(0, count);
}

/** @param {Episodes} episodes @param {number} row */
function identity(episodes, row) {
  return KEYS.map((name) => episodes.get(row, name)).join("\0");
}
