// The keys of the playback.

import { h } from "../dom.js";

/** What each key does, for the page. */
export const KEYS = [
  ["Space", "play, pause"],
  ["← →", "one frame back, forward; with Shift, one second"],
  ["Home, End", "start, end"],
  [", .", "slower, faster"],
  ["[ ]", "previous, next event"],
  ["1 … 9", "trial"],
  ["f", "follow the agent, or leave it"],
  ["m", "whole map"],
  ["p n", "previous, next ego"],
  ["+ −", "zoom"],
  ["w a s d", "move the map"],
  ["g", "0.5 m apart, else the first divergence (two runs)"],
];

/**
 * @typedef {{toggle: () => void, step: (frames: number) => void, second: (seconds: number) => void, ends: (isEnd: boolean) => void,
 *   speed: (by: number) => void, event: (by: number) => void, trial: (trial: number) => void, follow: () => void, map: () => void,
 *   ego: (by: number) => void, zoom: (by: number) => void, pan: (dx: number, dy: number) => void, parting: () => void}} Actions
 */

/** Listen for keys; return a function that ends this. @param {Actions} actions */
export function listenKeys(actions) {
  const pixels = 60;
  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const known = {
    " ": () => actions.toggle(), k: () => actions.toggle(),
    ArrowLeft: (event) => (event.shiftKey ? actions.second(-1) : actions.step(-1)),
    ArrowRight: (event) => (event.shiftKey ? actions.second(1) : actions.step(1)),
    Home: () => actions.ends(false), End: () => actions.ends(true),
    ",": () => actions.speed(-1), ".": () => actions.speed(1),
    "[": () => actions.event(-1), "]": () => actions.event(1),
    f: () => actions.follow(), m: () => actions.map(), n: () => actions.ego(1), p: () => actions.ego(-1), g: () => actions.parting(),
    "+": () => actions.zoom(2), "=": () => actions.zoom(2), "-": () => actions.zoom(-2),
    w: () => actions.pan(0, pixels), s: () => actions.pan(0, -pixels), a: () => actions.pan(pixels, 0), d: () => actions.pan(-pixels, 0),
  };
  for (let k = 1; k <= 9; k++) known[String(k)] = () => actions.trial(k - 1);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !Object.hasOwn(known, event.key)) return;
    if (/^(INPUT|SELECT|TEXTAREA|VIDEO)$/.test(target.tagName) || target.closest("dialog")) return;
    if (event.key === " " && /^(BUTTON|A|SUMMARY)$/.test(target.tagName)) return;
    event.preventDefault();
    known[event.key](event);
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

/** The keys as a list to open. */
export function keyList() {
  return h("details", { class: "playback-keys" }, h("summary", null, "Keys"),
    h("dl", null, KEYS.map(([key, what]) => h("div", null, h("dt", null, key), h("dd", null, what)))));
}
