// The differences of two runs as `roadworthy compare` computes them.

import { h } from "../dom.js";

/** @param {any} found data/compare/A/B.json @param {any} first @param {any} second */
export function differences(found, first, second) {
  return h("section", null, h("pre", null, JSON.stringify([found, first.key, second.key])));
}
