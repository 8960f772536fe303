// Values along a line of pixels, with round ticks, as in reports.

export class Scale {
  /** @param {number} low @param {number} high @param {number} start pixels @param {number} end pixels */
  constructor(low, high, start, end) {
    this.low = low;
    this.high = high > low ? high : low + 1;
    this.start = start;
    this.end = end;
  }

  /** @param {number} value */
  at(value) {
    const share = (value - this.low) / (this.high - this.low);
    return this.start + (this.end - this.start) * Math.min(Math.max(share, 0), 1);
  }

  /** @param {number} pixel */
  value(pixel) {
    const share = (pixel - this.start) / (this.end - this.start);
    return this.low + (this.high - this.low) * Math.min(Math.max(share, 0), 1);
  }

  /** Round values about `apart` pixels apart. @param {number} [apart] */
  ticks(apart = 60) {
    const rough = (this.high - this.low) / Math.max(Math.abs(this.end - this.start) / apart, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough * 0.999) ?? 10 * power;
    const first = Math.ceil(this.low / step - 1e-9);
    const last = Math.floor(this.high / step + 1e-9);
    return Array.from({ length: Math.max(last - first + 1, 0) }, (_, k) => +((first + k) * step).toPrecision(12));
  }
}

/**
 * The range of numbers that are known.
 * @param {Float64Array} values
 * @param {number} count
 * @returns {[number, number] | null}
 */
export function extent(values, count) {
  let low = Infinity;
  let high = -Infinity;
  for (let row = 0; row < count; row++) {
    const value = values[row];
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/** A short label of a tick. @param {number} value */
export function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return String(+value.toPrecision(6));
}
