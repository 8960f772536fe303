// The picture of an episode: the map, lights and agents at a moment, with a camera that is moved by hand or follows an agent.

import { h } from "../dom.js";
import { AgentsPicture, label } from "./agents_picture.js";
import { Camera, LEAST_ZOOM, MOST_ZOOM } from "./camera.js";
import { MapPicture } from "./map_picture.js";
import { paletteOf, watchPalette } from "./palette.js";
import { Poses } from "./poses.js";
import { trialLength } from "./axis.js";

/** @typedef {import("./scene.js").Scene} Scene */

const MOST_RATIO = 2; // device pixels of a CSS pixel
const BARS_M = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

export class Picture {
  /**
   * @param {Scene} scene
   * @param {{changed: () => void, chosen: (agent: number) => void, redraw: () => void}} told
   */
  constructor(scene, told) {
    this.scene = scene;
    this.told = told;
    this.camera = new Camera();
    /** "follow", "map" for all of it, or "free". */
    this.view = "follow";
    this.followed = scene.egos[0] ?? 0;
    this.showsOtherTrials = false;
    this.showsObserved = false;
    this.canvas = h("canvas", { class: "playback-canvas", tabindex: 0, role: "img" });
    this.box = h("div", { class: "playback-picture" }, this.canvas);
    this.colors = paletteOf(document.documentElement);
    this.map = scene.map ? new MapPicture(scene.map, this.colors) : null;
    this.poses = new Poses(scene.main.trace, scene.axis);
    this.agents = new AgentsPicture(this.poses, scene.main.events);
    this.ghostPoses = scene.ghost ? new Poses(scene.ghost.trace, scene.axis) : null;
    this.ghosts = this.ghostPoses && scene.ghost ? new AgentsPicture(this.ghostPoses, scene.ghost.events) : null;
    this.trialPoses = new Poses(scene.main.trace, scene.axis);
    this.trialAgents = new AgentsPicture(this.trialPoses, []);
    this.ratio = 1;
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.place = scene.axis.place(0);
    /** @type {(() => void)[]} */
    this.endings = [watchPalette(() => this.recolor())];
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.box);
    this.endings.push(() => observer.disconnect());
    this.listen();
  }

  /** Whether the picture has a place on the page. */
  get isSized() {
    return this.camera.width > 1;
  }

  end() {
    for (const end of this.endings) end();
  }

  recolor() {
    this.colors = paletteOf(document.documentElement);
    this.map?.recolor(this.colors);
    this.told.redraw();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.box;
    const ratio = Math.min(devicePixelRatio || 1, MOST_RATIO);
    if (!width || !height || (width === this.camera.width && height === this.camera.height && ratio === this.ratio)) return;
    this.camera.width = width;
    this.camera.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    if (this.view === "map") this.fit();
    this.told.redraw();
  }

  /** Show the whole map, or all places where agents were. */
  fit() {
    this.camera.fit(this.map && this.map.shapes.length ? this.map.bounds : motionBounds(this.scene.main.trace));
  }

  /** @param {string} view */
  setView(view) {
    this.view = view;
    if (view === "map") this.fit();
    else if (view === "follow" && this.camera.zoom < 4) this.camera.zoom = 10;
    this.told.changed();
  }

  /** @param {number} by quarters of octaves @param {number} [px] @param {number} [py] */
  zoomBy(by, px = 0.5 * this.camera.width, py = 0.5 * this.camera.height) {
    if (this.view === "map") this.view = "free";
    const zoom = Math.round(this.camera.zoom + by);
    if (this.view === "follow") this.camera.zoom = Math.min(Math.max(zoom, LEAST_ZOOM), MOST_ZOOM);
    else this.camera.zoomAt(zoom, px, py);
    this.told.changed();
  }

  /** Move the camera by pixels of the picture. @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.view = "free";
    this.camera.x -= dx / this.camera.scale;
    this.camera.y += dy / this.camera.scale;
    this.told.changed();
  }

  /** @param {number} position a frame of the axis, maybe between two */
  draw(position) {
    const { scene, camera, context, colors, poses } = this;
    const place = (this.place = scene.axis.place(position));
    const isThere = poses.at(place);
    if (this.view === "follow" && isThere && poses.present[this.followed]) {
      camera.x = poses.x[this.followed];
      camera.y = poses.y[this.followed];
    }
    if (this.map) {
      this.map.draw(context, camera, this.ratio);
    } else {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillStyle = colors.land;
      context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    }
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (isThere) {
      this.agents.drawTrails(context, camera, colors);
      if (this.showsOtherTrials) this.drawOtherTrials(place);
      this.agents.drawGoals(context, camera, colors, this.followed);
      this.agents.drawBodies(context, camera, colors, this.followed);
    }
    scene.lights?.draw(context, camera, colors, place.step);
    if (this.ghosts && this.ghostPoses && scene.parting && position >= scene.parting.position && this.ghostPoses.at(place)) {
      this.ghosts.drawGhosts(context, camera, colors, poses);
    }
    if (isThere) {
      if (this.showsObserved) scene.policy?.draw(context, camera, colors, poses, this.followed);
      this.agents.drawNumbers(context, camera, colors);
      this.agents.drawEvents(context, camera, colors);
    }
    this.drawBar();
  }

  /** The followed agent in the other trials at the same time. @param {import("./axis.js").Place} place */
  drawOtherTrials(place) {
    const { context, camera, colors, trialPoses, trialAgents, followed, scene } = this;
    for (let trial = 0; trial < scene.axis.trials; trial++) {
      if (trial === place.trial || !trialLength(scene.main.trace, trial)) continue;
      trialAgents.drawPath(context, camera, colors.ghost, followed, trial);
      trialPoses.at({ ...place, trial });
      if (!trialPoses.present[followed]) continue;
      context.beginPath();
      trialAgents.outline(context, camera, followed, 1);
      context.strokeStyle = colors.ghost;
      context.lineWidth = 2;
      context.stroke();
      label(context, colors, `trial ${trial + 1}`, ...camera.toScreen(trialPoses.x[followed], trialPoses.y[followed]));
    }
  }

  /** The scale, as a bar of round length. */
  drawBar() {
    const { context, camera, colors } = this;
    const meters = BARS_M.find((length) => length * camera.scale >= 50) ?? 1000;
    const [left, y] = [14, camera.height - 14];
    context.fillStyle = colors.page;
    context.globalAlpha = 0.8;
    context.fillRect(left - 6, y - 20, meters * camera.scale + 12, 28);
    context.globalAlpha = 1;
    context.fillStyle = colors.ink;
    context.fillRect(left, y, meters * camera.scale, 2);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.fillText(`${meters} m`, left, y - 5);
  }

  listen() {
    const { canvas } = this;
    /** @type {Map<number, [number, number]>} */
    const down = new Map();
    let moved = 0;
    let wheel = 0;
    const at = (/** @type {MouseEvent} */ event) => /** @type {[number, number]} */ ([event.offsetX, event.offsetY]);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      wheel += event.deltaY * (event.deltaMode ? 30 : 1);
      const steps = Math.trunc(wheel / 40);
      if (!steps) return;
      wheel -= 40 * steps;
      this.zoomBy(-Math.min(Math.max(steps, -3), 3), ...at(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, at(event));
      if (down.size === 1) moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = down.get(event.pointerId);
      if (!before) return;
      const now = at(event);
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      down.set(event.pointerId, now);
      if (other) this.pinch(before, now, other);
      else {
        moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
        if (moved > 4) this.pan(now[0] - before[0], now[1] - before[1]);
      }
    });
    const ended = (/** @type {PointerEvent} */ event) => {
      if (!down.delete(event.pointerId)) return;
      this.camera.zoom = Math.round(this.camera.zoom);
      if (down.size === 0 && moved <= 4 && event.type === "pointerup") {
        const agent = this.agents.agentAt(this.camera, ...at(event));
        if (agent >= 0) this.told.chosen(agent);
      }
      this.told.changed();
    };
    canvas.addEventListener("pointerup", ended);
    canvas.addEventListener("pointercancel", ended);
  }

  /** @param {[number, number]} before @param {[number, number]} now @param {[number, number]} other */
  pinch(before, now, other) {
    const apart = (/** @type {[number, number]} */ one) => Math.hypot(one[0] - other[0], one[1] - other[1]) || 1;
    if (this.view === "map") this.view = "free";
    const zoom = this.camera.zoom + 4 * Math.log2(apart(now) / apart(before));
    this.camera.zoomAt(zoom, 0.5 * (now[0] + other[0]), 0.5 * (now[1] + other[1]));
    if (this.view === "free") this.pan(0.5 * (now[0] - before[0]), 0.5 * (now[1] - before[1]));
    this.told.changed();
  }
}

/** @param {import("../trace.js").Trace} trace @returns {[number, number, number, number]} */
function motionBounds(trace) {
  /** @type {[number, number, number, number]} */
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (let k = 0; k < trace.x.length; k++) {
    if (!trace.present[k]) continue;
    bounds[0] = Math.min(bounds[0], trace.x[k]);
    bounds[1] = Math.min(bounds[1], trace.y[k]);
    bounds[2] = Math.max(bounds[2], trace.x[k]);
    bounds[3] = Math.max(bounds[3], trace.y[k]);
  }
  return bounds[0] <= bounds[2] ? bounds : [-50, -50, 50, 50];
}
