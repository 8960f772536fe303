// Traffic lights: what each shows in a step of a trial, as sim/rules/traffic_lights.py computes it.

import { numbers } from "../columns.js";

const REDS = new Set([1, 4, 7]);
const AMBERS = new Set([2, 5, 8]);
const GREENS = new Set([3, 6]);
const FLASHING = new Set([7, 8]);
const UNKNOWN = 0;
const STOP = 4;
const CAUTION = 5;
const GO = 6;
const GREEN_S = 12;
const PHASE_S = 17; // green, 3 s amber, 2 s red to all
const AMBER_UNTIL_S = 15;
const LIGHTS = 12; // the purpose of the draw, see sim/rules/draws.py
const WORLD = 1 << 20;
const BITS = (1n << 64n) - 1n;

export class Lights {
  /**
   * @param {import("../columns.js").Table} scenario
   * @param {{isOpen: boolean, start: number, seed: bigint, dt: number}} episode `start`: the step of the recording at which a trial starts
   */
  constructor(scenario, { isOpen, start, seed, dt }) {
    this.stops = numbers(scenario, "light_stops");
    this.states = numbers(scenario, "light_states");
    this.count = scenario.header.lights;
    this.steps = scenario.header.steps;
    this.start = start;
    this.isOpen = isOpen;
    this.dt = Math.fround(dt);
    const hasProgram = scenario.columns.has("light_phases");
    this.phases = hasProgram ? numbers(scenario, "light_phases") : [];
    /** Where in the program each light starts, in cycles. @type {number[]} */
    this.offsets = hasProgram ? Array.from(numbers(scenario, "light_junctions"), (junction) => uniform(seed, WORLD + junction, 0, LIGHTS)) : [];
  }

  /** Return the state (LightState) of a light. @param {number} light @param {number} step of the trial */
  state(light, step) {
    if (!this.isOpen) {
      const at = this.start + step;
      return at < this.steps ? this.states[light * this.steps + at] : UNKNOWN;
    }
    if (!this.offsets.length) return UNKNOWN;
    const f = Math.fround;
    const cycles = f(f(f(step * this.dt) / f(2 * PHASE_S)) + this.offsets[light]);
    let time = f(f(cycles - Math.floor(cycles)) * f(2 * PHASE_S));
    const phase = time >= PHASE_S ? 1 : 0;
    if (phase) time = f(time - PHASE_S);
    if (phase !== this.phases[light] || time >= AMBER_UNTIL_S) return STOP;
    return time < GREEN_S ? GO : CAUTION;
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {import("./camera.js").Camera} camera
   * @param {import("./palette.js").Palette} colors @param {number} step
   */
  draw(context, camera, colors, step) {
    const radius = Math.min(Math.max(0.8 * camera.scale, 2), 11);
    for (let light = 0; light < this.count; light++) {
      const [x, y] = camera.toScreen(this.stops[2 * light], this.stops[2 * light + 1]);
      if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
      const state = this.state(light, step);
      disc(context, x, y, 1.25 * radius, colors.housing);
      disc(context, x, y, 0.9 * radius, colors[`lamp-${colorName(state)}`]);
      if (FLASHING.has(state)) disc(context, x, y, 0.5 * radius, colors.housing);
    }
  }
}

/** @param {number} state a LightState */
export function colorName(state) {
  return REDS.has(state) ? "red" : AMBERS.has(state) ? "amber" : GREENS.has(state) ? "green" : "dark";
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} radius @param {string} color */
function disc(context, x, y, radius, color) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = color;
  context.fill();
}

/** A float in [0, 1) that depends on its keys alone. @param {bigint} seed @param {number} agent @param {number} step @param {number} purpose */
export function uniform(seed, agent, step, purpose) {
  const bits = mix(mix(mix(seed, agent), step), purpose);
  return Number(bits >> 40n) * 2 ** -24;
}

/** The finalizer of SplitMix64. @param {bigint} key @param {number} number */
function mix(key, number) {
  let z = (key + BigInt(number + 1) * 0x9e3779b97f4a7c15n) & BITS;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & BITS;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & BITS;
  return z ^ (z >> 31n);
}
