// Quantities of one agent in each frame of a trace. NaN where there is none.

import { trialOf } from "./axis.js";

/** @typedef {import("../trace.js").Trace} Trace */
/**
 * A plot: `zero` says whether its axis begins at 0, `isOfMain` whether only the first of two runs has values.
 * @typedef {{name: string, title: string, unit: string, values: (trace: Trace, agent: number) => Float32Array | null, zero?: boolean, isOfMain?: boolean}} Measure
 */

const MOST_TTC_S = 10;
const MOST_NEAREST_M = 100;

/** @type {Measure[]} */
export const MEASURES = [
  { name: "speed", title: "Speed", unit: "m/s", values: (trace, agent) => column(trace, trace.speed, agent), zero: true },
  { name: "acceleration", title: "Acceleration", unit: "m/s²", values: acceleration },
  { name: "steering", title: "Steering angle", unit: "rad", values: (trace, agent) => driven(trace, trace.extra.steering, agent) },
  { name: "nearest", title: "Distance to the nearest agent", unit: "m", values: nearest, zero: true },
  { name: "ttc", title: "Time to collision at constant velocity", unit: "s", values: timeToCollision, zero: true },
  { name: "action0", title: "First action (acceleration)", unit: "", values: (trace, agent) => action(trace, agent, 0) },
  { name: "action1", title: "Second action (steering)", unit: "", values: (trace, agent) => action(trace, agent, 1) },
];

/** @param {Trace} trace @param {Float32Array | undefined} source @param {number} agent */
function column(trace, source, agent) {
  if (!source || agent >= trace.agents) return null;
  const values = new Float32Array(trace.frames).fill(NaN);
  for (let f = 0, k = agent; f < trace.frames; f++, k += trace.agents) if (trace.present[k]) values[f] = source[k];
  return values;
}

/** The same while a policy drives: the simulator computes the column for these alone. @param {Trace} trace @param {Float32Array | undefined} source @param {number} agent */
function driven(trace, source, agent) {
  const values = column(trace, source, agent);
  if (!values) return null;
  let isAny = false;
  for (let f = 0, k = agent; f < trace.frames; f++, k += trace.agents) {
    if (!trace.active[k]) values[f] = NaN;
    else isAny = true;
  }
  return isAny ? values : null;
}

/** As recorded, else from the speed. @param {Trace} trace @param {number} agent */
function acceleration(trace, agent) {
  const recorded = driven(trace, trace.extra.acceleration, agent);
  if (recorded) return recorded;
  const speed = column(trace, trace.speed, agent);
  if (!speed) return null;
  const values = new Float32Array(trace.frames).fill(NaN);
  for (let f = 1; f < trace.frames; f++) if (trialOf(trace, f) === trialOf(trace, f - 1)) values[f] = (speed[f] - speed[f - 1]) / trace.dt;
  return values;
}

/** @param {Trace} trace @param {number} agent @param {number} which */
function action(trace, agent, which) {
  if (agent >= trace.agents) return null;
  const values = new Float32Array(trace.frames).fill(NaN);
  let isAny = false;
  for (let f = 0; f < trace.frames; f++) {
    const k = f * trace.agents + agent;
    if (!trace.active[k] || trace.trialStarts.includes(f)) continue;
    values[f] = trace.actions[2 * k + which];
    isAny ||= values[f] !== 0;
  }
  return isAny ? values : null;
}

/** The least distance between the boxes of the agent and of another one. @param {Trace} trace @param {number} agent */
export function nearest(trace, agent) {
  return pairwise(trace, agent, MOST_NEAREST_M, (k, other, least) => {
    const away = Math.hypot(trace.x[k] - trace.x[other], trace.y[k] - trace.y[other]);
    const [a, b] = [k % trace.agents, other % trace.agents];
    if (away - reach(trace, a) - reach(trace, b) >= least) return least;
    return boxDistance(boxOf(trace, k), boxOf(trace, other));
  });
}

/** The least time until the agent's box touches another one if both keep their velocities; up to 10 s. @param {Trace} trace @param {number} agent */
export function timeToCollision(trace, agent) {
  return pairwise(trace, agent, MOST_TTC_S, (k, other, least) => {
    const away = Math.hypot(trace.x[k] - trace.x[other], trace.y[k] - trace.y[other]);
    const [a, b] = [k % trace.agents, other % trace.agents];
    if (away - reach(trace, a) - reach(trace, b) > (trace.speed[k] + trace.speed[other]) * least) return least;
    return touchTime(boxOf(trace, k), boxOf(trace, other));
  });
}

/**
 * @param {Trace} trace @param {number} agent @param {number} most larger values are none
 * @param {(k: number, other: number, least: number) => number} measure of the agent at place k and another at its place
 */
function pairwise(trace, agent, most, measure) {
  if (agent >= trace.agents) return null;
  const values = new Float32Array(trace.frames).fill(NaN);
  let isAny = false;
  for (let f = 0; f < trace.frames; f++) {
    const first = f * trace.agents;
    const k = first + agent;
    if (!trace.present[k]) continue;
    let least = most;
    for (let other = first; other < first + trace.agents; other++) {
      if (other !== k && trace.present[other]) least = Math.min(least, measure(k, other, least));
    }
    if (least < most) {
      values[f] = least;
      isAny = true;
    }
  }
  return isAny ? values : null;
}

/** @param {Trace} trace @param {number} agent */
function reach(trace, agent) {
  return 0.5 * Math.hypot(trace.length[agent], trace.width[agent]);
}

/** @typedef {{x: number, y: number, cos: number, sin: number, half: number, side: number, vx: number, vy: number}} Box */

/** @param {Trace} trace @param {number} k @returns {Box} */
function boxOf(trace, k) {
  const agent = k % trace.agents;
  const cos = Math.cos(trace.heading[k]);
  const sin = Math.sin(trace.heading[k]);
  return { x: trace.x[k], y: trace.y[k], cos, sin, half: 0.5 * trace.length[agent], side: 0.5 * trace.width[agent],
    vx: trace.speed[k] * cos, vy: trace.speed[k] * sin };
}

/** The distance between two boxes, 0 if they overlap. @param {Box} a @param {Box} b */
export function boxDistance(a, b) {
  if (touchTime({ ...a, vx: 0, vy: 0 }, { ...b, vx: 0, vy: 0 }) === 0) return 0;
  return Math.min(cornersTo(a, b), cornersTo(b, a)); // the least distance is at a corner of one of them
}

/** @param {Box} a @param {Box} b the distance from b's corners to a */
function cornersTo(a, b) {
  let least = Infinity;
  for (const [i, j] of [[1, 1], [1, -1], [-1, 1], [-1, -1]]) {
    const x = b.x + i * b.half * b.cos - j * b.side * b.sin - a.x;
    const y = b.y + i * b.half * b.sin + j * b.side * b.cos - a.y;
    const along = Math.max(Math.abs(x * a.cos + y * a.sin) - a.half, 0);
    const aside = Math.max(Math.abs(y * a.cos - x * a.sin) - a.side, 0);
    least = Math.min(least, Math.hypot(along, aside));
  }
  return least;
}

/**
 * The time until two boxes first overlap if they keep their velocities and headings, Infinity for never: they overlap
 * while their shadows do on the axes of both.
 * @param {Box} a @param {Box} b
 */
export function touchTime(a, b) {
  let begin = 0;
  let end = Infinity;
  for (const [x, y] of [[a.cos, a.sin], [-a.sin, a.cos], [b.cos, b.sin], [-b.sin, b.cos]]) {
    const apart = (b.x - a.x) * x + (b.y - a.y) * y;
    const speed = (b.vx - a.vx) * x + (b.vy - a.vy) * y;
    const room = [a, b].reduce((sum, box) => sum + box.half * Math.abs(box.cos * x + box.sin * y) + box.side * Math.abs(box.cos * y - box.sin * x), 0);
    if (Math.abs(speed) < 1e-9) {
      if (Math.abs(apart) > room) return Infinity;
      continue;
    }
    const times = [(-room - apart) / speed, (room - apart) / speed];
    begin = Math.max(begin, Math.min(...times));
    end = Math.min(end, Math.max(...times));
  }
  return begin <= end ? begin : Infinity;
}
