// Videos and pictures of an episode: one video per camera or view, started and moved together.

import { h } from "../dom.js";

const VIDEO = /\.(mp4|webm)$/i;
const PICTURE = /\.(png|jpe?g|gif)$/i;
const APART_S = 0.15;

/**
 * @param {import("../source.js").Source} source @param {string} key
 * @param {Record<string, string>} artifacts path by name @param {Record<string, string>} errors
 * @param {{steps: number | null, isDriving: boolean}} episode
 */
export function videos(source, key, artifacts, errors, { steps, isDriving }) {
  const entries = Object.entries(artifacts ?? {});
  const films = entries.filter(([, path]) => VIDEO.test(path));
  const pictures = entries.filter(([, path]) => PICTURE.test(path));
  const failed = Object.entries(errors ?? {});
  if (!films.length && !pictures.length && !failed.length) return null;
  const url = (/** @type {string} */ path) => source.fileUrl(key, path);
  /** @type {HTMLVideoElement[]} */
  const players = [];
  const boxes = films.map(([name, path]) => {
    const time = h("span", { class: "muted" });
    const video = h("video", { controls: true, preload: "metadata", src: url(path), playsinline: true, "aria-label": `Video of ${name}`,
      onloadedmetadata: () => {
        time.textContent = `0 to ${video.duration.toFixed(1)} s: from the reset${steps === null ? "" : ` to the state after step ${steps}`}${isDriving ? "" : ", one episode"}`;
      } });
    video.muted = true;
    players.push(video);
    return h("figure", { class: "film", "data-camera": name }, h("figcaption", null, h("b", null, name.replace(/^video_/, "")), " ", time), video);
  });
  const together = players.length > 1 ? h("div", { class: "controls" },
    h("button", { type: "button", onclick: () => players.forEach((video) => void video.play()) }, "Play all"),
    h("button", { type: "button", onclick: () => players.forEach((video) => video.pause()) }, "Pause all"),
    h("button", { type: "button", onclick: () => players.forEach((video) => (video.currentTime = 0)) }, "All to the start")) : null;
  for (const video of players) video.addEventListener("seeked", () => {
    for (const other of players) if (other !== video && Math.abs(other.currentTime - video.currentTime) > APART_S) other.currentTime = Math.min(video.currentTime, other.duration || 0);
  });
  return h("section", { "aria-label": "Videos" }, h("h2", null, films.length ? "Videos" : "Pictures"), together, h("div", { class: "films" }, boxes),
    pictures.map(([name, path]) => h("figure", { class: "film" }, h("figcaption", null, h("a", { href: url(path) }, name)), h("img", { src: url(path), alt: name, loading: "lazy" }))),
    failed.map(([name, error]) => h("p", { class: "bad" }, `${name} could not be made: ${error}`)));
}
