// The differences of two runs as `roadworthy compare` computes them: by figure, by class, by factor and by trial.

import { address, h } from "../dom.js";
import { digits, many, number, plainName, shared } from "../words.js";
import { intervalBar } from "./interval.js";

/** @typedef {any} Difference an entry of data/compare/A/B.json */

const STYLES = { better: "good", "not worse": "good", equal: "good", worse: "bad" };

/** @param {any} found @param {any} first @param {any} second */
export function differences(found, first, second) {
  return h(
    "div",
    null,
    found.sections.map((/** @type {any} */ section) => {
      const main = section.differences.filter((/** @type {Difference} */ one) =>
        section.headlines.includes(one.metric),
      );
      const others = section.differences.filter(
        (/** @type {Difference} */ one) => !section.headlines.includes(one.metric),
      );
      const name = plainName(section.headlines[0] ?? "");
      const flipsOf = (/** @type {string} */ tag) => address(["compare", first.key, second.key], { class: tag });
      return h(
        "section",
        { "aria-label": "Differences" },
        h("h2", null, "Differences, B minus A"),
        verdict(section, first, second),
        notes(section),
        table(main, "figure"),
        others.length
          ? h("details", null, h("summary", null, `${many(others.length, "other figure")}`), table(others, "figure"))
          : null,
        section.by_class.length > 1 ? part(`${name} by class`, section.by_class, "class", false, flipsOf) : null,
        section.by_trial.length > 1 ? part(`${name} by trial`, section.by_trial, "trial") : null,
        Object.entries(section.by_factor).map(([factor, list]) =>
          part(`${name} by ${plainName(factor)}`, /** @type {any} */ (list), plainName(factor), true),
        ),
      );
    }),
    found.left_out.length ? h("p", { class: "note" }, `In one of them alone: ${found.left_out.join(", ")}.`) : null,
  );
}

/** The result in a sentence. @param {any} section @param {any} first @param {any} second */
function verdict(section, first, second) {
  const [main] = section.differences;
  const words = {
    better: "is better than",
    "not worse": "is not worse than",
    worse: "is worse than",
    undecided: "is undecided against",
    equal: "is equal in every pair to",
    higher: "is higher than",
    lower: "is lower than",
  };
  const range =
    main.low === null
      ? (main.note ?? "")
      : `${number(main.low, main.unit, true)} to ${number(main.high, main.unit, true)}`;
  return h(
    "p",
    { class: "verdict-line" },
    h(
      "b",
      { class: STYLES[/** @type {keyof typeof STYLES} */ (main.verdict)] ?? null },
      `B (${second.policy}) ${words[/** @type {keyof typeof words} */ (main.verdict)] ?? main.verdict} A (${first.policy})`,
    ),
    ` in ${plainName(main.metric)}: ${number(main.difference, main.unit, true)} (${range}), `,
    section.paired ? `over ${many(section.shared_episodes, "pair")} of episodes.` : "over independent episodes.",
  );
}

/** The verdict of `roadworthy compare`, with the reason where it decides nothing. @param {Difference} one */
function verdictWords(one) {
  if (one.verdict === "equal") return "equal in every pair";
  if (one.verdict !== "undecided") return one.verdict;
  return ["undecided", h("div", { class: "note" }, whyUndecided(one))];
}

/** @param {Difference} one */
function whyUndecided(one) {
  const isWorst = one.missing && one.worst_low !== null && (one.low > 0 || one.high < 0);
  if (one.low === null) return one.note ?? "not enough data";
  if (isWorst && one.worst_low <= 0 && one.worst_high >= 0) return "missing episodes could turn it around";
  if (one.low <= 0 && one.high >= 0) return "the interval contains 0";
  return "the corrected p is too large";
}

/** @param {any} section */
function notes(section) {
  const texts = [
    section.why_unpaired && `Not in pairs: ${section.why_unpaired}`,
    section.unmatched.candidate,
    section.unmatched.reference,
    ...section.notes,
  ].filter(Boolean);
  return texts.length
    ? h(
        "ul",
        { class: "warnings" },
        texts.map((text) => h("li", null, text)),
      )
    : null;
}

/**
 * @param {string} title
 * @param {Difference[]} list
 * @param {string} label
 * @param {boolean} [isFolded]
 * @param {((part: string) => string) | undefined} [link]
 */
function part(title, list, label, isFolded = false, link = undefined) {
  const shown = isFolded ? list : [...list].sort((a, b) => (a.difference ?? Infinity) - (b.difference ?? Infinity));
  return isFolded
    ? h("details", null, h("summary", null, title), table(shown, label))
    : h("div", null, h("h3", null, title), table(shown, label, link));
}

/**
 * @param {Difference[]} list
 * @param {string} label
 * @param {((part: string) => string) | undefined} [link]
 */
function table(list, label, link = undefined) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `differences by ${label}` },
    h(
      "table",
      { class: "list differences" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, label),
          ["A", "B", "B minus A"].map((text) => h("th", { scope: "col", class: "number" }, text)),
          h("th", { scope: "col" }),
          h("th", { scope: "col" }, "verdict"),
          h("th", { scope: "col", class: "number" }, "flips"),
          h("th", { scope: "col", class: "number", title: "Holm's correction for several figures" }, "p, corrected"),
        ),
      ),
      h(
        "tbody",
        null,
        list.map((one) => row(one, scaleOf(list.filter((other) => other.unit === one.unit)), link)),
      ),
    ),
  );
}

/**
 * @param {Difference} one
 * @param {{low: number, high: number}} scale
 * @param {((part: string) => string) | undefined} [link]
 */
function row(one, scale, link = undefined) {
  const figure = {
    name: one.metric,
    unit: one.unit,
    per: "",
    n: one.n,
    value: one.difference,
    low: one.low,
    high: one.high,
    note: one.note,
    missing: one.missing,
    worst_low: one.worst_low,
    worst_high: one.worst_high,
  };
  const style = STYLES[/** @type {keyof typeof STYLES} */ (one.verdict)] ?? "muted";
  const range =
    one.low === null
      ? (one.note ?? "").split(":")[0]
      : `${number(one.low, one.unit, true)} to ${number(one.high, one.unit, true)}`;
  return h(
    "tr",
    { "data-part": one.part || one.metric },
    h(
      "th",
      { scope: "row", title: shared.meanings[one.metric] },
      link
        ? h("a", { href: link(one.part), title: "the episodes that differ" }, one.part)
        : one.part || plainName(one.metric),
    ),
    h("td", { class: "number" }, number(one.baseline, one.unit)),
    h("td", { class: "number" }, number(one.candidate, one.unit)),
    h(
      "td",
      { class: "number", title: one.method },
      number(one.difference, one.unit, true),
      h("div", { class: "note" }, range),
    ),
    h("td", { class: "plot" }, intervalBar(figure, scale, 180)),
    h("td", { class: style }, verdictWords(one)),
    h("td", { class: "number" }, one.gains || one.losses ? `+${one.gains} / -${one.losses}` : "–"),
    h(
      "td",
      { class: "number p" },
      one.p_holm === null ? "–" : digits(one.p_holm),
      h(
        "div",
        { class: "note", title: "without the correction, and the number of independent groups of episodes" },
        [one.p === null ? null : `raw ${digits(one.p)}`, one.clusters ? many(one.clusters, "cluster") : null]
          .filter(Boolean)
          .join(", "),
      ),
    ),
  );
}

/** A scale around zero. @param {Difference[]} list */
function scaleOf(list) {
  const size = Math.max(
    ...list
      .flatMap((one) => [one.difference, one.low, one.high])
      .filter((value) => value !== null)
      .map(Math.abs),
    1e-9,
  );
  return { low: -1.05 * size, high: 1.05 * size };
}
