// Agents from above: boxes to scale with a mark of their heading, trails, goals, and rings at events.

import { ROLES } from "../trace.js";
import { trialOf } from "./axis.js";
import { KINDS, goalsReached } from "./events.js";

/** @typedef {import("../trace.js").Trace} Trace */
/** @typedef {import("./poses.js").Poses} Poses */
/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./palette.js").Palette} Palette */

const SMALLEST_PX = 6; // so that pedestrians are visible on a large map
const TRAIL_S = 3;
const RING_S = 1.5; // how long an event is marked
const PEDESTRIAN = 2;
const CYCLIST = 3;
const GOAL_M = 2;

/** Return the name of an agent's color: what controls it, else its kind. @param {Trace} trace @param {number} agent */
export function colorOf(trace, agent) {
  const role = ROLES[trace.roles[agent]] ?? "replay";
  if (role === "ego" || role === "coplayer") return role;
  if (trace.kinds[agent] === PEDESTRIAN) return "pedestrian";
  if (trace.kinds[agent] === CYCLIST) return "cyclist";
  return role === "idm" ? "reactive" : role === "static" ? "parked" : "replay";
}

/** The agents of a trace by color. @param {Trace} trace @returns {[string, number[]][]} */
export function groupsOf(trace) {
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  const order = ["parked", "replay", "reactive", "cyclist", "pedestrian", "coplayer", "ego"];
  for (const name of order) groups.set(name, []);
  for (let agent = 0; agent < trace.agents; agent++) groups.get(colorOf(trace, agent))?.push(agent);
  return [...groups].filter(([, agents]) => agents.length);
}

export class AgentsPicture {
  /** @param {Poses} poses @param {import("./events.js").Event[]} events */
  constructor(poses, events) {
    this.poses = poses;
    this.trace = poses.trace;
    this.events = events;
    this.groups = groupsOf(this.trace);
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Palette} colors */
  drawTrails(context, camera, colors) {
    const { trace, poses } = this;
    const first = Math.max(trace.trialStarts[trialOf(trace, poses.frame)], poses.frame - Math.round(TRAIL_S / trace.dt));
    const stride = camera.scale < 4 ? 3 : 2;
    context.lineCap = "butt";
    context.lineJoin = "bevel";
    context.globalAlpha = 0.4;
    context.lineWidth = Math.max(0.5 * camera.scale, 1.5);
    for (const [name, agents] of this.groups) {
      if (name === "parked") continue;
      context.beginPath();
      for (const agent of agents) {
        if (!poses.present[agent]) continue;
        const [x, y] = camera.toScreen(poses.x[agent], poses.y[agent]);
        if (x < -200 || y < -200 || x > camera.width + 200 || y > camera.height + 200) continue;
        const start = first * trace.agents + agent;
        if (Math.abs(trace.x[start] - poses.x[agent]) + Math.abs(trace.y[start] - poses.y[agent]) < 0.5) continue;
        let isDown = false;
        for (let f = first; f <= poses.frame; f += stride) {
          const k = f * trace.agents + agent;
          if (!trace.present[k]) {
            isDown = false;
            continue;
          }
          const [px, py] = camera.toScreen(trace.x[k], trace.y[k]);
          if (isDown) context.lineTo(px, py);
          else context.moveTo(px, py);
          isDown = true;
        }
        if (isDown) context.lineTo(x, y);
      }
      context.strokeStyle = colors[name];
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Palette} colors @param {number} followed */
  drawBodies(context, camera, colors, followed) {
    const { poses } = this;
    context.lineWidth = Math.max(1, 0.14 * camera.scale);
    context.strokeStyle = colors.casing;
    for (const [name, agents] of this.groups) {
      for (const isActive of name === "ego" || name === "coplayer" ? [false, true] : [null]) {
        context.beginPath();
        for (const agent of agents) if (poses.present[agent] && (isActive === null || !!poses.active[agent] === isActive)) this.outline(context, camera, agent, 1);
        context.globalAlpha = isActive === false ? 0.5 : 1; // an agent that has finished is pale
        context.fillStyle = colors[name];
        context.fill();
        context.stroke();
      }
      context.globalAlpha = 1;
    }
    if (camera.scale >= 3) {
      context.beginPath();
      for (const [, agents] of this.groups) for (const agent of agents) if (poses.present[agent]) this.windshield(context, camera, agent);
      context.fillStyle = colors.glass;
      context.fill();
    }
    if (followed >= 0 && poses.present[followed]) {
      context.beginPath();
      this.outline(context, camera, followed, 1, 3.5 / camera.scale + 0.25);
      context.strokeStyle = colors.ink;
      context.lineWidth = 2;
      context.stroke();
    }
  }

  /** Outlines of the agents that another run has elsewhere. @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Palette} colors @param {Poses} shown */
  drawGhosts(context, camera, colors, shown) {
    const { poses } = this;
    const agents = [];
    for (let agent = 0; agent < this.trace.agents; agent++) {
      if (!poses.present[agent]) continue;
      const isSame = agent < shown.trace.agents && shown.present[agent] && Math.hypot(shown.x[agent] - poses.x[agent], shown.y[agent] - poses.y[agent]) < 1e-3;
      if (!isSame) agents.push(agent);
    }
    context.beginPath();
    for (const agent of agents) this.outline(context, camera, agent, 1);
    context.globalAlpha = 0.28;
    context.fillStyle = colors.ghost;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colors.ghost;
    context.lineWidth = 2;
    context.stroke();
    if (agents.length) {
      context.beginPath();
      for (const agent of agents) {
        if (agent >= shown.trace.agents || !shown.present[agent]) continue;
        context.moveTo(...camera.toScreen(poses.x[agent], poses.y[agent]));
        context.lineTo(...camera.toScreen(shown.x[agent], shown.y[agent]));
      }
      context.globalAlpha = 0.7;
      context.lineWidth = 1;
      context.setLineDash([4, 4]);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
    return agents.length;
  }

  /** The path of one agent in a whole trial. @param {CanvasRenderingContext2D} context @param {Camera} camera @param {string} color @param {number} agent @param {number} trial */
  drawPath(context, camera, color, agent, trial) {
    const { trace } = this;
    context.beginPath();
    let isDown = false;
    for (let f = trace.trialStarts[trial]; f < trace.trialStarts[trial + 1]; f++) {
      const k = f * trace.agents + agent;
      if (trace.present[k] && isDown) context.lineTo(...camera.toScreen(trace.x[k], trace.y[k]));
      else if (trace.present[k]) context.moveTo(...camera.toScreen(trace.x[k], trace.y[k]));
      isDown = trace.present[k] !== 0;
    }
    context.strokeStyle = color;
    context.globalAlpha = 0.6;
    context.lineWidth = 1.5;
    context.setLineDash([6, 4]);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  /** Goals of the followed agent: those reached are filled; of other egos the next one. @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Palette} colors @param {number} followed */
  drawGoals(context, camera, colors, followed) {
    const { trace, poses } = this;
    for (let agent = 0; agent < trace.agents; agent++) {
      if (trace.roles[agent] !== 0 || !poses.present[agent]) continue;
      const reached = goalsReached(trace, agent, poses.frame);
      const count = trace.goalCounts[agent];
      const isFollowed = agent === followed;
      for (let goal = 0; goal < count; goal++) {
        if (!isFollowed && goal !== reached) continue;
        const k = 2 * (agent * trace.goalSlots + goal);
        const [x, y] = camera.toScreen(trace.goals[k], trace.goals[k + 1]);
        if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
        context.beginPath();
        context.arc(x, y, isFollowed ? Math.max(GOAL_M * camera.scale, 5) : 3.5, 0, 7);
        context.globalAlpha = isFollowed ? 1 : 0.55;
        context.strokeStyle = goal < reached ? colors.good : goal === reached ? colors["goal-next"] : colors.goal;
        context.lineWidth = 2;
        context.stroke();
        if (isFollowed && goal <= reached) {
          context.globalAlpha = 0.35;
          context.fillStyle = context.strokeStyle;
          context.fill();
        }
        if (isFollowed && count > 1 && camera.scale >= 2) {
          context.globalAlpha = 1;
          label(context, colors, String(goal + 1), x, y);
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** Rings and words at agents to which something has just happened. @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Palette} colors */
  drawEvents(context, camera, colors) {
    const { trace, poses } = this;
    const trial = trace.trialStarts[trialOf(trace, poses.frame)];
    const since = Math.max(trial, poses.frame - Math.round(RING_S / trace.dt));
    /** @type {Map<number, import("./events.js").Event>} */
    const marked = new Map();
    for (const event of this.events) {
      if (event.frame > poses.frame) break;
      if (event.frame < since || !poses.present[event.agent]) continue;
      const known = marked.get(event.agent);
      if (!known || KINDS[event.kind].rank >= KINDS[known.kind].rank) marked.set(event.agent, event);
    }
    for (const { agent, kind } of marked.values()) {
      const [x, y] = camera.toScreen(poses.x[agent], poses.y[agent]);
      const radius = Math.max(0.75 * trace.length[agent] * camera.scale, 12);
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      context.strokeStyle = colors[KINDS[kind].tone];
      context.lineWidth = 3;
      context.stroke();
      label(context, colors, KINDS[kind].name, x, y - radius - 9);
    }
  }

  /** The numbers of egos. @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Palette} colors */
  drawNumbers(context, camera, colors) {
    const { trace, poses } = this;
    if (camera.scale < 4) return;
    for (let agent = 0; agent < trace.agents; agent++) {
      if (trace.roles[agent] > 1 || !poses.present[agent]) continue;
      const [x, y] = camera.toScreen(poses.x[agent], poses.y[agent]);
      label(context, colors, String(agent), x, y + Math.max(0.5 * trace.length[agent] * camera.scale, 6) + 8);
    }
  }

  /** The agent at a place of the picture, -1 for none. @param {Camera} camera @param {number} px @param {number} py */
  agentAt(camera, px, py) {
    const { poses, trace } = this;
    let best = -1;
    let least = Infinity;
    for (let agent = 0; agent < trace.agents; agent++) {
      if (!poses.present[agent]) continue;
      const [x, y] = camera.toScreen(poses.x[agent], poses.y[agent]);
      const away = Math.hypot(px - x, py - y);
      if (away < Math.max(0.6 * trace.length[agent] * camera.scale, 12) && away < least) [best, least] = [agent, away];
    }
    return best;
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {number} agent @param {number} front 0 to 1 @param {number} [grown] m */
  outline(context, camera, agent, front, grown = 0) {
    const { trace, poses } = this;
    const smallest = SMALLEST_PX / camera.scale;
    const half = 0.5 * Math.max(trace.length[agent], (trace.kinds[agent] === PEDESTRIAN ? 1 : 1.6) * smallest) + grown;
    const side = 0.5 * Math.max(trace.width[agent], smallest) + grown;
    const nose = trace.kinds[agent] === PEDESTRIAN || trace.kinds[agent] === CYCLIST ? half : Math.min(0.35 * side, half);
    this.polygon(context, camera, agent, [-half, side, half - front * nose, side, half, side - front * Math.min(nose, side), half, -side + front * Math.min(nose, side),
      half - front * nose, -side, -half, -side]);
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {number} agent */
  windshield(context, camera, agent) {
    const { trace } = this;
    if (trace.kinds[agent] === PEDESTRIAN || trace.kinds[agent] === CYCLIST) return;
    const [half, side] = [0.5 * trace.length[agent], 0.5 * trace.width[agent]];
    const cabin = Math.min(trace.length[agent], 5);
    this.polygon(context, camera, agent, [half - 0.24 * cabin, 0.82 * side, half - 0.4 * cabin, 0.68 * side, half - 0.4 * cabin, -0.68 * side, half - 0.24 * cabin, -0.82 * side]);
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {number} agent @param {number[]} points ahead and left of the middle, m */
  polygon(context, camera, agent, points) {
    const { poses } = this;
    const [x, y] = camera.toScreen(poses.x[agent], poses.y[agent]);
    if (x < -300 || y < -300 || x > camera.width + 300 || y > camera.height + 300) return;
    const cos = Math.cos(poses.heading[agent]) * camera.scale;
    const sin = Math.sin(poses.heading[agent]) * camera.scale;
    for (let k = 0; k < points.length; k += 2) {
      const px = x + cos * points[k] - sin * points[k + 1];
      const py = y - sin * points[k] - cos * points[k + 1];
      if (k) context.lineTo(px, py);
      else context.moveTo(px, py);
    }
    context.closePath();
  }
}

/** @param {CanvasRenderingContext2D} context @param {Palette} colors @param {string} text @param {number} x @param {number} y */
export function label(context, colors, text, x, y) {
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = colors.page;
  context.strokeText(text, x, y);
  context.fillStyle = colors.ink;
  context.fillText(text, x, y);
}
