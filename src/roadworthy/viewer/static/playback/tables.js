// What is known of an episode, and what its agents did, as tables.

import { h } from "../dom.js";
import { isValue } from "../episodes.js";
import { ROLES } from "../trace.js";
import { columnName, count, digits, meaning, number, NONE, shared } from "../words.js";
import { CLEARLY_APART_M } from "./divergence.js";
import { KINDS, tally } from "./events.js";

/** @typedef {import("./scene.js").Scene} Scene */

const MOST_EVENTS = 300;

/** Whether a column is a share, from the header's metrics. @param {any} run @param {string} name */
function unitOf(run, name) {
  const plain = name.replace(/^outcomes\./, "");
  return run.metrics?.figures?.find((/** @type {any} */ figure) => figure.name === plain)?.unit ?? "1";
}

/** Outcomes that are 1 when all went well; other environments have scores of any size. @param {string} name @param {any} run */
function isGoal(name, run) {
  if (name === "score") return run.is_driving;
  return ["passed", "success", "goal_rate", "goal_reached"].includes(name) || name.startsWith("exam_");
}

/** Whether an outcome says that something went wrong. @param {string} name @param {any} value @param {any} run */
function isFailure(name, value, run) {
  if (typeof value !== "number") return false;
  return isGoal(name, run) ? value < 1 : Object.hasOwn(shared.faults, name) && value > 0;
}

/** An outcome that is yes or no, in words; null for others. @param {string} name @param {any} value */
function outcomeWord(name, value) {
  if (value !== 0 && value !== 1) return null;
  if (name === "passed") return value ? "passed" : "not passed";
  return name.startsWith("exam_") ? (value ? "met" : "not met") : null;
}

/** The outcome that says how good an episode was. @param {import("../episodes.js").Episodes} episodes @param {number} row */
export function mainOutcome(episodes, row) {
  return shared.mainOutcomes.find((/** @type {string} */ name) => episodes.get(row, `outcomes.${name}`) !== null);
}

/**
 * A label with the main outcome of an episode; null if it has none, or one that is neither good nor bad.
 * @param {{run: any, row: number, episodes: import("../episodes.js").Episodes}} version
 */
export function outcomeChip({ run, row, episodes }) {
  const name = mainOutcome(episodes, row);
  if (!name || !isGoal(name, run)) return null;
  const value = episodes.get(row, `outcomes.${name}`);
  const style = value >= 1 ? "completed" : value > 0 ? "interrupted" : "failed";
  const unit = run.metrics?.figures?.find((/** @type {any} */ figure) => figure.name === name)?.unit ?? "share";
  const text = outcomeWord(name, value) ?? `${columnName(`outcomes.${name}`)} ${number(value, unit)}`;
  return h("span", { class: ["status", "outcome", style], title: meaning(name) ?? null }, text);
}

/** Whether a fact of an episode is known. @param {string} name @param {{run: any, row: number, episodes: import("../episodes.js").Episodes}} version */
function isKnown(name, { run, row, episodes }) {
  if (name === "seed" && run.header.import && !run.header.import.has_seeds) return false;
  return isValue(name, episodes.get(row, name));
}

/**
 * Outcomes of the episode; of both runs if there are two.
 * @param {{run: any, row: number, episodes: import("../episodes.js").Episodes}[]} versions
 */
export function outcomeTable(versions) {
  const [first] = versions;
  const names = [...new Set(versions.flatMap(({ episodes }) => [...episodes.columns.keys()]))];
  const outcomes = names.filter((name) => name.startsWith("outcomes.") && versions.some(({ row, episodes }) => episodes.get(row, name) !== null));
  const main = outcomes.find((name) => shared.mainOutcomes.includes(name.slice(9)) && mainOutcome(first.episodes, first.row) === name.slice(9));
  const rank = (/** @type {string} */ name) => (name === main ? 0 : versions.some(({ run, row, episodes }) => isFailure(name.slice(9), episodes.get(row, name), run)) ? 1 : 2);
  outcomes.sort((a, b) => rank(a) - rank(b));
  const facts = ["scenario_id", "tags", "cluster", "seed", "replicate", "steps", "trials", "wall_s", ...names.filter((name) => name.startsWith("factors."))];
  const heads = versions.length > 1 ? h("thead", null, h("tr", null, h("th", { scope: "col" }, ""), versions.map(({ run }, k) =>
    h("th", { scope: "col", class: "number" }, h("span", { class: `agent-swatch ${k ? "ghost" : "ego"}`, "aria-hidden": "true" }), run.policy)))) : null;
  const line = (/** @type {string} */ name, /** @type {(value: any, run: any) => string} */ format) => h("tr", { "data-column": name },
    h("th", { scope: "row", title: meaning(name.replace(/^outcomes\./, "")) ?? null }, columnName(name)),
    versions.map(({ run, row, episodes }) => h("td", { class: ["number wrap", name.startsWith("outcomes.") && isFailure(name.slice(9), episodes.get(row, name), run) ? "bad" : null] }, format(episodes.get(row, name), run))));
  const plain = (/** @type {any} */ value) => (value === null ? NONE : Array.isArray(value) ? value.join(", ") || NONE : typeof value === "number" ? digits(value) : String(value));
  return h("div", { class: "fact-tables" },
    h("section", { "aria-label": "Outcomes" }, h("h2", null, "Outcomes"), outcomes.length
      ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Outcomes" }, h("table", { class: "named" }, heads, h("tbody", null, outcomes.map((name) =>
        line(name, (value, run) => (outcomeWord(name.slice(9), value) ?? (typeof value === "number" ? number(value, unitOf(run, name)) : plain(value))))))))
      : h("p", { class: "muted" }, "There are none.")),
    h("section", { "aria-label": "About the episode" }, h("h2", null, "About the episode"), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "About the episode" }, h("table", { class: "named" },
      h("tbody", null, facts.filter((name) => versions.some((version) => isKnown(name, version))).map((name) => line(name, name === "wall_s" ? (value) => (value === null ? NONE : `${digits(value)} s`) : name === "replicate" || name === "steps" || name === "trials" ? (value) => (value === null ? NONE : count(value)) : plain)))))));
}

/**
 * Agents that a policy drives, and what they did in one trial.
 * @param {Scene} scene @param {number} trial @param {number} followed @param {(agent: number) => void} choose
 */
export function agentTable(scene, trial, followed, choose) {
  const { trace, events } = scene.main;
  const known = trial < trace.trialStarts.length - 1 ? trial : 0;
  const rows = tally(trace, events, scene.axis.trials > 1 ? known : null).filter(({ agent, active }) => active > 0 || trace.roles[agent] === 0);
  if (!rows.length) return null;
  const kinds = /** @type {(keyof typeof KINDS)[]} */ (trace.judgesFault ? ["goal", "fault", "contact", "off_road", "red_light", "stop_sign"] : ["goal", "collision", "off_road", "red_light", "stop_sign"])
    .filter((kind) => kind === "goal" || rows.some(({ counts }) => counts[kind]));
  const cell = (/** @type {any} */ row, /** @type {string} */ kind) => kind === "goal" ? `${row.counts.goal ?? 0} of ${trace.goalCounts[row.agent]}` : row.counts[kind] ? count(row.counts[kind]) : NONE;
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Driven agents" }, h("table", { class: "list agents" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "agent"), h("th", { scope: "col" }, "role"),
      kinds.map((kind) => h("th", { scope: "col", class: "number" }, kind === "goal" ? "goals" : KINDS[kind].name)), ["distance", "top speed", "driven"].map((name) => h("th", { scope: "col", class: "number" }, name)))),
    h("tbody", null, rows.map((row) => h("tr", { "data-agent": row.agent, "aria-current": row.agent === followed ? "true" : null },
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => choose(row.agent), "aria-label": `Follow agent ${row.agent}` }, String(row.agent))),
      h("td", null, ROLES[trace.roles[row.agent]] ?? NONE),
      kinds.map((kind) => h("td", { class: ["number", kind !== "goal" && row.counts[kind] ? KINDS[kind].tone : null] }, cell(row, kind))),
      h("td", { class: "number" }, `${digits(row.meters)} m`), h("td", { class: "number" }, `${digits(row.fastest)} m/s`), h("td", { class: "number" }, `${digits(row.active * trace.dt)} s`))))));
}

/**
 * All events in the order of time; each leads to its frame.
 * @param {Scene} scene @param {(position: number, agent: number) => void} go
 */
export function eventList(scene, go) {
  const { main, axis } = scene;
  const all = [main, ...(scene.ghost ? [scene.ghost] : [])].flatMap(({ trace, events }) =>
    events.map((event) => ({ ...event, position: axis.positionOf(trace, event.frame), isOther: trace !== main.trace })));
  all.sort((a, b) => a.position - b.position);
  const shown = all.slice(0, MOST_EVENTS);
  const rows = shown.map((event) => {
    const { position } = event;
    const place = axis.place(position);
    const time = `${axis.trials > 1 ? `trial ${place.trial + 1}, ` : ""}${(place.step * axis.dt).toFixed(1)} s`;
    return { position, item: h("li", { class: event.isOther ? "of-other" : null }, h("button", { type: "button", class: "event-link", "data-position": position, onclick: () => go(position, event.agent) },
      h("span", { class: "event-time" }, time), h("span", { class: `event-dot ${KINDS[event.kind].tone}`, "aria-hidden": "true" }), h("span", null, `${KINDS[event.kind].name}, agent ${event.agent}${event.isOther ? ", other run" : ""}`))) };
  });
  if (scene.parting) {
    const { position, agent, reason } = scene.parting;
    const what = reason === "end" ? "one run's trial ends first" : reason === "presence" ? `agent ${agent} is in one run only` : `the runs part at agent ${agent}`;
    rows.push(placeOfBoth(position, agent, { "data-parting": true }, `first divergence: ${what}`));
  }
  if (scene.apart) {
    const { position, agent } = scene.apart;
    rows.push(placeOfBoth(position, agent, { "data-apart": true }, `${CLEARLY_APART_M} m apart: agent ${agent}`));
  }
  rows.sort((a, b) => a.position - b.position);
  if (!rows.length) return h("p", { class: "muted" }, "Nothing happened to driven agents: no goal, contact or infraction.");
  return [h("ol", { class: "event-list" }, rows.map(({ item }) => item)), all.length > shown.length ? h("p", { class: "muted" }, `and ${count(all.length - shown.length)} more`) : null];

  /** @param {number} position @param {number} agent @param {Record<string, boolean>} mark @param {string} text */
  function placeOfBoth(position, agent, mark, text) {
    const place = axis.place(position);
    return { position, item: h("li", null, h("button", { type: "button", class: "event-link", "data-position": position, ...mark, onclick: () => go(position, agent) },
      h("span", { class: "event-time" }, `${axis.trials > 1 ? `trial ${place.trial + 1}, ` : ""}${(place.step * axis.dt).toFixed(1)} s`),
      h("span", { class: "event-dot parting", "aria-hidden": "true" }), h("span", null, text))) };
  }
}
