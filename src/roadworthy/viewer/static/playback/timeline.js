// The time of an episode as a strip: trials, events, the places where two runs part and are clearly apart, and the current frame. A slider.

import { h, replace, s } from "../dom.js";
import { KINDS } from "./events.js";

/** @typedef {import("./scene.js").Scene} Scene */

const WIDTH = 1000;
const HEIGHT = 46;
const MOST_MARKS = 600;

/**
 * @param {Scene} scene @param {(position: number) => void} seek
 */
export function timeline(scene, seek) {
  const { axis, main } = scene;
  const last = Math.max(axis.count - 1, 1);
  const at = (/** @type {number} */ position) => (WIDTH * position) / last;
  const head = s("line", { class: "play-head", y1: 0, y2: HEIGHT });
  const marks = s("g", { class: "event-marks" });
  const trials = Array.from({ length: axis.trials }, (_, k) => s("g", null,
    s("rect", { class: k % 2 ? "trial-band odd" : "trial-band", x: at(axis.starts[k]), y: 0, width: Math.max(at(Math.min(axis.starts[k + 1], last)) - at(axis.starts[k]), 1), height: HEIGHT }),
    k ? s("line", { class: "trial-boundary", x1: at(axis.starts[k]), x2: at(axis.starts[k]), y1: 0, y2: HEIGHT }) : null));
  const { parting, apart } = scene;
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, trials, marks,
    parting ? s("line", { class: "parting-mark", "data-position": parting.position, x1: at(parting.position), x2: at(parting.position), y1: 0, y2: HEIGHT }) : null,
    apart ? s("line", { class: "apart-mark", "data-position": apart.position, x1: at(apart.position), x2: at(apart.position), y1: 0, y2: HEIGHT }) : null, head);
  const slider = h("div", { class: "timeline", tabindex: 0, role: "slider", "aria-label": "Frame of the episode", "aria-valuemin": 0, "aria-valuemax": axis.count - 1,
    onpointerdown: (/** @type {PointerEvent} */ event) => {
      if (event.button) return;
      slider.setPointerCapture(event.pointerId);
      move(event);
    },
    onpointermove: (/** @type {PointerEvent} */ event) => slider.hasPointerCapture(event.pointerId) && move(event) }, svg);
  const names = axis.trials > 1
    ? h("div", { class: "trial-names", "aria-hidden": "true" }, Array.from({ length: axis.trials }, (_, k) =>
      h("span", { style: { "--share": String((axis.starts[k + 1] - axis.starts[k]) / axis.count) } }, `trial ${k + 1}`)))
    : null;
  return { box: h("div", { class: "timeline-box" }, slider, names), draw, drawMarks };

  /** @param {number} position @param {string} text */
  function draw(position, text) {
    const x = String(at(position));
    head.setAttribute("x1", x);
    head.setAttribute("x2", x);
    slider.setAttribute("aria-valuenow", String(Math.round(position)));
    slider.setAttribute("aria-valuetext", text);
  }

  /** Events of the followed agent are tall, those of other agents short. @param {number} followed */
  function drawMarks(followed) {
    const { ghost } = scene;
    const shown = [...main.events].sort((a, b) => Number(a.agent === followed) - Number(b.agent === followed) || KINDS[a.kind].rank - KINDS[b.kind].rank);
    replace(marks, shown.slice(-MOST_MARKS).map((event) => {
      const isOwn = event.agent === followed;
      const position = axis.positionOf(main.trace, event.frame);
      return s("rect", { class: `event-mark ${KINDS[event.kind].tone}`, "data-kind": event.kind, "data-agent": event.agent, "data-position": position,
        x: at(position) - 2, width: 4, y: isOwn ? 3 : ghost ? 21 : 33, height: isOwn ? (ghost ? 15 : 26) : 9 });
    }), ghost ? ghost.events.slice(0, MOST_MARKS).map((event) => {
      const position = axis.positionOf(ghost.trace, event.frame);
      return s("rect", { class: `event-mark of-other ${KINDS[event.kind].tone}`, "data-kind": event.kind, x: at(position) - 2, width: 4, y: 34, height: event.agent === followed ? 11 : 7 });
    }) : null);
  }

  /** @param {PointerEvent} event */
  function move(event) {
    const box = slider.getBoundingClientRect();
    seek(Math.round(Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * last));
  }
}
