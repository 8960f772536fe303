// Figures of a run and of a selection: tiles of the main ones, and a list of all with bars.

import { h } from "../dom.js";
import { counted, intervalOf, isGain, meaning, missingOf, plainName, shared, valueOf, whyOf } from "../words.js";
import { intervalBar, sharedScale } from "./interval.js";

/** @typedef {import("../words.js").Figure} Figure */
/** @typedef {{role: string, policy: string, key: string | null, figures: Figure[]}} Reference */

const MOST_TILES = 4;

/** The main figures, in the order of reports. @param {Figure[]} figures */
export function mainFigures(figures) {
  const by = new Map(figures.map((figure) => [figure.name, figure]));
  const main = shared.headlines.flatMap((/** @type {string} */ name) => by.get(name) ?? []);
  return (main.length ? main : figures).slice(0, MOST_TILES);
}

/**
 * @param {Figure[]} figures the figures shown
 * @param {Figure[] | null} whole those of all episodes, if the figures are of a selection
 * @param {Reference[]} references
 */
export function figureTiles(figures, whole, references) {
  return h(
    "div",
    { class: "tiles" },
    mainFigures(figures).map((/** @type {Figure} */ figure) => {
      const all = whole?.find(({ name }) => name === figure.name);
      return h(
        "div",
        { class: "tile", "data-figure": figure.name, title: meaning(figure.name) },
        h("div", { class: "tile-name" }, plainName(figure.name)),
        h("div", { class: "tile-value" }, valueOf(figure)),
        h("div", { class: "tile-range", title: whyOf(figure) }, intervalOf(figure)),
        h("div", { class: "tile-count" }, counted(figure)),
        figure.missing ? h("div", { class: "note middling" }, missingOf(figure)) : null,
        all ? h("div", { class: "note" }, `all episodes: ${valueOf(all)}`) : null,
        marks(figure, references).map((mark) => h("div", { class: "note" }, `${mark.label}: ${valueOf(mark.figure)}`)),
      );
    }),
  );
}

/**
 * @param {Figure[]} figures @param {Figure[] | null} whole @param {Reference[]} references
 */
export function figureList(figures, whole, references) {
  const units = new Map();
  const empty = figures.filter((figure) => figure.value === null && figure.n === 0);
  const rank = (/** @type {Figure} */ { name }) =>
    shared.headlines.includes(name) ? shared.headlines.indexOf(name) : 99;
  for (const figure of [...figures].sort((a, b) => rank(a) - rank(b)))
    if (!empty.includes(figure)) units.set(unitOf(figure), [...(units.get(unitOf(figure)) ?? []), figure]);
  const note = empty.length
    ? h("p", { class: "note" }, `No data: ${empty.map(({ name }) => plainName(name)).join(", ")}.`)
    : null;
  return [...units.values()]
    .map((members) => {
      const shown = members.flatMap((/** @type {Figure} */ figure) => [
        figure,
        ...marks(figure, references).map((mark) => mark.figure),
      ]);
      const scale = sharedScale(shown);
      return h(
        "table",
        { class: "figures named" },
        h(
          "tbody",
          null,
          members.map((/** @type {Figure} */ figure) => {
            const all = whole?.find(({ name }) => name === figure.name);
            return h(
              "tr",
              { "data-figure": figure.name },
              h(
                "th",
                { scope: "row", title: meaning(figure.name) },
                plainName(figure.name),
                h("div", { class: "note" }, counted(figure)),
              ),
              h(
                "td",
                { class: "plot" },
                intervalBar(
                  figure,
                  scale,
                  130,
                  20,
                  marks(figure, references).map((mark) => mark.figure),
                ),
              ),
              h(
                "td",
                { class: "number" },
                valueOf(figure),
                h("div", { class: "note", title: whyOf(figure) }, intervalOf(figure)),
                figure.missing ? h("div", { class: "note middling" }, missingOf(figure)) : null,
                all ? h("div", { class: "note" }, `all: ${valueOf(all)}`) : null,
              ),
            );
          }),
        ),
      );
    })
    .concat(/** @type {any} */ (note ?? []));
}

/** Figures of one unit share a scale; gains have one around zero. @param {Figure} figure */
function unitOf(figure) {
  return isGain(figure) ? `gain in ${figure.unit}` : figure.unit;
}

/**
 * The same figure of the best floor and the best ceiling: those with the highest main figure.
 * @param {Figure} figure
 * @param {Reference[]} references
 */
function marks(figure, references) {
  return ["floor", "ceiling"].flatMap((role) => {
    const [best] = references
      .filter((reference) => reference.role === role)
      .sort((a, b) => mainValue(b) - mainValue(a));
    const same = best?.figures.find(({ name, value }) => name === figure.name && value !== null);
    return same ? [{ label: `${role} (${best.policy})`, figure: same }] : [];
  });
}

/** @param {Reference} reference */
function mainValue({ figures }) {
  return mainFigures(figures)[0]?.value ?? -Infinity;
}
