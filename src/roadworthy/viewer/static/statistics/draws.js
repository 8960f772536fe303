// The random draws of NumPy's default generator (PCG64 with SeedSequence), so that bootstrap intervals here are those of
// Python to rounding. Numbers of 128 bits are six limbs of 24 bits, lowest first, so that products fit into doubles.

const LIMB = 2 ** 24;
const PART = 1 / LIMB;
const [M0, M1, M2, M3, M4, M5] = limbs([0x9fccf645, 0x4385df64, 0x1fc65da4, 0x2360ed05]);

/** A generator, seeded like `numpy.random.default_rng([...words])`. */
export class Generator {
  /** @param {number[]} words of 32 bits */
  constructor(words) {
    const seed = seedState(words, 8);
    // Two numbers of 128 bits, each given by its high and its low half of 64 bits, low word first.
    const start = limbs([seed[2], seed[3], seed[0], seed[1]]);
    const [a, b, c, d] = [seed[6], seed[7], seed[4], seed[5]];
    this.increment = limbs([(a << 1) | 1, (b << 1) | (a >>> 31), (c << 1) | (b >>> 31), (d << 1) | (c >>> 31)]);
    this.state = [0, 0, 0, 0, 0, 0];
    this.spare = -1;
    this.step();
    let carry = 0;
    this.state = this.state.map((limb, k) => {
      const sum = limb + start[k] + carry;
      carry = Math.floor(sum * PART);
      return k === 5 ? sum % 256 : sum % LIMB;
    });
    this.step();
  }

  step() {
    const s = this.state;
    const [i0, i1, i2, i3, i4, i5] = this.increment;
    const [s0, s1, s2, s3, s4, s5] = s;
    let sum = s0 * M0 + i0;
    let carry = Math.floor(sum * PART);
    s[0] = sum - carry * LIMB;
    sum = s0 * M1 + s1 * M0 + i1 + carry;
    carry = Math.floor(sum * PART);
    s[1] = sum - carry * LIMB;
    sum = s0 * M2 + s1 * M1 + s2 * M0 + i2 + carry;
    carry = Math.floor(sum * PART);
    s[2] = sum - carry * LIMB;
    sum = s0 * M3 + s1 * M2 + s2 * M1 + s3 * M0 + i3 + carry;
    carry = Math.floor(sum * PART);
    s[3] = sum - carry * LIMB;
    sum = s0 * M4 + s1 * M3 + s2 * M2 + s3 * M1 + s4 * M0 + i4 + carry;
    carry = Math.floor(sum * PART);
    s[4] = sum - carry * LIMB;
    s[5] = (s0 * M5 + s1 * M4 + s2 * M3 + s3 * M2 + s4 * M1 + s5 * M0 + i5 + carry) % 256;
  }

  /** The next 32 random bits. */
  next32() {
    if (this.spare >= 0) {
      const found = this.spare;
      this.spare = -1;
      return found;
    }
    this.step();
    const [s0, s1, s2, s3, s4, s5] = this.state;
    let low = (s0 | (s1 << 24)) ^ ((s2 >>> 16) | (s3 << 8));
    let high = ((s1 >>> 8) | (s2 << 16)) ^ (s4 | (s5 << 24));
    let turn = s5 >>> 2;
    if (turn >= 32) {
      [low, high] = [high, low];
      turn -= 32;
    }
    if (turn > 0) [low, high] = [(low >>> turn) | (high << (32 - turn)), (high >>> turn) | (low << (32 - turn))];
    this.spare = high >>> 0;
    return low >>> 0;
  }

  /** A whole number from 0 to `count` - 1, by Lemire's method. @param {number} count */
  below(count) {
    if (count === 1) return 0;
    let product = this.next32() * count;
    let rest = product % 4294967296;
    if (rest < count) {
      const least = (4294967296 - count) % count;
      while (rest < least) {
        product = this.next32() * count;
        rest = product % 4294967296;
      }
    }
    return Math.floor(product / 4294967296);
  }
}

/** @param {number[]} words four of 32 bits, lowest first @returns {number[]} */
function limbs([a, b, c, d]) {
  return [
    a & 0xffffff,
    (a >>> 24) | ((b & 0xffff) << 8),
    (b >>> 16) | ((c & 0xff) << 16),
    c >>> 8,
    d & 0xffffff,
    d >>> 24,
  ];
}

/** NumPy's SeedSequence with a pool of four words. @param {number[]} words @param {number} count */
function seedState(words, count) {
  let constant = 0x43b0d7e5;
  const hashed = (/** @type {number} */ value) => {
    value = (value ^ constant) >>> 0;
    constant = Math.imul(constant, 0x931e8875) >>> 0;
    value = Math.imul(value, constant) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const mixed = (/** @type {number} */ x, /** @type {number} */ y) => {
    const value = (Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y)) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const pool = [0, 1, 2, 3].map((k) => hashed(words[k] ?? 0));
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
  }
  let second = 0x8b51f9dd;
  const state = new Uint32Array(count);
  for (let k = 0; k < count; k++) {
    let value = (pool[k % 4] ^ second) >>> 0;
    second = Math.imul(second, 0x58f38ded) >>> 0;
    value = Math.imul(value, second) >>> 0;
    state[k] = (value ^ (value >>> 16)) >>> 0;
  }
  return state;
}
