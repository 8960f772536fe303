// What happens in an episode: events of its agents, from the bits of a trace.

import { EVENTS, ROLES } from "../trace.js";
import { trialOf } from "./axis.js";

/** @typedef {import("../trace.js").Trace} Trace */

/** How an event is shown: `tone` is a class of color, `rank` says which of two at one place is in front. */
export const KINDS = {
  fault: { name: "collision at fault", tone: "bad", rank: 5 },
  contact: { name: "contact, not at fault", tone: "middling", rank: 3 },
  collision: { name: "collision", tone: "bad", rank: 5 },
  off_road: { name: "off road", tone: "bad", rank: 4 },
  red_light: { name: "red light", tone: "bad", rank: 4 },
  stop_sign: { name: "stop sign", tone: "middling", rank: 2 },
  goal: { name: "goal reached", tone: "good", rank: 1 },
};

/** @typedef {{frame: number, agent: number, kind: keyof typeof KINDS}} Event */

/**
 * Return the events of all driven agents, by frame. An event that lasts is one event.
 * @param {Trace} trace @returns {Event[]}
 */
export function eventsOf(trace) {
  /** @type {Event[]} */
  const found = [];
  const bits = /** @type {[number, number, keyof typeof KINDS][]} */ ([
    ...(trace.judgesFault ? [[EVENTS.AT_FAULT, 0, "fault"], [EVENTS.COLLISION, EVENTS.AT_FAULT, "contact"]] : [[EVENTS.COLLISION, 0, "collision"]]),
    [EVENTS.OFF_ROAD, 0, "off_road"], [EVENTS.RED_LIGHT, 0, "red_light"], [EVENTS.STOP_SIGN, 0, "stop_sign"], [EVENTS.GOAL, 0, "goal"]]);
  const any = bits.reduce((sum, [bit]) => sum | bit, 0);
  const starts = new Set(trace.trialStarts);
  for (let frame = 0, k = 0; frame < trace.frames; frame++) {
    for (let agent = 0; agent < trace.agents; agent++, k++) {
      const now = trace.events[k];
      if (!(now & any)) continue;
      const before = starts.has(frame) ? 0 : trace.events[k - trace.agents];
      for (const [bit, unless, kind] of bits) {
        const is = (now & bit) !== 0 && (now & unless) === 0;
        const was = kind !== "goal" && (before & bit) !== 0;
        if (is && !was) found.push({ frame, agent, kind });
      }
    }
  }
  return found;
}

/** @param {Trace} trace the numbers of the egos */
export function egosOf(trace) {
  const found = [];
  for (let agent = 0; agent < trace.agents; agent++) if (trace.roles[agent] === ROLES.indexOf("ego")) found.push(agent);
  return found;
}

/**
 * What agents did in one trial or in all of them: counts of events, meters driven, and frames driven.
 * @param {Trace} trace @param {Event[]} events @param {number | null} trial
 */
export function tally(trace, events, trial) {
  const [start, end] = trial === null ? [0, trace.frames] : [trace.trialStarts[trial], trace.trialStarts[trial + 1]];
  const starts = new Set(trace.trialStarts);
  return Array.from({ length: trace.agents }, (_, agent) => {
    /** @type {Record<string, number>} */
    const counts = {};
    for (const event of events) {
      if (event.agent === agent && event.frame >= start && event.frame < end) counts[event.kind] = (counts[event.kind] ?? 0) + 1;
    }
    let meters = 0;
    let active = 0;
    let fastest = 0;
    for (let frame = start; frame < end; frame++) {
      const k = frame * trace.agents + agent;
      if (trace.present[k]) fastest = Math.max(fastest, trace.speed[k]);
      if (trace.active[k]) active++;
      const k0 = k - trace.agents;
      if (starts.has(frame) || !trace.present[k] || !trace.present[k0]) continue;
      const step = Math.hypot(trace.x[k] - trace.x[k0], trace.y[k] - trace.y[k0]);
      if (step < 60 * trace.dt + 1) meters += step;
    }
    return { agent, counts, meters, active, fastest };
  });
}

/** Return the number of goals an agent has reached in its trial up to a frame. @param {Trace} trace @param {number} agent @param {number} frame */
export function goalsReached(trace, agent, frame) {
  let reached = 0;
  for (let f = trace.trialStarts[trialOf(trace, frame)]; f <= frame; f++) {
    if (trace.events[f * trace.agents + agent] & EVENTS.GOAL) reached++;
  }
  return reached;
}
