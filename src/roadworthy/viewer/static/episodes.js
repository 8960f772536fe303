// The episodes of a run: parts of a table merged into long columns, which grow while the run continues.

import { Texts } from "./columns.js";

/** @typedef {import("./source.js").Source} Source */
/** @typedef {import("./columns.js").Table} Table */

/** A column of all rows. */
export class LongColumn {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    /** "number", "word" or "text"; a column that is text anywhere is text. @type {"number" | "word" | "text"} */
    this.kind = "number";
    /** Numbers, NaN for no data. @type {Float64Array} */
    this.values = new Float64Array(0);
    /** The distinct words, of a column of words. @type {any[]} */
    this.words = [];
    /** Places in `words`. @type {Uint32Array} */
    this.codes = new Uint32Array(0);
    /** The texts from a row on. @type {{start: number, end: number, texts: Texts}[]} */
    this.texts = [];
    /** @type {Map<string, number>} */
    this.places = new Map();
  }

  /** @param {number} row @returns {any} null for no data */
  get(row) {
    if (this.kind === "number") {
      const value = this.values[row];
      return Number.isNaN(value) ? null : value;
    }
    if (this.kind === "text") {
      const part = this.texts.find(({ start, end }) => row >= start && row < end);
      if (part) return part.texts.get(row - part.start);
    }
    return this.words[this.codes[row]] ?? null;
  }

  /**
   * @param {import("./columns.js").Column | undefined} part
   * @param {number} start the row of its first value
   * @param {number} rows
   */
  append(part, start, rows) {
    const end = start + rows;
    if (part?.kind === "number" || (!part && this.kind === "number")) {
      this.values = grown(this.values, end, Float64Array);
      if (part?.kind === "number") this.values.set(part.values, start);
      else this.values.fill(NaN, start, end);
      return;
    }
    if (this.kind === "number") {
      this.kind = "word";
      this.codes = grown(this.codes, end, Uint32Array);
      if (start) this.codes.fill(this.place(null), 0, start);
    }
    this.codes = grown(this.codes, end, Uint32Array);
    if (part?.kind === "word") {
      const map = part.values.map((value) => this.place(value));
      for (let row = 0; row < rows; row++) this.codes[start + row] = map[part.codes[row]];
    } else if (part?.kind === "text") {
      this.kind = "text";
      this.texts.push({ start, end, texts: part.texts });
    } else {
      this.codes.fill(this.place(null), start, end);
    }
  }

  /** @param {any} word */
  place(word) {
    const key = typeof word === "string" ? word : `\0${JSON.stringify(word)}`;
    let place = this.places.get(key);
    if (place === undefined) {
      place = this.words.length;
      this.places.set(key, place);
      this.words.push(word);
    }
    return place;
  }
}

/** Columns of rows that may grow. */
export class Episodes {
  /**
   * @param {Source} source
   * @param {string} home the address of the run
   * @param {string} folder "episodes" or "sums"
   */
  constructor(source, home, folder) {
    this.source = source;
    this.home = home;
    this.folder = folder;
    this.count = 0;
    this.order = "";
    /** @type {Map<string, LongColumn>} */
    this.columns = new Map();
    /** @type {Promise<unknown>} */
    this.updating = Promise.resolve();
  }

  /**
   * Read the episodes of a run; the same object for the same run.
   * @param {Source} source @param {string} key @param {"episodes" | "sums"} [folder]
   */
  static async open(source, key, folder = "episodes") {
    const home = `data/run/${key}`;
    const run = await source.json(`${home}/run.json`);
    const name = `${home}/${folder}`;
    let found = OPENED.get(name);
    if (!found) OPENED.set(name, (found = new Episodes(source, home, folder)));
    await found.update(run.rows);
    return found;
  }

  /** Read the rows that are not here yet. @param {{order: string, count: number, parts: [number, number][]}} rows */
  update(rows) {
    this.updating = this.updating.catch(() => undefined).then(() => this.load(rows));
    return this.updating;
  }

  /** @param {{order: string, count: number, parts: [number, number][]}} rows */
  async load(rows) {
    if (rows.order !== this.order || rows.count < this.count) {
      this.count = 0;
      this.order = rows.order;
      this.columns = new Map();
    }
    if (rows.count === this.count) return;
    // On a server, ask for the new rows alone; files of a bundle have fixed ranges, and are all read at once.
    const ranges = this.count ? [[this.count, rows.count]] : rows.parts;
    const tables = await Promise.all(
      ranges.map(([start, end]) => this.source.table(`${this.home}/${this.folder}/${start}-${end}.cols`, rows.order)),
    );
    for (const table of tables) this.append(table);
  }

  /** @param {Table} table */
  append(table) {
    const start = this.count;
    for (const name of table.columns.keys()) {
      if (!this.columns.has(name)) {
        const added = new LongColumn(name);
        if (start) added.append(undefined, 0, start);
        this.columns.set(name, added);
      }
    }
    for (const [name, column] of this.columns) column.append(table.columns.get(name), start, table.rows);
    this.count += table.rows;
  }

  /** @param {string} name */
  column(name) {
    return this.columns.get(name);
  }

  /** @param {number} row @param {string} name @returns {any} */
  get(row, name) {
    return this.columns.get(name)?.get(row) ?? null;
  }

  /** Return the row of the episode with this number in the ledger, -1 if it has not ended. @param {number} number */
  rowOf(number) {
    const values = this.columns.get("number")?.values;
    return values ? values.subarray(0, this.count).indexOf(number) : -1;
  }
}

/** @type {Map<string, Episodes>} */
const OPENED = new Map();

/**
 * Return an array with room for `size` values; it doubles, so that appending is cheap.
 * @template {Float64Array | Uint32Array} A
 * @param {A} array @param {number} size @param {new (size: number) => A} Type @returns {A}
 */
function grown(array, size, Type) {
  if (array.length >= size) return array;
  const larger = new Type(array.length ? Math.max(size, 2 * array.length) : size);
  larger.set(/** @type {any} */ (array));
  return larger;
}
