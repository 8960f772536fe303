// What a policy observed, expected and chose, where a run has recorded it (evaluation/policy_record.py).

import { numbers } from "../columns.js";
import { columnName } from "../words.js";

/** @typedef {import("../columns.js").Table} Table */
/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./poses.js").Poses} Poses */
/** @typedef {import("./measures.js").Measure} Measure */

const MOST_CURVES = 2; // actions with a plot of the probability that was given to the choice

export class PolicyRecord {
  /** @param {Table} table */
  constructor(table) {
    this.table = table;
    /** @type {number[]} */
    this.agents = table.header.agents;
    this.blocks = new Map(table.header.layout.blocks.map((/** @type {any} */ block) => [block.name, block]));
    this.size = table.header.layout.size;
    this.observations = numbers(table, "observation");
  }

  /** Why the record is not of the motion that is shown; null if it is. @returns {string | null} */
  get difference() {
    return this.table.header.differs_from;
  }

  /** Plots of an agent. @param {number} agent @returns {Measure[]} */
  measures(agent) {
    const place = this.agents.indexOf(agent);
    if (place < 0) return [];
    const column = (/** @type {string} */ name) => () => {
      const values = numbers(this.table, name);
      return Float32Array.from({ length: this.table.rows }, (_, frame) => values[frame * this.agents.length + place]);
    };
    /** @type {Measure[]} */
    const found = ["value", "reward", "entropy"].map((name) => ({ name, title: name === "entropy" ? "Entropy of the actions" : sentence(columnName(name)),
      unit: name === "entropy" ? "nats" : "", values: column(name), isOfMain: true }));
    if (!this.table.columns.has("probabilities")) return found;
    const all = numbers(this.table, "probabilities");
    /** @type {number[]} */
    const choices = this.table.header.choices;
    const total = choices.reduce((sum, count) => sum + count, 0);
    for (let part = 0; part < Math.min(choices.length, MOST_CURVES); part++) {
      const first = choices.slice(0, part).reduce((sum, count) => sum + count, 0);
      found.push({ name: `probability${part}`, title: `Probability of the ${part ? "second" : "first"} action taken`, unit: "", zero: true, isOfMain: true,
        values: (trace, which) => Float32Array.from({ length: this.table.rows }, (_, frame) => {
          const next = frame + 1 < trace.frames && !trace.trialStarts.includes(frame + 1) ? frame + 1 : -1; // the frame that it led to
          if (next < 0) return NaN;
          const choice = Math.round(trace.actions[2 * (next * trace.agents + which) + part]);
          return choice < choices[part] ? all[(frame * this.agents.length + place) * total + first + choice] : NaN;
        }) });
    }
    return found;
  }

  /** The values of a block of an agent's observation in their units: by feature, of each filled entry. @param {number} frame @param {number} agent @param {string} name */
  entries(frame, agent, name) {
    const place = this.agents.indexOf(agent);
    const block = this.blocks.get(name);
    /** @type {Record<string, number>[]} */
    const found = [];
    if (place < 0 || !block) return found;
    const start = (frame * this.agents.length + place) * this.size + block.start;
    if (Number.isNaN(this.observations[start])) return found;
    for (let entry = 0; entry < block.entries; entry++) {
      /** @type {Record<string, number>} */
      const values = {};
      let isFilled = false;
      block.features.forEach((/** @type {any} */ feature, /** @type {number} */ k) => {
        const value = this.observations[start + k * block.entries + entry];
        values[feature.name] = value * feature.scale;
        isFilled ||= value !== 0;
      });
      if (isFilled) found.push(values);
    }
    return found;
  }

  /**
   * Draw what an agent observes at its place: other agents as boxes, lanes and edges as bars, lights and goals as rings.
   * @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Record<string, string>} colors @param {Poses} poses @param {number} agent
   */
  draw(context, camera, colors, poses, agent) {
    if (!poses.present[agent]) return;
    const [x, y, heading] = [poses.trace.x, poses.trace.y, poses.trace.heading].map((values) => values[poses.frame * poses.trace.agents + agent]);
    const [cos, sin] = [Math.cos(heading), Math.sin(heading)];
    const at = (/** @type {number} */ ahead, /** @type {number} */ left) => camera.toScreen(x + cos * ahead - sin * left, y + sin * ahead + cos * left);
    const bar = (/** @type {Record<string, number>} */ one) => {
      context.moveTo(...at(one.x - one.half_length * one.cos, one.y - one.half_length * one.sin));
      context.lineTo(...at(one.x + one.half_length * one.cos, one.y + one.half_length * one.sin));
    };
    for (const [name, color, width] of /** @type {[string, string, number][]} */ ([["lanes", colors.replay, 1.5], ["edges", colors.bad, 2.5]])) {
      context.beginPath();
      this.entries(poses.frame, agent, name).forEach(bar);
      context.strokeStyle = color;
      context.lineWidth = width;
      context.stroke();
    }
    context.strokeStyle = colors.ghost;
    context.lineWidth = 2.5;
    context.beginPath();
    for (const one of this.entries(poses.frame, agent, "partners")) {
      [[1, 1], [1, -1], [-1, -1], [-1, 1]].forEach(([i, j], k) => {
        const [ahead, aside] = [0.5 * i * one.length, 0.5 * j * one.width];
        const corner = at(one.x + ahead * one.cos - aside * one.sin, one.y + ahead * one.sin + aside * one.cos);
        if (k) context.lineTo(...corner);
        else context.moveTo(...corner);
      });
      context.closePath();
    }
    context.stroke();
    for (const one of this.entries(poses.frame, agent, "lights")) ring(context, at(one.x, one.y), 9, colors.ghost);
    for (const one of this.entries(poses.frame, agent, "goal")) if (one.share_left > 0) ring(context, at(one.x, one.y), 13, colors["goal-next"]);
  }
}

/** @param {CanvasRenderingContext2D} context @param {[number, number]} place @param {number} radius @param {string} color */
function ring(context, place, radius, color) {
  context.beginPath();
  context.arc(...place, radius, 0, 7);
  context.strokeStyle = color;
  context.stroke();
}

/** @param {string} text */
function sentence(text) {
  return text[0].toUpperCase() + text.slice(1);
}
