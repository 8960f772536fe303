// Decode traces: the motion of all agents of an episode, as record/traces.py writes it.

import { decompress } from "./vendor/fzstd.js";

const MAGIC = "RWTRACE\0";
const MAJOR = 1;
const START = 20; // bytes before the directory
const TEXT = new TextDecoder();

/** The bits of `events` (record/traces.py, TraceEvent). */
export const EVENTS = {
  GOAL: 1,
  COLLISION: 2,
  OFF_ROAD: 4,
  RED_LIGHT: 8,
  STOP_SIGN: 16,
  UNCOMFORTABLE: 32,
  ON_LANE: 64,
  ALIGNED: 128,
  CENTERED: 256,
  WRONG_WAY: 512,
  AT_FAULT: 1024,
};

/** The words for `roles`. */
export const ROLES = ["ego", "coplayer", "replay", "idm", "static"];

/**
 * F frames of all trials in a row, A agents. A value of frame f and agent a is at [f * A + a]; those of `actions` at
 * [(f * A + a) * 2 + k], of `goals` at [(a * G + g) * 2 + k].
 * @typedef {object} Trace
 * @property {string} episodeId
 * @property {string} scenarioId
 * @property {number} dt seconds from one frame to the next
 * @property {number} frames
 * @property {number} agents
 * @property {number} goalSlots G
 * @property {boolean} judgesFault whether events hold AT_FAULT
 * @property {Int32Array} trialStarts (trials + 1) the frames of trial k are trialStarts[k] up to trialStarts[k + 1]
 * @property {Float32Array} x m
 * @property {Float32Array} y m
 * @property {Float32Array} heading rad, counterclockwise from east
 * @property {Float32Array} speed m/s
 * @property {Uint8Array} present whether the agent is in the world
 * @property {Uint8Array} active whether a policy drives the agent
 * @property {Uint16Array} events bits of the step that led to the frame
 * @property {Float32Array | Int8Array} actions
 * @property {Float32Array} length (A) m
 * @property {Float32Array} width (A) m
 * @property {Int8Array} kinds (A) 0 other, 1 vehicle, 2 pedestrian, 3 cyclist
 * @property {Int8Array} roles (A) place in ROLES
 * @property {Int32Array} sources (A) the agent of the recording, -1 for none
 * @property {Float32Array} goals m
 * @property {Int32Array} goalCounts (A)
 * @property {Record<string, Float32Array>} extra further state, (F, A)
 */

/** @param {ArrayBuffer} block the file @returns {Trace} */
export function readTrace(block) {
  const bytes = new Uint8Array(block);
  const view = new DataView(block);
  if (bytes.length < START || TEXT.decode(bytes.subarray(0, 8)) !== MAGIC)
    throw new Error("this is not a trace of Roadworthy");
  const version = view.getUint32(8, true);
  if (version >>> 16 > MAJOR)
    throw new Error(`the trace has version ${version >>> 16}, but this page reads up to ${MAJOR}.x`);
  const length = view.getUint32(12, true);
  const directory = JSON.parse(TEXT.decode(bytes.subarray(START, START + length)));
  const size = Number(view.getBigUint64(START + length, true));
  const plain = decompress(bytes.subarray(START + length + 8), new Uint8Array(size));
  /** @type {Record<string, {array: any, shape: number[]}>} */
  const columns = {};
  let offset = 0;
  for (const [name, dtype, shape, coding] of directory.columns) {
    const decoded = column(plain, offset, dtype, shape, coding);
    columns[name] = { array: decoded.array, shape };
    offset = decoded.end;
  }
  const extra = Object.fromEntries(
    Object.entries(columns)
      .filter(([name]) => name.startsWith("extra."))
      .map(([name, { array }]) => [name.slice(6), array]),
  );
  const of = (/** @type {string} */ name) => {
    if (!columns[name]) throw new Error(`the trace is damaged: ${name} is missing`);
    return columns[name].array;
  };
  const { values } = directory;
  return {
    episodeId: values.episode_id,
    scenarioId: values.scenario_id,
    dt: values.dt,
    judgesFault: values.judges_fault === true,
    frames: columns.x.shape[0],
    agents: columns.x.shape[1],
    goalSlots: columns.goals.shape[1],
    trialStarts: of("trial_starts"),
    x: of("x"),
    y: of("y"),
    heading: of("heading"),
    speed: of("speed"),
    present: of("present"),
    active: of("active"),
    events: of("events"),
    actions: of("actions"),
    length: of("length"),
    width: of("width"),
    kinds: of("kinds"),
    roles: of("roles"),
    sources: of("sources"),
    goals: of("goals"),
    goalCounts: of("goal_counts"),
    extra,
  };
}

const TYPES = { "<f4": Float32Array, "<i4": Int32Array, "|i1": Int8Array, "<u2": Uint16Array, "|b1": Uint8Array };

/**
 * @param {Uint8Array} plain @param {number} offset @param {string} dtype @param {number[]} shape @param {string} coding
 * @returns {{array: any, end: number}}
 */
function column(plain, offset, dtype, shape, coding) {
  const Type = TYPES[/** @type {keyof typeof TYPES} */ (dtype)];
  const count = shape.reduce((product, part) => product * part, 1);
  const item = Type.BYTES_PER_ELEMENT;
  if (coding === "plain") {
    const end = offset + count * item;
    return { array: new Type(plain.slice(offset, end).buffer), end };
  }
  const frames = shape[0];
  const lanes = count / (frames || 1); // values of a frame; stored one after another over all frames
  const array = new Type(count);
  if (coding === "bits") {
    for (let k = 0; k < count; k++) {
      const bit = (plain[offset + (k >> 3)] >> (7 - (k & 7))) & 1;
      array[(k % frames) * lanes + Math.floor(k / frames)] = bit;
    }
    return { array, end: offset + Math.ceil(count / 8) };
  }
  const words =
    item === 4
      ? new Uint32Array(array.buffer)
      : item === 2
        ? new Uint16Array(array.buffer)
        : new Uint8Array(array.buffer);
  const isSteps = coding === "steps bytes";
  if (!isSteps && coding !== "bytes") throw new Error(`a column of the trace has the unknown coding ${coding}`);
  for (let lane = 0, k = 0; lane < lanes; lane++) {
    let sum = 0;
    for (let frame = 0; frame < frames; frame++, k++) {
      let word = plain[offset + k];
      for (let byte = 1; byte < item; byte++) word |= plain[offset + byte * count + k] << (8 * byte);
      sum = isSteps ? (sum + word) | 0 : word;
      words[frame * lanes + lane] = sum;
    }
  }
  return { array, end: offset + count * item };
}
