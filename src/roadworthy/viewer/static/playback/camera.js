// Which part of the map a picture shows, and at what scale.

export const LEAST_ZOOM = -12; // quarters of octaves: 2 ** (zoom / 4) pixels per meter
export const MOST_ZOOM = 28;

/** North is up. The scale has steps, so that pictures of the map are drawn pixel by pixel. */
export class Camera {
  constructor() {
    this.x = 0; // m, of the middle
    this.y = 0;
    this.zoom = 10;
    this.width = 1; // CSS pixels
    this.height = 1;
  }

  /** Pixels per meter. */
  get scale() {
    return 2 ** (this.zoom / 4);
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toScreen(x, y) {
    return [0.5 * this.width + (x - this.x) * this.scale, 0.5 * this.height - (y - this.y) * this.scale];
  }

  /** @param {number} px @param {number} py @returns {[number, number]} */
  toMap(px, py) {
    return [this.x + (px - 0.5 * this.width) / this.scale, this.y - (py - 0.5 * this.height) / this.scale];
  }

  /** Zoom, with a place of the picture kept where it is. @param {number} zoom @param {number} px @param {number} py */
  zoomAt(zoom, px, py) {
    const [x, y] = this.toMap(px, py);
    this.zoom = Math.min(Math.max(zoom, LEAST_ZOOM), MOST_ZOOM);
    const [nowX, nowY] = this.toMap(px, py);
    this.x += x - nowX;
    this.y += y - nowY;
  }

  /** Show a rectangle of the map. @param {[number, number, number, number]} bounds left, bottom, right, top */
  fit([left, bottom, right, top]) {
    this.x = 0.5 * (left + right);
    this.y = 0.5 * (bottom + top);
    const scale = Math.min(this.width / (right - left + 10), this.height / (top - bottom + 10));
    this.zoom = Math.min(Math.max(Math.floor(4 * Math.log2(scale)), LEAST_ZOOM), MOST_ZOOM);
  }
}
