// The playback of an episode: picture, controls, timeline, events and plots, with their state in the address.

import { h, replace, s } from "../dom.js";
import { many } from "../words.js";
import { groupsOf } from "./agents_picture.js";
import { keyList, listenKeys } from "./keys.js";
import { Picture } from "./picture.js";
import { Player, SPEEDS } from "./player.js";
import { plots } from "./plots.js";
import { agentTable, eventList } from "./tables.js";
import { timeline } from "./timeline.js";

/** @typedef {import("./scene.js").Scene} Scene */

const SAVE_MS = 400; // browsers allow few changes of the address per second
const GROUPS = { ego: "evaluated policy", coplayer: "co-player", replay: "replayed", reactive: "reactive model", parked: "static", cyclist: "cyclist", pedestrian: "pedestrian" };
const ICONS = {
  play: "M4 2l10 6-10 6z", pause: "M3 2h4v12H3zM9 2h4v12H9z", start: "M2 2h2v12H2zM14 2v12L5 8z", end: "M12 2h2v12h-2zM2 2l9 6-9 6z",
  back: "M11 3v10L4 8z", forward: "M5 3l7 5-7 5z", plus: "M7 2h2v5h5v2H9v5H7V9H2V7h5z", minus: "M2 7h12v2H2z",
};
const VIEWS = { follow: "Follow", map: "Whole map" };

/**
 * @param {Scene} scene @param {import("../state.js").State} state
 * @returns {{box: HTMLElement, end: () => void, save: () => void, picture: Picture, player: Player}}
 */
export function playback(scene, state) {
  const { axis, main, egos } = scene;
  const rate = 1 / axis.dt;
  let saving = 0;
  let trial = -1;
  const picture = new Picture(scene, { changed: viewChanged, chosen: follow, redraw: () => player.redraw() });
  const player = new Player(axis.count, axis.dt, draw, drawControls);
  const strip = timeline(scene, (position) => {
    player.pause();
    seek(position);
  });
  const charts = plots(scene, (position) => {
    player.pause();
    seek(position);
  });
  const time = h("output", { class: "playback-time", "aria-live": "off" });
  const play = h("button", { type: "button", class: "play icon", onclick: () => player.toggle() });
  const speed = h("select", { "aria-label": "Speed", onchange: (/** @type {any} */ event) => player.setSpeed(Number(event.target.value)) },
    SPEEDS.map((value) => h("option", { value: String(value) }, `${value}×`)));
  const ego = h("select", { "aria-label": "Agent to follow", onchange: (/** @type {any} */ event) => follow(Number(event.target.value)) },
    choices().map((agent) => h("option", { value: String(agent) }, `agent ${agent}${main.trace.roles[agent] === 0 ? "" : ` (${roleName(agent)})`}`)));
  const views = h("span", { class: "button-group", role: "group", "aria-label": "View" }, Object.entries(VIEWS).map(([name, text]) =>
    h("button", { type: "button", "data-view": name, onclick: () => picture.setView(picture.view === name ? "free" : name) }, text)));
  const trials = axis.trials > 1 ? h("span", { class: "button-group", role: "group", "aria-label": "Trial" }, Array.from({ length: axis.trials }, (_, k) =>
    h("button", { type: "button", "data-trial": k, "aria-label": `Trial ${k + 1}`, onclick: () => goTrial(k) }, String(k + 1)))) : null;
  const others = axis.trials > 1 ? h("label", { class: "check" }, h("input", { type: "checkbox", checked: state.get("trials") === "all", onchange: (/** @type {any} */ event) => {
    picture.showsOtherTrials = event.target.checked;
    viewChanged();
  } }), "all trials over each other") : null;
  const observed = scene.policy ? h("label", { class: "check" }, h("input", { type: "checkbox", checked: state.get("observed") === "1", onchange: (/** @type {any} */ event) => {
    picture.showsObserved = event.target.checked;
    viewChanged();
  } }), "what the policy observes") : null;
  const agents = h("div");
  const list = h("div");
  const button = (/** @type {keyof typeof ICONS} */ icon, /** @type {string} */ name, /** @type {() => void} */ action) =>
    h("button", { type: "button", class: "icon", "aria-label": name, title: name, onclick: action }, drawing(icon));
  picture.box.append(h("div", { class: "zoom-buttons" }, button("plus", "Zoom in", () => picture.zoomBy(2)), button("minus", "Zoom out", () => picture.zoomBy(-2))));
  const box = h("div", { class: "playback" },
    h("section", { class: "playback-stage", "aria-label": "Playback" }, picture.box, strip.box,
      h("div", { class: "playback-controls", role: "toolbar", "aria-label": "Playback controls" },
        h("span", { class: "button-group" }, button("start", "Start", () => ends(false)), button("back", "One frame back", () => step(-1)), play,
          button("forward", "One frame forward", () => step(1)), button("end", "End", () => ends(true))), speed, time, trials, views, ego, others, observed),
      legend(scene), keyList()),
    h("section", { class: "playback-events", "aria-label": "Events" }, h("h2", null, "Events"), list),
    h("section", { class: "playback-plots", "aria-label": "Agent over time" }, h("h2", { class: "plots-title" }), charts.box),
    h("section", { class: "playback-agents", "aria-label": "Agents" }, h("h2", null, "Driven agents"), agents));
  const title = /** @type {HTMLElement} */ (box.querySelector(".plots-title"));
  const endKeys = listenKeys({
    toggle: () => player.toggle(), step, second: (seconds) => step(Math.round(seconds * rate)), ends,
    speed: (by) => player.changeSpeed(by), event: nextEvent, trial: goTrial, follow: () => picture.setView(picture.view === "follow" ? "free" : "follow"),
    map: () => picture.setView("map"), ego: nextEgo, zoom: (by) => picture.zoomBy(by), pan: (dx, dy) => picture.pan(dx, dy),
    parting: () => {
      const place = scene.apart ?? scene.parting;
      if (place) jump(place.position);
    },
  });
  replace(list, eventList(scene, (position, agent) => {
    if (agent >= 0 && agent !== picture.followed && main.trace.roles[agent] < 2) follow(agent);
    jump(position);
  }));
  restore();
  return { box, end, save, picture, player };

  function restore() {
    const number = (/** @type {string} */ name) => (state.get(name) === "" ? NaN : Number(state.get(name)));
    const chosen = number("ego");
    if (Number.isInteger(chosen) && chosen >= 0 && chosen < main.trace.agents) picture.followed = chosen;
    if (SPEEDS.includes(number("speed"))) player.speed = number("speed");
    if (Number.isFinite(number("zoom"))) picture.camera.zoom = Math.round(Math.min(Math.max(number("zoom"), -12), 28));
    picture.showsOtherTrials = state.get("trials") === "all";
    picture.showsObserved = state.get("observed") === "1";
    const [x, y] = state.get("at").split(",").map(Number);
    if (state.get("view") === "map") picture.view = "map";
    else if (state.get("at") && Number.isFinite(x) && Number.isFinite(y)) {
      picture.view = "free";
      [picture.camera.x, picture.camera.y] = [x, y];
    }
    const frame = number("frame");
    player.position = Math.min(Math.max(Number.isFinite(frame) ? Math.round(frame) : scene.parting ? Math.max(scene.parting.position - Math.round(rate), 0) : 0, 0), axis.count - 1);
    strip.drawMarks(picture.followed);
    drawControls();
  }

  /** Build what is below the picture, after its first drawing. */
  function fillIn() {
    charts.make(picture.followed);
    replace(title, `Agent ${picture.followed} over time`);
    drawAgents();
  }

  function drawAgents() {
    replace(agents, agentTable(scene, Math.max(trial, 0), picture.followed, follow) ?? h("p", { class: "muted" }, "No policy drives an agent."));
  }

  /** @param {number} position */
  function draw(position) {
    if (!picture.isSized) picture.resize();
    if (!picture.isSized) return; // it is not on the page yet; it draws when it is
    picture.draw(position);
    if (!picture.canvas.dataset.painted) {
      picture.canvas.dataset.painted = "true";
      performance.mark("episode-painted");
      setTimeout(fillIn);
    }
    const frame = Math.floor(position + 1e-6);
    if (frame !== Number(picture.canvas.dataset.frame)) {
      picture.canvas.dataset.frame = String(frame);
      const place = axis.place(frame);
      const text = `${axis.trials > 1 ? `trial ${place.trial + 1}, ` : ""}${(place.step * axis.dt).toFixed(1)} s, frame ${frame} of ${axis.count - 1}`;
      time.textContent = text;
      strip.draw(frame, text);
      charts.draw(frame);
      if (place.trial !== trial) {
        trial = place.trial;
        trials?.querySelectorAll("button").forEach((one, k) => one.setAttribute("aria-pressed", String(k === trial)));
        if (picture.canvas.dataset.painted && agents.firstChild) drawAgents();
      }
      picture.canvas.dataset.parted = String(!!scene.parting && position >= scene.parting.position);
    } else {
      strip.draw(position, time.textContent ?? "");
    }
  }

  function drawControls() {
    replace(play, drawing(player.isPlaying ? "pause" : "play"));
    play.setAttribute("aria-label", player.isPlaying ? "Pause" : "Play");
    speed.value = String(player.speed);
    ego.value = String(picture.followed);
    views.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.view === picture.view)));
    picture.canvas.dataset.view = picture.view;
    picture.canvas.setAttribute("aria-label", describe());
    later();
  }

  function viewChanged() {
    drawControls();
    player.redraw();
  }

  /** @param {number} position */
  function seek(position) {
    player.seek(position);
    later();
  }

  /** @param {number} frames */
  function step(frames) {
    player.step(frames);
    later();
  }

  /** @param {number} position */
  function jump(position) {
    player.pause();
    seek(position);
  }

  /** @param {boolean} isEnd */
  function ends(isEnd) {
    jump(isEnd ? axis.count - 1 : 0);
  }

  /** @param {number} agent */
  function follow(agent) {
    if (![...ego.options].some((option) => option.value === String(agent))) ego.append(h("option", { value: String(agent) }, `agent ${agent} (${roleName(agent)})`));
    picture.followed = agent;
    if (picture.view === "free") picture.view = "follow";
    strip.drawMarks(agent);
    fillIn();
    viewChanged();
  }

  /** @param {number} by */
  function nextEgo(by) {
    const list = choices();
    if (list.length) follow(list[(list.indexOf(picture.followed) + by + list.length) % list.length]);
  }

  /** @param {number} by */
  function nextEvent(by) {
    const positions = main.events.map(({ frame }) => axis.positionOf(main.trace, frame));
    const now = Math.round(player.position);
    const found = by > 0 ? positions.find((at) => at > now) : positions.findLast((at) => at < now);
    if (found !== undefined) jump(found);
  }

  /** @param {number} k */
  function goTrial(k) {
    if (k < axis.trials) seek(axis.starts[k]);
  }

  /** The agents that policies drive, else all. */
  function choices() {
    if (egos.length) return egos;
    return Array.from({ length: Math.min(main.trace.agents, 200) }, (_, agent) => agent);
  }

  /** @param {number} agent */
  function roleName(agent) {
    return ["evaluated", "co-player", "replayed", "reactive", "static"][main.trace.roles[agent]] ?? "";
  }

  function describe() {
    const what = picture.view === "map" ? "the whole map" : picture.view === "free" ? "a part of the map" : `agent ${picture.followed} and its surroundings`;
    return `${what} from above, with ${many(main.trace.agents, "agent")}; the events and plots beside it say the same in words and numbers`;
  }

  /** Write the address soon. */
  function later() {
    clearTimeout(saving);
    saving = setTimeout(() => !player.isPlaying && save(), SAVE_MS);
  }

  /** Write all that is shown into the address. */
  function save() {
    clearTimeout(saving);
    const { camera, view } = picture;
    state.set({ frame: String(Math.round(player.position)), ego: String(picture.followed), speed: player.speed === 1 ? "" : String(player.speed),
      zoom: view === "map" ? "" : String(Math.round(camera.zoom)), view: view === "map" ? "map" : "", at: view === "free" ? `${camera.x.toFixed(2)},${camera.y.toFixed(2)}` : "",
      trials: picture.showsOtherTrials ? "all" : "", observed: picture.showsObserved ? "1" : "" });
  }

  function end() {
    clearTimeout(saving);
    player.end();
    picture.end();
    endKeys();
  }
}

/** @param {keyof typeof ICONS} name */
function drawing(name) {
  return s("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, s("path", { d: ICONS[name] }));
}

/** @param {Scene} scene */
function legend(scene) {
  const names = groupsOf(scene.main.trace).map(([name]) => name).reverse();
  return h("ul", { class: "playback-legend", "aria-label": "Colors" }, names.map((name) =>
    h("li", null, h("span", { class: `agent-swatch ${name}`, "aria-hidden": "true" }), GROUPS[/** @type {keyof typeof GROUPS} */ (name)])),
    scene.ghost ? h("li", null, h("span", { class: "agent-swatch ghost", "aria-hidden": "true" }), `the other run: ${scene.ghost.run.policy}`) : null);
}
