// One run: its figures, and its episodes with filters; figures are recomputed for the selection.

import { address, append, h, replace } from "../dom.js";
import { Episodes } from "../episodes.js";
import { SelectionFigures } from "../figures_of_selection.js";
import { onLeave } from "../leave.js";
import { filtersOf, select, sorted } from "../selection.js";
import { statusChip } from "../widgets/chips.js";
import { classTable } from "../widgets/class_table.js";
import { chosenColumns, columnChooser } from "../widgets/column_chooser.js";
import { episodeTable } from "../widgets/episode_table.js";
import { figureList, figureTiles } from "../widgets/figure_tiles.js";
import { filterBar } from "../widgets/filter_bar.js";
import { plotPanel } from "../widgets/plot_panel.js";
import { provenance } from "../widgets/provenance.js";
import { trialTable } from "../widgets/trial_table.js";
import { count, many, moment, plainName, shared } from "../words.js";

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const key = state.path[1];
  const home = `data/run/${key}/run.json`;
  let run = await source.json(home);
  const episodes = await Episodes.open(source, key);
  const figures = new SelectionFigures(source, key, episodes);
  const head = h("div", { class: "run-head" });
  const tiles = h("div", { class: "tiles-box", "aria-live": "polite" });
  const list = h("div", { class: "figure-list" });
  const classes = h("div");
  const main = episodes.count ? explorer() : null;
  append(
    root,
    head,
    tiles,
    h(
      "div",
      { class: "explorer" },
      h("section", { class: "explorer-figures", "aria-label": "Figures" }, h("h2", null, "Figures"), list),
      h(
        "section",
        { class: "explorer-episodes", "aria-label": "Episodes" },
        h("h2", null, "Episodes"),
        main ? main.parts : h("p", { class: "muted" }, "No episode has ended yet."),
      ),
    ),
    classes,
    trialTable(run),
    provenance(run, source),
  );
  drawHead();
  let frame = 0;
  let rows = select(episodes, filtersOf(state));
  changed();
  const loading = figures.update(run).then(changed);
  if (!run.metrics.figures) await loading;
  loading.catch((error) => replace(list, h("p", { class: "bad" }, String(error.message ?? error))));

  return onLeave(
    () => cancelAnimationFrame(frame),
    () => figures.end(),
    source.watch(home, async (value) => {
      const was = run;
      run = value;
      await episodes.update(run.rows);
      await figures.update(run);
      drawHead();
      if (!main && episodes.count) location.reload();
      else if (was.rows.count !== run.rows.count || was.status !== run.status) changed();
    }),
  );

  function explorer() {
    const bar = filterBar(episodes, state, changed);
    const plots = plotPanel(episodes, state, changed);
    const table = episodeTable({
      key,
      episodes,
      state,
      sort: (by) => {
        state.set({ sort: by });
        changed();
      },
    });
    const chooser = columnChooser(episodes, state, changed);
    return { bar, plots, table, parts: [bar.box, plots.box, chooser, table.box] };
  }

  /** Draw what depends on the selection. */
  function changed() {
    const filters = filtersOf(state);
    rows = select(episodes, filters);
    if (main) {
      main.bar.draw();
      main.plots.draw(rows, filters);
      const order = state.get("sort", defaultSort(episodes));
      main.table.draw(sorted(episodes, rows, order), chosenColumns(episodes, state), order);
    }
    // The table answers first, figures after it has been painted.
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => setTimeout(() => drawFigures(filtersOf(state).length > 0)));
  }

  /** @param {boolean} isSelection */
  function drawFigures(isSelection) {
    const whole = run.metrics.figures?.filter(
      (/** @type {any} */ figure) => figure.per !== "scenario" || !figure.name.endsWith("_per_scenario"),
    );
    replace(classes, classTable(run, episodes, figures, rows));
    if (whole && !isSelection) {
      figures.end();
      figures.turn++;
      return drawThese(whole, null);
    }
    figures.compute(rows, (found) => drawThese(found, whole ?? null));
  }

  /** @param {import("../words.js").Figure[]} found @param {import("../words.js").Figure[] | null} whole */
  function drawThese(found, whole) {
    const part =
      rows.length < episodes.count ? `${many(rows.length, "episode")} selected of ${count(episodes.count)}` : null;
    const unfinished =
      run.rows.order === "ended"
        ? `${count(episodes.count)} of ${count(run.planned_episodes)} episodes have ended. Until all have, these figures are no estimate: short episodes end first.`
        : null;
    replace(
      tiles,
      unfinished ? h("p", { class: "warnings" }, unfinished) : null,
      part ? h("p", { class: "selected" }, part) : null,
      figureTiles(found, whole, run.references),
    );
    const left = (whole ?? []).filter((one) => one.value !== null && !found.some(({ name }) => name === one.name));
    replace(
      list,
      figureList(found, whole, run.references),
      left.length
        ? h("p", { class: "note" }, `Of all episodes only: ${left.map(({ name }) => plainName(name)).join(", ")}.`)
        : null,
    );
  }

  function drawHead() {
    const gaps = (run.metrics.gaps ?? []).length;
    replace(
      head,
      h("p", { class: "over" }, "Run"),
      h("h1", null, run.evaluator, " ", statusChip(run.status)),
      h(
        "p",
        { class: "lead" },
        h("b", null, run.policy),
        run.step ? ` at step ${count(run.step)}` : "",
        ` · ${moment(run.created)} · `,
        run.rows.order === "ended"
          ? `${count(run.rows.count)} of ${count(run.planned_episodes)} episodes`
          : many(run.rows.count, "episode"),
        run.metrics.num_failed_episodes
          ? [
              " · ",
              h(
                "a",
                {
                  class: "bad",
                  href: address(["run", key], { f: "status~in~failed", cols: "episode_id,error,tags,seed" }),
                },
                `${count(run.metrics.num_failed_episodes)} failed`,
              ),
            ]
          : null,
        gaps ? ` · ${many(gaps, "scenario")} with fewer episodes than planned` : null,
      ),
      run.rows.order === "ended"
        ? h("progress", {
            max: run.planned_episodes || 1,
            value: run.rows.count,
            "aria-label": "episodes that have ended",
          })
        : null,
      run.error ? h("p", { class: "warnings" }, run.error) : null,
      h(
        "nav",
        { "aria-label": "Of this run" },
        h("a", { href: address(["compare", key]) }, "Compare with ..."),
        h("a", { href: address(["history"], { suite: run.evaluator, policy: run.policy }) }, "History"),
        run.metrics.realism ? h("a", { href: address(["realism", key]) }, "Realism") : null,
        h("a", { href: address(["sensitivity", key]) }, "Sensitivity"),
        run.references.map((/** @type {any} */ reference) =>
          reference.key
            ? h("a", { href: address(["run", reference.key]) }, `${reference.role}: ${reference.policy}`)
            : null,
        ),
      ),
    );
  }
}

/** The lowest main outcome first. @param {Episodes} episodes */
function defaultSort(episodes) {
  const main = shared.mainOutcomes.find((/** @type {string} */ name) => episodes.columns.has(`outcomes.${name}`));
  return main ? `outcomes.${main}` : "number";
}
