// Filters on episodes: kept in the address as `f=COLUMN~OPERATION~VALUE~...`, applied to columns of 100,000 rows at once.

/** @typedef {import("./episodes.js").Episodes} Episodes */
/** @typedef {import("./episodes.js").LongColumn} LongColumn */

/**
 * in: one of the words (of a list of words: any of them); range: from low to high, null for no bound; has: contains the
 * text; none: no data.
 * @typedef {{column: string, operation: "in", words: string[]} | {column: string, operation: "range", low: number | null, high: number | null}
 *   | {column: string, operation: "has", text: string} | {column: string, operation: "none"}} Filter
 */

/** @param {string} text @returns {Filter | null} null if it is not a filter */
export function parseFilter(text) {
  const [column, operation, ...values] = text.split("~").map(decoded);
  if (!column) return null;
  if (operation === "in" && values.length) return { column, operation, words: values };
  if (operation === "range" && values.length === 2) {
    const [low, high] = values.map((value) => (value === "" || Number.isNaN(Number(value)) ? null : Number(value)));
    return { column, operation, low, high };
  }
  if (operation === "has" && values.length === 1) return { column, operation, text: values[0] };
  return operation === "none" ? { column, operation } : null;
}

/** @param {Filter} filter */
export function filterText(filter) {
  const values =
    filter.operation === "in"
      ? filter.words
      : filter.operation === "range"
        ? [filter.low === null ? "" : short(filter.low), filter.high === null ? "" : short(filter.high)]
        : filter.operation === "has"
          ? [filter.text]
          : [];
  return [filter.column, filter.operation, ...values]
    .map((part) => encodeURIComponent(part).replaceAll("~", "%7E"))
    .join("~");
}

/** The filters of an address. @param {import("./state.js").State} state @returns {Filter[]} */
export function filtersOf(state) {
  return state
    .all("f")
    .map(parseFilter)
    .filter((filter) => filter !== null);
}

/**
 * Replace the filter with this operation on a column, or remove it.
 * @param {import("./state.js").State} state @param {string} column @param {Filter | null} filter @param {boolean} [push]
 */
export function setFilter(state, column, filter, push = false) {
  const others = filtersOf(state).filter(
    (other) => other.column !== column || (filter !== null && other.operation !== filter.operation),
  );
  state.set({ f: [...others, ...(filter ? [filter] : [])].map(filterText) }, { push });
}

/**
 * Return the rows that pass all filters, ascending. Filters on columns that a run lacks let nothing pass.
 * @param {Episodes} episodes @param {Filter[]} filters @returns {Uint32Array}
 */
export function select(episodes, filters) {
  const passes = new Uint8Array(episodes.count).fill(1);
  for (const filter of filters) apply(episodes.column(filter.column), filter, passes);
  const rows = new Uint32Array(episodes.count);
  let count = 0;
  for (let row = 0; row < passes.length; row++) if (passes[row]) rows[count++] = row;
  return rows.subarray(0, count);
}

/** @param {LongColumn | undefined} column @param {Filter} filter @param {Uint8Array} passes */
function apply(column, filter, passes) {
  if (!column) {
    passes.fill(0);
  } else if (column.kind === "number") {
    const { values } = column;
    if (filter.operation === "none")
      for (let row = 0; row < passes.length; row++) passes[row] &= +(values[row] !== values[row]);
    else {
      const [low, high] = bounds(filter);
      for (let row = 0; row < passes.length; row++) passes[row] &= +(values[row] >= low && values[row] <= high);
    }
  } else if (column.kind === "word") {
    const allowed = Uint8Array.from(column.words, (word) => +matches(word, filter));
    for (let row = 0; row < passes.length; row++) passes[row] &= allowed[column.codes[row]];
  } else {
    for (let row = 0; row < passes.length; row++) if (passes[row]) passes[row] = +matches(column.get(row), filter);
  }
}

/** @param {Filter} filter @returns {[number, number]} */
function bounds(filter) {
  if (filter.operation === "range") return [filter.low ?? -Infinity, filter.high ?? Infinity];
  if (filter.operation === "in" && filter.words.length === 1) return [Number(filter.words[0]), Number(filter.words[0])];
  return [Infinity, -Infinity];
}

/** @param {any} word @param {Filter} filter */
export function matches(word, filter) {
  const texts =
    word === null
      ? []
      : Array.isArray(word)
        ? word.map(String)
        : typeof word === "object"
          ? Object.keys(word)
          : [String(word)];
  switch (filter.operation) {
    case "none":
      return texts.length === 0;
    case "in":
      return texts.some((text) => filter.words.includes(text));
    case "has":
      return texts.some((text) => text.toLowerCase().includes(filter.text.toLowerCase()));
    default:
      return false;
  }
}

/**
 * Return rows in the order of a column, missing values last, then in their own order.
 * @param {Episodes} episodes @param {Uint32Array} rows @param {string} sort a column, with `-` before it for descending
 */
export function sorted(episodes, rows, sort) {
  const isDescending = sort.startsWith("-");
  const column = episodes.column(sort.replace(/^-/, ""));
  const found = rows.slice();
  if (!column) return found;
  const ranks = ranksOf(column, episodes.count);
  const sign = isDescending ? -1 : 1;
  return found.sort((a, b) => {
    const x = ranks[a];
    const y = ranks[b];
    if (x === y) return a - b;
    if (x !== x) return y !== y ? a - b : 1;
    if (y !== y) return -1;
    return sign * (x - y);
  });
}

/**
 * Return a number for each row in the order of the values, NaN for no data.
 * @param {LongColumn} column
 * @param {number} count
 * @returns {Float64Array}
 */
function ranksOf(column, count) {
  if (column.kind === "number") return column.values;
  const ranks = new Float64Array(count);
  if (column.kind === "word") {
    const texts = column.words.map((word) =>
      word === null || word.length === 0
        ? null
        : Array.isArray(word)
          ? word.join(", ")
          : typeof word === "object"
            ? Object.keys(word).join(", ")
            : String(word),
    );
    const order = texts.map((_, k) => k).sort((a, b) => ((texts[a] ?? "") < (texts[b] ?? "") ? -1 : 1));
    const places = new Float64Array(texts.length);
    order.forEach((place, rank) => (places[place] = texts[place] === null || texts[place] === "" ? NaN : rank));
    for (let row = 0; row < count; row++) ranks[row] = places[column.codes[row]];
    return ranks;
  }
  const texts = Array.from({ length: count }, (_, row) => String(column.get(row)));
  const order = Uint32Array.from(texts.keys()).sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0));
  order.forEach((row, rank) => (ranks[row] = rank));
  return ranks;
}

/** @param {number} value */
function short(value) {
  return String(+value.toPrecision(6));
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
