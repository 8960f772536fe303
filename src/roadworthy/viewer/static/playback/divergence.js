// The first frames in which two policies' versions of an episode differ, and in which they are clearly apart.

import { trialLength } from "./axis.js";

/** @typedef {import("../trace.js").Trace} Trace */

export const APART_M = 1e-3;
export const CLEARLY_APART_M = 0.5;
const EGO = 0;

/**
 * Where two traces part: the first frame of the axis in which an ego's position differs by more than APART_M, or in which an
 * agent is present in one of them alone.
 * @typedef {{position: number, agent: number, meters: number, reason: "position" | "presence" | "end"}} Divergence
 */

/** @param {import("./axis.js").Axis} axis @param {Trace} first @param {Trace} second @returns {Divergence | null} */
export function divergence(axis, first, second) {
  const agents = Math.max(first.agents, second.agents);
  for (let trial = 0; trial < axis.trials; trial++) {
    const lengths = [trialLength(first, trial), trialLength(second, trial)];
    for (let step = 0; step < Math.max(...lengths); step++) {
      const position = axis.starts[trial] + step;
      if (step >= Math.min(...lengths)) return { position, agent: -1, meters: NaN, reason: "end" };
      const a = (first.trialStarts[trial] + step) * first.agents;
      const b = (second.trialStarts[trial] + step) * second.agents;
      for (let agent = 0; agent < agents; agent++) {
        const there = agent < first.agents && first.present[a + agent] !== 0;
        const also = agent < second.agents && second.present[b + agent] !== 0;
        if (there !== also) return { position, agent, meters: NaN, reason: "presence" };
        if (!there || first.roles[agent] !== EGO) continue;
        const meters = Math.hypot(first.x[a + agent] - second.x[b + agent], first.y[a + agent] - second.y[b + agent]);
        if (meters > APART_M) return { position, agent, meters, reason: "position" };
      }
    }
  }
  return null;
}

/**
 * The first frame of the axis in which an ego that is present in both traces is more than CLEARLY_APART_M from its counterpart.
 * @typedef {{position: number, agent: number, meters: number}} Apart
 */

/** @param {import("./axis.js").Axis} axis @param {Trace} first @param {Trace} second @returns {Apart | null} */
export function clearlyApart(axis, first, second) {
  const agents = Math.min(first.agents, second.agents);
  for (let trial = 0; trial < axis.trials; trial++) {
    const steps = Math.min(trialLength(first, trial), trialLength(second, trial));
    for (let step = 0; step < steps; step++) {
      const a = (first.trialStarts[trial] + step) * first.agents;
      const b = (second.trialStarts[trial] + step) * second.agents;
      for (let agent = 0; agent < agents; agent++) {
        if (first.roles[agent] !== EGO || !first.present[a + agent] || !second.present[b + agent]) continue;
        const meters = Math.hypot(first.x[a + agent] - second.x[b + agent], first.y[a + agent] - second.y[b + agent]);
        if (meters > CLEARLY_APART_M) return { position: axis.starts[trial] + step, agent, meters };
      }
    }
  }
  return null;
}
