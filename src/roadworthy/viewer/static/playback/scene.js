// Everything that the playback of an episode needs, read together.

import { Axis } from "./axis.js";
import { clearlyApart, divergence } from "./divergence.js";
import { egosOf, eventsOf } from "./events.js";
import { Lights } from "./lights.js";
import { PolicyRecord } from "./policy_record.js";

/** @typedef {import("../source.js").Source} Source */
/** @typedef {import("../episodes.js").Episodes} Episodes */
/** @typedef {import("../trace.js").Trace} Trace */

/**
 * A version of an episode: that of one run.
 * @typedef {{key: string, run: any, number: number, row: number, episodes: Episodes, trace: Trace, events: import("./events.js").Event[]}} Version
 */

/**
 * `ghost` is the other run's version, `parting` the place from which it differs, `apart` the one from which an ego is clearly elsewhere.
 * @typedef {{main: Version, ghost: Version | null, axis: Axis, egos: number[], policy: import("./policy_record.js").PolicyRecord | null, lights: Lights | null,
 *   map: import("../columns.js").Table | null, parting: import("./divergence.js").Divergence | null, apart: import("./divergence.js").Apart | null, notes: string[]}} Scene
 */

/**
 * @param {Source} source @param {string} key @param {number} number of the episode
 * @returns {Promise<{key: string, run: any, number: number, row: number, episodes: Episodes}>}
 */
export async function findEpisode(source, key, number) {
  const { Episodes } = await import("../episodes.js");
  const [run, episodes] = await Promise.all([source.json(`data/run/${key}/run.json`), Episodes.open(source, key)]);
  const row = episodes.rowOf(number);
  if (row < 0) throw new Error(`the run has no ended episode number ${number}`);
  return { key, run, number, row, episodes };
}

/**
 * Find the episode of another run with the same scenario, seed and replicate.
 * @param {Source} source @param {string} key the other run @param {{row: number, episodes: Episodes}} like
 */
export async function findSame(source, key, like) {
  const { Episodes } = await import("../episodes.js");
  const [run, episodes] = await Promise.all([source.json(`data/run/${key}/run.json`), Episodes.open(source, key)]);
  const names = ["scenario_id", "seed", "replicate"];
  const wanted = names.map((name) => like.episodes.get(like.row, name));
  for (let row = 0; row < episodes.count; row++) {
    if (names.every((name, k) => episodes.get(row, name) === wanted[k])) return { key, run, number: /** @type {number} */ (episodes.get(row, "number")), row, episodes };
  }
  throw new Error(`the other run (${run.evaluator}: ${run.policy}) has no ended episode with scenario ${wanted[0]}, seed ${wanted[1]} and replicate ${wanted[2]}`);
}

/**
 * @param {Source} source
 * @param {{key: string, run: any, number: number, row: number, episodes: Episodes}} found
 * @param {{key: string, run: any, number: number, row: number, episodes: Episodes} | null} other
 * @returns {Promise<Scene>}
 */
export async function loadScene(source, found, other) {
  /** @type {string[]} */
  const notes = [];
  const [main, ghost, place, policy] = await Promise.all([version(source, found), other ? version(source, other) : null,
    situation(source, found, notes), policyRecord(source, found, notes)]);
  const axis = new Axis(ghost ? [main.trace, ghost.trace] : [main.trace]);
  const env = found.run.header.config?.env ?? {};
  const seed = BigInt(found.episodes.get(found.row, "seed") ?? 0);
  const lights = place?.scenario?.header.lights
    ? new Lights(place.scenario, { isOpen: env.mode === "open", start: env.init_steps ?? place.scenario.header.current_step, seed, dt: main.trace.dt }) : null;
  return { main, ghost, axis, egos: egosOf(main.trace), policy, lights, map: place?.map ?? null, notes,
    parting: ghost ? divergence(axis, main.trace, ghost.trace) : null, apart: ghost ? clearlyApart(axis, main.trace, ghost.trace) : null };
}

/** @param {Source} source @param {{key: string, run: any, number: number, row: number, episodes: Episodes}} found @returns {Promise<Version>} */
async function version(source, found) {
  const trace = await source.trace(found.key, found.number);
  return { ...found, trace, events: eventsOf(trace) };
}

/** @param {Source} source @param {{key: string, number: number, row: number, episodes: Episodes}} found @param {string[]} notes */
async function policyRecord(source, { key, number, row, episodes }, notes) {
  const path = episodes.get(row, "artifacts")?.policy;
  if (!path) return null;
  const folder = source.about.records?.[key];
  try {
    const record = new PolicyRecord(await source.table(folder === undefined ? `data/run/${key}/policy/${number}.cols` : `${folder}/${path}`));
    if (record.difference) notes.push(`What the policy did was recorded in a repetition that differs from the motion shown: ${record.difference}`);
    return record;
  } catch (error) {
    notes.push(`What the policy did can't be read: ${/** @type {Error} */ (error).message}`);
    return null;
  }
}

/**
 * The scenario and its map; null for a run without scenarios.
 * @param {Source} source @param {{key: string, run: any, row: number, episodes: Episodes}} found @param {string[]} notes
 */
async function situation(source, { key, run, row, episodes }, notes) {
  const number = episodes.get(row, "scenario");
  if (!run.has_pack || number === null || number < 0) {
    notes.push("The run has no scenarios, so there is no map.");
    return null;
  }
  try {
    const scenario = await source.table(`data/run/${key}/scenario/${number}.cols`);
    return { scenario, map: await source.table(`data/run/${key}/map/${scenario.header.map}.cols`) };
  } catch (error) {
    notes.push(`The map can't be read: ${/** @type {Error} */ (error).message}`);
    return null;
  }
}
