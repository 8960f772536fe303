// Which factors decide an outcome: rates by factor from the episodes, and the analyses that exist as files.

import { address, append, h, replace } from "../dom.js";
import { Episodes } from "../episodes.js";
import { SelectionFigures } from "../figures_of_selection.js";
import { extent } from "../plots/scale.js";
import { quoted, WHERE_FROM } from "../playback/commands.js";
import { lineChart } from "../plots/line_chart.js";
import { filterText } from "../selection.js";
import { intervalBar, sharedScale } from "../widgets/interval.js";
import { columnName, digits, intervalOf, many, number, plainName, shared, valueOf } from "../words.js";

const BINS = 8;
const MOST_WORDS = 12;

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const key = state.path[1];
  const [run, found] = await Promise.all([
    source.json(`data/run/${key}/run.json`),
    source.json(`data/run/${key}/sensitivity.json`),
  ]);
  const episodes = await Episodes.open(source, key);
  const factors = episodes.namesWithValues().filter((name) => name.startsWith("factors.") || name === "tags");
  const figures = new SelectionFigures(source, key, episodes);
  await figures.update(run);
  const box = h("div");
  append(
    root,
    h("p", { class: "over" }, "Sensitivity"),
    h("h1", null, run.evaluator),
    h("p", { class: "lead" }, h("a", { href: address(["run", key]) }, run.policy)),
    found.analyses.map((/** @type {any} */ analysis) => analysisSection(analysis)),
    found.analyses.length
      ? null
      : h(
          "p",
          { class: "note" },
          "No analysis of this run exists yet. This one corrects for what varies together, and says how sure it is:",
          h("pre", null, `roadworthy sensitivity ${quoted(run.command_path)} -o ${quoted(`${run.command_path}/sensitivity/report.html`)}`),
          source.isLive ? null : WHERE_FROM,
        ),
    box,
  );
  draw();

  function draw() {
    const names = figures.metrics.filter(({ kind }) => kind !== "ratio").map(({ name }) => name);
    const main = shared.headlines.find((/** @type {string} */ name) => names.includes(name)) ?? names[0];
    const chosen = names.includes(state.get("figure")) ? state.get("figure") : main;
    if (!factors.length || !chosen)
      return replace(box, h("p", { class: "muted" }, "The episodes of this run have no factors."));
    replace(
      box,
      h("h2", null, "By factor, as observed"),
      h(
        "div",
        { class: "controls" },
        h(
          "label",
          null,
          "Figure",
          h(
            "select",
            {
              onchange: (/** @type {any} */ event) => {
                state.set({ figure: event.target.value });
                draw();
              },
            },
            names.map((name) => h("option", { value: name, selected: name === chosen }, plainName(name))),
          ),
        ),
      ),
      h(
        "p",
        { class: "note" },
        "The figure of the episodes with each choice or range of a factor, whatever else varied with it. Rates have intervals. Each leads to its episodes.",
      ),
      h(
        "div",
        { class: "charts" },
        factors.map((factor) => observed(factor, chosen)),
      ),
    );
  }

  /** @param {string} factor @param {string} name */
  function observed(factor, name) {
    const groups = grouped(factor);
    const found = groups.map((group) => figures.quick(Uint32Array.from(group.rows), [name])[0]);
    const unit = found.find(Boolean)?.unit ?? "1";
    const link = (/** @type {any} */ group) => address(["run", key], { f: filterText(group.filter) });
    if (groups.every((group) => group.word !== undefined)) {
      const scale = sharedScale(found.filter(Boolean));
      return h(
        "figure",
        { class: "chart-box" },
        h("figcaption", null, columnName(factor)),
        h(
          "table",
          { class: "figures" },
          h(
            "tbody",
            null,
            groups.map((group, k) =>
              h(
                "tr",
                null,
                h(
                  "th",
                  { scope: "row" },
                  h("a", { href: link(group) }, group.word),
                  h("div", { class: "note" }, many(group.rows.length, "episode")),
                ),
                h("td", { class: "plot" }, found[k] ? intervalBar(found[k], scale, 150) : null),
                h("td", { class: "number" }, valueOf(found[k]), h("div", { class: "note" }, intervalOf(found[k]))),
              ),
            ),
          ),
        ),
      );
    }
    return lineChart({
      title: columnName(factor),
      across: columnName(factor),
      range: unit === "share" ? [0, 1] : undefined,
      format: (value) => number(value, unit),
      series: [
        {
          name: plainName(name),
          kind: "points",
          x: groups.map((group) => group.at),
          y: found.map((figure) => figure?.value ?? null),
          low: found.map((figure) => figure?.low ?? null),
          high: found.map((figure) => figure?.high ?? null),
          links: groups.map(link),
          labels: groups.map((group) => `${group.label}, ${many(group.rows.length, "episode")}`),
        },
      ],
    });
  }

  /**
   * @param {string} factor
   * @returns {{at: number, word?: string, label: string, rows: number[], filter: import("../selection.js").Filter}[]}
   */
  function grouped(factor) {
    const column = /** @type {import("../episodes.js").LongColumn} */ (episodes.column(factor));
    if (column.kind === "number") {
      const [low, high] = extent(column.values, episodes.count) ?? [0, 1];
      const width = (high - low || 1) / BINS;
      const bins = Array.from({ length: BINS }, (_, k) => ({
        at: low + (k + 0.5) * width,
        label: `${digits(low + k * width)} to ${digits(low + (k + 1) * width)}`,
        rows: /** @type {number[]} */ ([]),
        filter: /** @type {import("../selection.js").Filter} */ ({
          column: factor,
          operation: "range",
          low: low + k * width,
          high: low + (k + 1) * width,
        }),
      }));
      for (let row = 0; row < episodes.count; row++) {
        const value = column.values[row];
        if (value === value) bins[Math.min(BINS - 1, Math.floor((value - low) / width))].rows.push(row);
      }
      return bins.filter((bin) => bin.rows.length);
    }
    /** @type {Map<string, number[]>} */
    const words = new Map();
    for (let row = 0; row < episodes.count; row++)
      for (const word of [column.get(row)].flat())
        if (word !== null) words.set(String(word), [...(words.get(String(word)) ?? []), row]);
    return [...words]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, MOST_WORDS)
      .map(([word, rows], at) => ({
        at,
        word,
        label: word,
        rows,
        filter: { column: factor, operation: "in", words: [word] },
      }));
  }
}

/** An analysis that `roadworthy sensitivity` wrote. @param {any} analysis */
function analysisSection(analysis) {
  const factors = [...analysis.factors].sort((a, b) => b.total.mean - a.total.mean);
  const format = (/** @type {number} */ value) => (analysis.is_binary ? number(value, "share") : digits(value));
  return h(
    "section",
    { class: "analysis" },
    h("h2", null, `Analysis of ${plainName(analysis.outcome)}`),
    h(
      "p",
      { class: "note" },
      `${analysis.path}: ${many(analysis.n, "episode")}, model ${analysis.model}; bands of ${Math.round(100 * analysis.band)}%.`,
    ),
    analysis.warnings.length
      ? h(
          "div",
          { class: "warnings" },
          h(
            "ul",
            null,
            analysis.warnings.map((/** @type {any} */ warning) => h("li", null, warning.message)),
          ),
        )
      : null,
    h(
      "div",
      { class: "scroll", tabindex: 0 },
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["factor", "verdict", "total share of variation", "alone", "swing", "p"].map((text) =>
              h("th", { scope: "col" }, text),
            ),
          ),
        ),
        h(
          "tbody",
          null,
          factors.map((factor) =>
            h(
              "tr",
              null,
              h("th", { scope: "row" }, plainName(factor.name)),
              h("td", { class: factor.verdict === "matters" ? "good" : "muted" }, factor.verdict),
              h(
                "td",
                null,
                band(factor.total, (value) => number(value, "share")),
              ),
              h(
                "td",
                null,
                band(factor.first_order, (value) => number(value, "share")),
              ),
              h("td", null, band(factor.swing, format)),
              h("td", null, factor.p_value === null ? "–" : digits(factor.p_value)),
            ),
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "charts" },
      factors.map((factor) => {
        const isWord = factor.type === "categorical";
        const x = isWord ? factor.at.map((/** @type {any} */ _, /** @type {number} */ k) => k) : factor.at;
        return lineChart({
          title: plainName(factor.name),
          across: isWord ? "" : plainName(factor.name),
          words: isWord ? factor.at.map(String) : undefined,
          domain: isWord ? [-0.5, factor.at.length - 0.5] : undefined,
          range: analysis.is_binary ? [0, 1] : undefined,
          format,
          series: [
            {
              name: plainName(analysis.outcome),
              kind: isWord ? "points" : "line",
              x,
              y: factor.curve.mean,
              low: factor.curve.low,
              high: factor.curve.high,
            },
          ],
        });
      }),
    ),
  );
}

/** @param {{mean: number, low: number, high: number}} found @param {(value: number) => string} format */
function band(found, format) {
  return `${format(found.mean)} (${format(found.low)} to ${format(found.high)})`;
}
