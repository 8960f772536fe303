// An episode: playback of its trace, alone or in lockstep with another run's, its figures and its videos.

import { address, append, h } from "../dom.js";
import { copyButton, renderCommand, replayCommand, WHERE_FROM } from "../playback/commands.js";
import { CLEARLY_APART_M } from "../playback/divergence.js";
import { playback } from "../playback/playback.js";
import { findEpisode, findSame, loadScene } from "../playback/scene.js";
import { mainOutcome, outcomeChip, outcomeTable } from "../playback/tables.js";
import { videos } from "../playback/videos.js";
import { statusChip } from "../widgets/chips.js";
import { columnName, moment, number as formatted, NONE } from "../words.js";

/** @typedef {Awaited<ReturnType<typeof findEpisode>>} Found */

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const [, key, numberText] = state.path;
  const otherKey = state.get("with");
  const found = await findEpisode(source, key, Number(numberText));
  const other = otherKey && otherKey !== key ? await findSame(source, otherKey, found) : null;
  const { run, row, episodes } = found;
  const id = String(episodes.get(row, "episode_id"));
  const hasTrace = episodes.get(row, "has_trace") === 1;
  const otherHasTrace = other?.episodes.get(other.row, "has_trace") === 1;
  const stage = h("div", { class: "stage" });
  /** @type {unknown} */
  let problem = null;
  const shown = hasTrace ? await opened(source, found, other && otherHasTrace ? other : null, state).catch((error) => {
    problem = error; // what else is known of the episode is shown
    return null;
  }) : null;
  const film = videos(source, key, episodes.get(row, "artifacts"), episodes.get(row, "artifact_errors"), { steps: episodes.get(row, "steps"), isDriving: run.is_driving });
  append(root, heading(found, other, id, source.isLive, shown), stage,
    film, outcomeTable(other ? [found, other] : [found]));
  if (shown) append(stage, partingNote(shown.scene, found, other), shown.scene.notes.map((note) => h("p", { class: "note" }, note)), shown.play.box);
  else if (problem) append(stage, h("p", { class: "warnings", role: "alert" }, `The motion can't be shown: ${/** @type {any} */ (problem).status === 404 && !source.isLive
    ? "this bundle was written without it" : problem instanceof Error ? problem.message : problem}`));
  else if (run.is_driving) append(stage, h("p", { class: "muted" }, "No trace of this episode was recorded, so its motion can't be shown."));
  if (other && shown && !shown.scene.ghost) append(stage, h("p", { class: "warnings" }, "The other run has no trace of this episode, so it can't be played in lockstep."));
  const lockstep = lockstepChooser(source, found, otherKey, state);
  root.querySelector(".episode-actions")?.append(lockstep.box);
  void lockstep.fill();
  shown?.play.player.redraw();
  return () => shown?.play.end();
}

/** @param {import("../source.js").Source} source @param {Found} found @param {Found | null} other @param {import("../state.js").State} state */
async function opened(source, found, other, state) {
  const scene = await loadScene(source, found, other);
  performance.mark("episode-data");
  return { scene, play: playback(scene, state) };
}

/** @param {Found} found @param {Found | null} other @param {string} id @param {boolean} isLive @param {any} shown */
function heading({ key, run, row, number, episodes }, other, id, isLive, shown) {
  const status = String(episodes.get(row, "status"));
  const error = episodes.get(row, "error");
  const title = isLive ? "Copy" : WHERE_FROM;
  const place = (/** @type {number} */ by) => episodes.rowOf(number + by) >= 0
    ? h("a", { href: address(["episode", key, String(number + by)], { with: other?.key }) }, by < 0 ? "Previous episode" : "Next episode") : null;
  return h("div", { class: "run-head" }, h("p", { class: "over" }, other ? "Episode, two runs in lockstep" : "Episode"),
    h("h1", null, id, " ", outcomeChip({ run, row, episodes }), " ", statusChip(status)),
    h("p", { class: "lead" }, h("a", { href: address(["run", key]) }, `${run.evaluator}: ${run.policy}`), ` · ${moment(run.created)}`, main(episodes, row, run),
      other ? [" · with ", h("a", { href: address(["run", other.key]) }, `${other.run.evaluator}: ${other.run.policy}`), main(other.episodes, other.row, other.run)] : null),
    error ? h("p", { class: "warnings" }, String(error)) : null,
    h("div", { class: "episode-actions" }, place(-1), place(1),
      copyButton("Copy link", () => {
        shown?.play.save();
        return location.href;
      }),
      run.is_driving ? copyButton("Copy replay command", () => replayCommand(run.command_path, id), title) : null,
      run.is_driving ? copyButton("Copy render command", () => renderCommand(run.command_path, id), title) : null,
      other ? h("a", { href: address(["compare", key, other.key]) }, "The comparison") : null));
}

/** The main outcome in a few words. @param {import("../episodes.js").Episodes} episodes @param {number} row @param {any} run */
function main(episodes, row, run) {
  const name = mainOutcome(episodes, row);
  if (!name) return null;
  const unit = run.metrics?.figures?.find((/** @type {any} */ figure) => figure.name === name)?.unit ?? "1";
  return ` · ${columnName(`outcomes.${name}`)} ${formatted(episodes.get(row, `outcomes.${name}`), unit) ?? NONE}`;
}

/** @param {import("../playback/scene.js").Scene} scene @param {Found} found @param {Found | null} other */
function partingNote(scene, found, other) {
  if (!scene.ghost || !other) return null;
  const names = `${found.run.policy} (solid) and ${other.run.policy} (ghost)`;
  const { parting, apart, axis } = scene;
  if (!parting) return h("p", { class: "parting-note", "data-frame": "" }, `${names} never part: all agents are at the same places in all ${axis.count} frames.`);
  const seconds = (/** @type {number} */ position) => `${(axis.place(position).step * axis.dt).toFixed(1)} s`;
  const where = (/** @type {number} */ position) => `${axis.trials > 1 ? `trial ${axis.place(position).trial + 1}, ` : ""}frame ${position}`;
  const what = parting.reason === "position" ? `agent ${parting.agent} is ${parting.meters < 0.01 ? `${(1000 * parting.meters).toFixed(1)} mm` : `${parting.meters.toFixed(2)} m`} apart`
    : parting.reason === "presence" ? `agent ${parting.agent} is in one of the two only` : "the trial of one of them has ended";
  return h("p", { class: "parting-note", "data-frame": parting.position, "data-agent": parting.agent, "data-apart": apart?.position ?? "", "data-apart-agent": apart?.agent ?? "" },
    `${names} differ from ${seconds(parting.position)} on, `, apart ? `${CLEARLY_APART_M} m apart at ${seconds(apart.position)}` : `never ${CLEARLY_APART_M} m apart`,
    `. First difference: ${where(parting.position)}, ${what}.`, apart ? ` ${CLEARLY_APART_M} m: ${where(apart.position)}, agent ${apart.agent}.` : null);
}

/** A choice of the run to play together with. @param {import("../source.js").Source} source @param {Found} found @param {string} chosen @param {import("../state.js").State} state */
function lockstepChooser(source, found, chosen, state) {
  const select = h("select", { "aria-label": "Play in lockstep with", onchange: () => {
    location.hash = address(["episode", found.key, String(found.number)], { with: select.value, frame: select.value ? "" : state.get("frame") });
  } }, h("option", { value: "" }, "no other run"));
  const box = h("label", { class: "lockstep" }, "In lockstep with ", select);
  box.hidden = true;
  return { box, fill };

  async function fill() {
    const { runs } = await source.json("data/runs.json");
    const usable = runs.filter((/** @type {any} */ run) => run.key !== found.key && run.status !== "damaged" && run.is_driving && (run.ledger_hash === found.run.ledger_hash || run.key === chosen));
    if (!usable.length) return;
    select.append(...usable.map((/** @type {any} */ run) => h("option", { value: run.key, selected: run.key === chosen }, `${run.policy}, ${moment(run.created).slice(0, 16)}${run.role ? `, ${run.role}` : ""}`)));
    box.hidden = false;
  }
}
