// Small labels.

import { h } from "../dom.js";

const CLASSES = {
  completed: "completed",
  failed: "failed",
  damaged: "failed",
  interrupted: "interrupted",
  running: "running",
};

/** The status of a run or an episode. @param {string} status */
export function statusChip(status) {
  return h("span", { class: ["status", CLASSES[/** @type {keyof typeof CLASSES} */ (status)]] }, status);
}
