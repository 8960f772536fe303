// The figures of each trial of an episode, of a run whose episodes have several.

import { h } from "../dom.js";
import { plainName, shared } from "../words.js";
import { intervalCell } from "./interval.js";

const SHOWN = ["score", "completion_rate", "at_fault_collision_rate", "timed_out_rate", "trial_mean_length"];

/** @param {any} run */
export function trialTable(run) {
  const trials = run.metrics.by_trial ?? [];
  if (trials.length < 2) return null;
  const names = SHOWN.filter((name) => trials[0].figures.some((/** @type {any} */ figure) => figure.name === name));
  const gains = new Map(
    (run.metrics.figures ?? [])
      .filter((/** @type {any} */ figure) => figure.name.startsWith(shared.gain))
      .map((/** @type {any} */ figure) => [Number(/\d+/.exec(figure.name.slice(shared.gain.length))?.[0]), figure]),
  );
  return h(
    "section",
    { "aria-label": "Over trials" },
    h("h2", null, "Over trials"),
    h("p", { class: "note" }, "Of all episodes, whatever is selected. Gains compare the same ego in the same episode."),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Over trials" },
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "trial"),
            names.map((name) => h("th", { scope: "col", class: "number" }, plainName(name))),
            h("th", { scope: "col", class: "number" }, "gain over trial 1"),
          ),
        ),
        h(
          "tbody",
          null,
          trials.map((/** @type {any} */ trial) =>
            h(
              "tr",
              null,
              h("th", { scope: "row" }, `trial ${trial.trial + 1}`),
              names.map((name) =>
                intervalCell(trial.figures.find((/** @type {any} */ figure) => figure.name === name)),
              ),
              intervalCell(gains.get(trial.trial)),
            ),
          ),
        ),
      ),
    ),
  );
}
