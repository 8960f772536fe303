// Decode tables: gzip of a header and typed columns, see columns.py.

const MAGIC = "RWCOLS1\0";
const TYPES = {
  u1: Uint8Array,
  i1: Int8Array,
  u2: Uint16Array,
  i2: Int16Array,
  u4: Uint32Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};

/**
 * @typedef {Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | Float32Array | Float64Array} Numbers
 */

/**
 * Numbers (`values`), words (`codes` are places in `values`), or texts.
 * @typedef {{kind: "number", values: Numbers, shape: number[] | null}
 *   | {kind: "word", codes: Uint8Array | Uint16Array | Uint32Array, values: any[]}
 *   | {kind: "text", texts: Texts}} Column
 */

/** @typedef {{rows: number, header: Record<string, any>, columns: Map<string, Column>}} Table */

/** Texts that are decoded when they are needed. */
export class Texts {
  /** @param {Uint32Array} offsets @param {Uint8Array} bytes */
  constructor(offsets, bytes) {
    this.offsets = offsets;
    this.bytes = bytes;
  }

  /** @param {number} row */
  get(row) {
    return DECODER.decode(this.bytes.subarray(this.offsets[row], this.offsets[row + 1]));
  }
}

const DECODER = new TextDecoder();

/** @param {ArrayBuffer} block @returns {Promise<Table>} */
export async function decode(block) {
  const plain = isGzip(block) ? await unzipped(block) : block;
  const bytes = new Uint8Array(plain);
  if (bytes.length < 12 || DECODER.decode(bytes.subarray(0, 8)) !== MAGIC)
    throw new Error("this is not a table of Roadworthy");
  const length = new DataView(plain).getUint32(8, true);
  const header = JSON.parse(DECODER.decode(bytes.subarray(12, 12 + length)));
  const start = Math.ceil((12 + length) / 8) * 8;
  /** @type {Map<string, Column>} */
  const columns = new Map();
  for (const entry of header.columns) columns.set(entry.name, column(entry, plain, bytes, start, header.rows));
  return { rows: header.rows, header, columns };
}

/**
 * Return the numbers of a column of a table; an error names the column that is missing.
 * @param {Table} table @param {string} name @returns {Numbers}
 */
export function numbers(table, name) {
  const found = table.columns.get(name);
  if (found?.kind !== "number") throw new Error(`the table has no numbers ${name}`);
  return found.values;
}

/**
 * @param {any} entry @param {ArrayBuffer} plain @param {Uint8Array} bytes @param {number} start @param {number} rows
 * @returns {Column}
 */
function column(entry, plain, bytes, start, rows) {
  const at = start + entry.offset;
  if (entry.kind === "text") {
    const offsets = new Uint32Array(plain, at, rows + 1);
    return {
      kind: "text",
      texts: new Texts(offsets, bytes.subarray(start + entry.text_offset, start + entry.text_offset + entry.bytes)),
    };
  }
  const Type = TYPES[/** @type {keyof typeof TYPES} */ (entry.dtype)];
  if (entry.kind === "word")
    return { kind: "word", codes: /** @type {any} */ (new Type(plain, at, rows)), values: entry.values };
  const stored = new Type(plain, at, entry.length);
  const values = entry.scale ? Float64Array.from(stored, (value) => value * entry.scale) : stored;
  return { kind: "number", values, shape: entry.shape ?? null };
}

/** @param {ArrayBuffer} block */
function isGzip(block) {
  const first = new Uint8Array(block, 0, Math.min(2, block.byteLength));
  return first[0] === 0x1f && first[1] === 0x8b;
}

/** @param {ArrayBuffer} block */
async function unzipped(block) {
  return new Response(new Blob([block]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
