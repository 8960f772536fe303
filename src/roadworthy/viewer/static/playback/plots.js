// Quantities of the followed agent over time, with one cursor for all plots and a line for each run.

import { h, replace, s } from "../dom.js";
import { Scale, tickText } from "../plots/scale.js";
import { digits } from "../words.js";
import { trialLength } from "./axis.js";
import { MEASURES } from "./measures.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").Version} Version */

const WIDTH = 400;
const HEIGHT = 120;
const LEFT = 40;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 18;
const MOST_POINTS = 1200;

/**
 * @param {Scene} scene @param {(position: number) => void} seek
 */
export function plots(scene, seek) {
  const { axis } = scene;
  const box = h("div", { class: "step-plots" });
  const x = new Scale(0, Math.max(axis.count - 1, 1), LEFT, WIDTH - RIGHT);
  /** @type {{cursor: SVGLineElement, reading: HTMLElement, series: (Float32Array | null)[], unit: string}[]} */
  let drawn = [];
  let position = 0;
  /** @type {number | null} */
  let hovered = null;
  let shownAt = -1;
  return { box, make, draw };

  /** @param {number} agent */
  function make(agent) {
    drawn = [];
    shownAt = -1;
    const figures = [...MEASURES, ...(scene.policy?.measures(agent) ?? [])].map((measure) => {
      const versions = /** @type {Version[]} */ ([scene.main, scene.ghost].filter(Boolean));
      const series = versions.map(({ trace }) => (trace !== scene.main.trace && measure.isOfMain ? null : onAxis(trace, measure.values(trace, agent))));
      if (!series.some((values) => values?.some((value) => value === value))) return null;
      return figure(measure, series);
    });
    replace(box, figures.some(Boolean) ? figures : h("p", { class: "muted" }, "Nothing is recorded for this agent."));
    draw(position);
  }

  /** Move values from frames of a trace to frames of the axis. @param {import("../trace.js").Trace} trace @param {Float32Array | null} values */
  function onAxis(trace, values) {
    if (!values || !scene.ghost) return values;
    const moved = new Float32Array(axis.count).fill(NaN);
    for (let trial = 0; trial < axis.trials; trial++) {
      const length = trialLength(trace, trial);
      if (length) moved.set(values.subarray(trace.trialStarts[trial], trace.trialStarts[trial] + length), axis.starts[trial]);
    }
    return moved;
  }

  /** @param {import("./measures.js").Measure} measure @param {(Float32Array | null)[]} series */
  function figure(measure, series) {
    let low = Infinity;
    let high = -Infinity;
    for (const values of series) {
      for (const value of values ?? []) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (measure.zero) low = Math.min(low, 0);
    const margin = 0.06 * (high - low || Math.abs(high) || 1);
    const y = new Scale(measure.zero && low === 0 ? 0 : low - margin, high + margin, HEIGHT - BOTTOM, TOP);
    const cursor = s("line", { class: "play-head", y1: TOP, y2: HEIGHT - BOTTOM });
    const reading = h("span", { class: "reading" });
    const { parting } = scene;
    const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${measure.title}: ${series.map((values, k) => `${k ? "the other run, " : ""}${range(values, measure.unit)}`).join("; ")}`,
      onpointermove: (/** @type {PointerEvent} */ event) => {
        hovered = frameAt(svg, event);
        if (event.buttons === 1) seek(hovered);
        draw(position);
      },
      onpointerleave: () => {
        hovered = null;
        draw(position);
      },
      onpointerdown: (/** @type {PointerEvent} */ event) => !event.button && seek(frameAt(svg, event)) },
    y.ticks(32).map((tick) => [s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(tick), y2: y.at(tick) }),
      s("text", { class: "axis", x: LEFT - 5, y: y.at(tick) + 4, "text-anchor": "end" }, tickText(tick))]).flat(),
    axis.starts.slice(1, -1).map((start) => s("line", { class: "trial-boundary", x1: x.at(start), x2: x.at(start), y1: TOP, y2: HEIGHT - BOTTOM })),
    parting ? s("line", { class: "parting-mark", x1: x.at(parting.position), x2: x.at(parting.position), y1: TOP, y2: HEIGHT - BOTTOM }) : null,
    secondTicks().map(([at, text]) => s("text", { class: "axis", x: at, y: HEIGHT - 4, "text-anchor": at > WIDTH - 24 ? "end" : "middle" }, text)),
    series.map((values, k) => (values ? s("path", { class: ["curve", k ? "c1" : "c0"], d: path(values, y) }) : null)).reverse(), cursor);
    drawn.push({ cursor, reading, series, unit: measure.unit });
    return h("figure", { class: "step-plot", "data-measure": measure.name }, h("figcaption", null, h("span", null, measure.title), reading), svg);
  }

  /** Seconds since the start of the trial, for one trial; else the numbers of frames. @returns {[number, string][]} */
  function secondTicks() {
    if (axis.trials > 1) return [];
    const time = new Scale(0, (axis.count - 1) * axis.dt, LEFT, WIDTH - RIGHT);
    return time.ticks(70).map((tick) => [time.at(tick), `${tickText(tick)} s`]);
  }

  /** @param {Float32Array} values @param {Scale} y */
  function path(values, y) {
    const stride = Math.max(1, Math.floor(values.length / MOST_POINTS));
    const parts = [];
    let isDown = false;
    for (let k = 0; k < values.length; k += stride) {
      const value = values[k];
      const isKnown = value === value;
      const isBoundary = axis.starts.some((start) => start > k - stride && start <= k);
      if (isKnown) parts.push(`${isDown && !isBoundary ? "L" : "M"}${x.at(k).toFixed(1)} ${y.at(value).toFixed(1)}`);
      if (isKnown && !isDown && values[k + stride] !== values[k + stride]) parts.push("h1"); // a single value
      isDown = isKnown;
    }
    return parts.join("");
  }

  /** @param {SVGSVGElement} svg @param {PointerEvent} event */
  function frameAt(svg, event) {
    const box = svg.getBoundingClientRect();
    return Math.round(x.value(((event.clientX - box.left) / box.width) * WIDTH));
  }

  /** @param {number} now a frame */
  function draw(now) {
    position = now;
    const at = Math.round(hovered ?? now);
    if (at === shownAt) return;
    shownAt = at;
    const place = String(x.at(at));
    for (const { cursor, reading, series, unit } of drawn) {
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      const texts = series.map((values) => (values && values[at] === values[at] ? digits(values[at]) : "–"));
      reading.textContent = `${texts.join(" / ")}${unit ? ` ${unit}` : ""}`;
    }
  }
}

/** @param {Float32Array | null} values @param {string} unit */
function range(values, unit) {
  const known = values ? Array.from(values).filter((value) => value === value) : [];
  if (!known.length) return "no values";
  const low = known.reduce((a, b) => Math.min(a, b));
  const high = known.reduce((a, b) => Math.max(a, b));
  return `${digits(low)} to ${digits(high)} ${unit}`;
}
