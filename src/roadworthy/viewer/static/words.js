// The text of pages: the same words and number formats as in reports (report/words.py).

/**
 * A figure of metrics.json.
 * @typedef {{name: string, value: number | null, low?: number | null, high?: number | null, n: number,
 *   clusters?: number, per: string, unit: string, level?: number | null, method?: string | null,
 *   note?: string | null, missing?: number, worst_low?: number | null, worst_high?: number | null}} Figure
 */

/** Filled by `loadWords`. @type {any} */
const W = {
  plain: {},
  plurals: {},
  unitSuffixes: [],
  none: "–",
  likelihood: "likelihood",
  gain: "ada_delta_trial_",
  headlines: [],
  columns: [],
  mainOutcomes: [],
  faults: {},
  meanings: {},
};

/** @param {import("./source.js").Source} source */
export async function loadWords(source) {
  useWords(await source.json("app/words.json"));
}

/** @param {any} found */
export function useWords(found) {
  Object.assign(W, found);
}

/** The words that pages share with reports. */
export const shared = W;

export const NONE = "–";

/** Return a figure's name in words. @param {string} name */
export function plainName(name) {
  name = without(without(name, "_per_scenario"), `_${W.likelihood}`);
  if (Object.hasOwn(W.plain, name)) return W.plain[name];
  if (name.startsWith(W.gain)) {
    const [later, first] = name.slice(W.gain.length).split("_minus_");
    if (isDigits(later) && isDigits(first)) return `gain of trial ${+later + 1} over trial ${+first + 1}`;
  }
  const trial = /^trial_(\d+)_score$/.exec(name);
  if (trial) return `score in trial ${+trial[1] + 1}`;
  for (const suffix of W.unitSuffixes) name = without(name, suffix);
  return name.replaceAll("_per_km", " per km").replaceAll("_", " ").trim();
}

/** Return the name of a column of episodes in words. @param {string} name */
export function columnName(name) {
  for (const prefix of ["outcomes.", "factors."])
    if (name.startsWith(prefix)) return plainName(name.slice(prefix.length));
  return (
    { episode_id: "episode", scenario_id: "scenario", wall_s: "wall time", tags: "class" }[name] ??
    name.replaceAll("_", " ")
  );
}

/** Return what a figure measures. @param {string} name @returns {string | undefined} */
export function meaning(name) {
  return W.meanings[without(name, "_per_scenario")];
}

/** @param {number | null | undefined} value @param {string} [unit] @param {boolean} [signed] */
export function number(value, unit = "1", signed = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  if (unit === "share") return signOf(value, signed, 1, 100 * value) + (signed ? " pts" : "%");
  if (unit === W.likelihood) return signOf(value, signed, 3, value);
  return `${digits(value, signed)}${unit === "1" ? "" : ` ${unit}`}`;
}

/** Return a number with about three digits. @param {number} value @param {boolean} [signed] */
export function digits(value, signed = false) {
  const size = Math.abs(value);
  const sign = value < 0 ? "-" : signed ? "+" : "";
  if (size >= 0.01 || size === 0) {
    const places = size >= 1000 || (size >= 100 && Number.isInteger(value)) ? 0 : size >= 100 ? 1 : 2;
    return sign + grouped(fixed(size, places));
  }
  const [mantissa, exponent] = size.toExponential(1).split("e");
  if (+exponent >= -4) return sign + String(+size.toPrecision(2));
  return `${sign}${+mantissa}e${+exponent < 0 ? "-" : "+"}${String(Math.abs(+exponent)).padStart(2, "0")}`;
}

/** @param {Figure} figure */
export function isGain(figure) {
  return figure.name.startsWith(W.gain);
}

/** Return the value of a figure with its unit. @param {Figure | null | undefined} figure */
export function valueOf(figure) {
  return figure ? number(figure.value, figure.unit, isGain(figure)) : NONE;
}

/** Return the interval of a figure, or in brief why there is none. @param {Figure | null | undefined} figure */
export function intervalOf(figure) {
  if (!figure) return NONE;
  const { low, high, unit } = figure;
  if (low === null || high === null || low === undefined || high === undefined)
    return (figure.note || NONE).split(":")[0];
  const signed = isGain(figure);
  let text = number(low, unit, signed);
  for (const end of ["%", " pts", ` ${unit}`]) text = without(text, end);
  return `${text} to ${number(high, unit, signed)}`;
}

/**
 * Return the method of a figure's interval and what it assumes, or why it has none.
 * @param {Figure | null | undefined} figure
 */
export function whyOf(figure) {
  return figure ? [figure.method, figure.note].filter(Boolean).join("; ") || null : null;
}

/**
 * Return the share of a figure's rows without data, and the interval in the worst case.
 * @param {Figure | null | undefined} figure
 */
export function missingOf(figure) {
  if (!figure?.missing) return null;
  const share = `${fixed(100 * figure.missing, 1)}% missing`;
  const { worst_low: low, worst_high: high } = figure;
  return low === null || high === null || low === undefined || high === undefined
    ? share
    : `${share}: ${intervalOf({ ...figure, low, high })}`;
}

/** @param {number} n */
export function count(n) {
  return grouped(fixed(n, Number.isInteger(n) ? 0 : n >= 10 ? 1 : 2));
}

/** Return a number with its noun, in the plural where needed. @param {number} n @param {string} one */
export function many(n, one) {
  return `${count(n)} ${n === 1 ? one : (W.plurals[one] ?? `${one}s`)}`;
}

/** Return how many things a figure counts. @param {Figure} figure */
export function counted(figure) {
  return many(figure.n, figure.per === "agent" ? "ego" : figure.per);
}

/** Return a time of a record. @param {string | null | undefined} text */
export function moment(text) {
  if (!text) return NONE;
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  return `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Return a time span. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return `${fixed(seconds, 1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** @param {number} value @param {boolean} signed @param {number} places @param {number} shown */
function signOf(value, signed, places, shown) {
  const text = fixed(Math.abs(shown), places);
  return (value < 0 || Object.is(value, -0) ? "-" : signed ? "+" : "") + text;
}

/** Round half to even where the decimal value is exact, as Python does. @param {number} value @param {number} places */
function fixed(value, places) {
  const text = value.toFixed(places);
  const scaled = value * 2 ** 20;
  if (!Number.isInteger(scaled)) return text; // not exactly half way
  const twice = value * 10 ** places * 2;
  if (!Number.isInteger(twice) || twice % 2 === 0) return text;
  const lower = Math.floor(value * 10 ** places);
  return ((lower % 2 === 0 ? lower : lower + 1) / 10 ** places).toFixed(places);
}

/** @param {string} text */
function grouped(text) {
  const [whole, rest] = text.split(".");
  const parts = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? parts : `${parts}.${rest}`;
}

/** @param {string} text @param {string} end */
function without(text, end) {
  return text.endsWith(end) ? text.slice(0, text.length - end.length) : text;
}

/** @param {string | undefined} text */
function isDigits(text) {
  return text !== undefined && /^\d+$/.test(text);
}

/** Whether a figure is a share, from its name alone: training logs have no units. @param {string} name */
export function isShare(name) {
  return name === "score" || name === "passed" || name === "success" || name === "comfort" || name.endsWith("_rate");
}
