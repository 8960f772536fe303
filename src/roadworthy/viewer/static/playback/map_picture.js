// The map from above, painted once in tiles and reused while the camera moves.

import { numbers } from "../columns.js";

/** @typedef {import("../columns.js").Table} Table */
/** @typedef {import("./palette.js").Palette} Palette */
/** @typedef {{kind: string, type: number, path: Path2D, box: [number, number, number, number], closed: boolean, points: Float64Array}} Shape */

const TILE = 512; // pixels
const MOST_TILES = 96;
const UNKNOWN_LANE_M = 3.6;
const BROKEN = new Set([1, 4, 5, 8]);
const YELLOW = new Set([4, 5, 6, 7, 8]);
const DOUBLE = new Set([3, 5, 7, 8]);
const MEDIAN = 2;

export class MapPicture {
  /** @param {Table} table @param {Palette} palette */
  constructor(table, palette) {
    this.palette = palette;
    this.shapes = shapesOf(table);
    this.widths = table.columns.has("lane_widths") ? numbers(table, "lane_widths") : [];
    const lines = numbers(table, "stop_lines");
    this.stopLines = new Path2D();
    for (let k = 0; k + 3 < lines.length; k += 4) {
      this.stopLines.moveTo(lines[k], lines[k + 1]);
      this.stopLines.lineTo(lines[k + 2], lines[k + 3]);
    }
    this.road = new Path2D();
    const loops = this.shapes.filter((shape) => shape.kind === "road_edge" && shape.closed);
    for (const loop of loops) this.road.addPath(loop.path);
    this.hasLoops = loops.some((loop) => area(loop.points) > 0);
    /** @type {Map<string, HTMLCanvasElement>} */
    this.tiles = new Map();
    this.painted = 0;
  }

  /** The rectangle of the map: left, bottom, right, top. @returns {[number, number, number, number]} */
  get bounds() {
    return this.shapes.reduce((sum, { box }) => [Math.min(sum[0], box[0]), Math.min(sum[1], box[1]), Math.max(sum[2], box[2]), Math.max(sum[3], box[3])],
      /** @type {[number, number, number, number]} */ ([Infinity, Infinity, -Infinity, -Infinity]));
  }

  /** @param {Palette} palette */
  recolor(palette) {
    this.palette = palette;
    this.tiles.clear();
  }

  /**
   * Draw what the camera shows. `ratio` is the number of device pixels of a CSS pixel.
   * @param {CanvasRenderingContext2D} context @param {import("./camera.js").Camera} camera @param {number} ratio
   */
  draw(context, camera, ratio) {
    const scale = camera.scale * ratio;
    const left = Math.round(camera.x * scale - 0.5 * camera.width * ratio); // of the picture, in pixels from the origin of the map
    const top = Math.round(-camera.y * scale - 0.5 * camera.height * ratio);
    const [right, bottom] = [left + camera.width * ratio, top + camera.height * ratio];
    context.setTransform(1, 0, 0, 1, 0, 0);
    for (let row = Math.floor(top / TILE); row * TILE < bottom; row++) {
      for (let column = Math.floor(left / TILE); column * TILE < right; column++) {
        context.drawImage(this.tile(scale, column, row), column * TILE - left, row * TILE - top);
      }
    }
  }

  /** @param {number} scale @param {number} column @param {number} row */
  tile(scale, column, row) {
    const name = `${scale} ${column} ${row}`;
    let found = this.tiles.get(name);
    if (found) {
      this.tiles.delete(name); // the most recently used are last
    } else {
      found = document.createElement("canvas");
      found.width = found.height = TILE;
      this.paint(found, scale, column * TILE, row * TILE);
      this.painted++;
      if (this.tiles.size >= MOST_TILES) this.tiles.delete(/** @type {string} */ (this.tiles.keys().next().value));
    }
    this.tiles.set(name, found);
    return found;
  }

  /** @param {HTMLCanvasElement} canvas @param {number} scale @param {number} left @param {number} top */
  paint(canvas, scale, left, top) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    const colors = this.palette;
    context.fillStyle = colors.land;
    context.fillRect(0, 0, TILE, TILE);
    context.setTransform(scale, 0, 0, -scale, -left, -top);
    context.lineJoin = "round";
    const pixel = 1 / scale;
    const margin = 5;
    const [west, east] = [left / scale - margin, (left + TILE) / scale + margin];
    const [south, north] = [-(top + TILE) / scale - margin, -top / scale + margin];
    const near = this.shapes.filter(({ box }) => box[0] <= east && box[2] >= west && box[1] <= north && box[3] >= south);
    const stroke = (/** @type {Path2D} */ path, /** @type {string} */ color, /** @type {number} */ width) => {
      context.strokeStyle = color;
      context.lineWidth = Math.max(width, pixel);
      context.stroke(path);
    };
    const edges = near.filter(({ kind }) => kind === "road_edge");
    for (const edge of edges) if (edge.closed) stroke(edge.path, colors.sidewalk, 4.4);
    context.fillStyle = colors.driveway;
    for (const { kind, path } of near) if (kind === "driveway") context.fill(path);
    if (this.hasLoops) {
      context.fillStyle = colors.road;
      context.fill(this.road);
    } else {
      for (const { kind, path, type } of near) if (kind === "lane") stroke(path, colors.road, type === 3 ? 1.6 : UNKNOWN_LANE_M + 0.1);
    }
    for (const { path, type } of edges) stroke(path, type === MEDIAN ? colors.median : colors.curb, 0.2);
    if (scale > 1.5) for (const { kind, path } of near) if (kind === "lane") stroke(path, colors["lane-line"], 0.1);
    context.fillStyle = colors.bump;
    for (const { kind, path } of near) if (kind === "speed_bump") context.fill(path);
    for (const shape of near) if (shape.kind === "crosswalk") this.zebra(context, shape);
    for (const { kind, path, type } of near) {
      if (kind !== "road_line") continue;
      context.setLineDash(BROKEN.has(type) ? [3, 9] : []);
      stroke(path, YELLOW.has(type) ? colors["yellow-paint"] : colors.paint, DOUBLE.has(type) ? 0.36 : 0.16);
    }
    context.setLineDash([]);
    stroke(this.stopLines, colors.paint, Math.max(0.45, 1.5 * pixel));
    for (const { kind, points } of near) if (kind === "stop_sign") sign(context, points[0], points[1], Math.max(0.95, 4 * pixel), colors);
  }

  /** Bars along the traffic, across the longest side of a crosswalk. @param {CanvasRenderingContext2D} context @param {Shape} shape */
  zebra(context, { points, path }) {
    let axis = [1, 0];
    let longest = 0;
    for (let k = 0; k < points.length; k += 2) {
      const next = (k + 2) % points.length;
      const [dx, dy] = [points[next] - points[k], points[next + 1] - points[k + 1]];
      if (Math.hypot(dx, dy) > longest) [longest, axis] = [Math.hypot(dx, dy), [dx / Math.hypot(dx, dy), dy / Math.hypot(dx, dy)]];
    }
    const along = [];
    const across = [];
    for (let k = 0; k < points.length; k += 2) {
      along.push(points[k] * axis[0] + points[k + 1] * axis[1]);
      across.push(points[k + 1] * axis[0] - points[k] * axis[1]);
    }
    const [low, high] = [Math.min(...across), Math.max(...across)];
    context.save();
    context.clip(path);
    context.strokeStyle = this.palette.paint;
    context.lineWidth = 0.55;
    context.beginPath();
    for (let at = Math.min(...along) + 0.4; at < Math.max(...along); at += 1.15) {
      for (const side of [low, high]) context[side === low ? "moveTo" : "lineTo"](at * axis[0] - side * axis[1], at * axis[1] + side * axis[0]);
    }
    context.stroke();
    context.restore();
  }
}

/** @param {Table} table @returns {Shape[]} */
function shapesOf(table) {
  const [kinds, types, starts, points] = ["kinds", "types", "starts", "points"].map((name) => numbers(table, name));
  return Array.from({ length: table.rows }, (_, feature) => {
    const kind = table.header.kind_names[kinds[feature]];
    const own = Float64Array.from(points.subarray(2 * starts[feature], 2 * starts[feature + 1]));
    const path = new Path2D();
    /** @type {[number, number, number, number]} */
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let k = 0; k < own.length; k += 2) {
      if (k) path.lineTo(own[k], own[k + 1]);
      else path.moveTo(own[k], own[k + 1]);
      box[0] = Math.min(box[0], own[k]);
      box[1] = Math.min(box[1], own[k + 1]);
      box[2] = Math.max(box[2], own[k]);
      box[3] = Math.max(box[3], own[k + 1]);
    }
    const isArea = ["crosswalk", "speed_bump", "driveway"].includes(kind);
    const isRing = own.length >= 8 && Math.hypot(own[0] - own[own.length - 2], own[1] - own[own.length - 1]) < 0.02;
    if (isArea || isRing) path.closePath();
    return { kind, type: types[feature], path, box, closed: isArea || isRing, points: own };
  });
}

/** @param {Float64Array} ring */
function area(ring) {
  let sum = 0;
  for (let k = 0; k < ring.length; k += 2) {
    const next = (k + 2) % ring.length;
    sum += ring[k] * ring[next + 1] - ring[next] * ring[k + 1];
  }
  return 0.5 * sum;
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} radius @param {Palette} colors */
function sign(context, x, y, radius, colors) {
  for (const [size, color] of /** @type {[number, string][]} */ ([[1, colors.paint], [0.84, colors.sign]])) {
    context.beginPath();
    for (let k = 0; k < 8; k++) context.lineTo(x + size * radius * Math.cos(((k + 0.5) * Math.PI) / 4), y + size * radius * Math.sin(((k + 0.5) * Math.PI) / 4));
    context.fillStyle = color;
    context.fill();
  }
}
