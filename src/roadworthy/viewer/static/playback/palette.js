// The colors of the picture, from the style sheet, so that light and dark follow it.

const NAMES = ["land", "sidewalk", "road", "driveway", "curb", "median", "paint", "yellow-paint", "bump", "lane-line", "ego", "coplayer", "replay",
  "reactive", "parked", "cyclist", "pedestrian", "casing", "glass", "housing", "lamp-red", "lamp-amber", "lamp-green", "lamp-dark", "sign",
  "ghost", "goal", "goal-next", "ink", "soft", "page", "good", "middling", "bad"];

/** @typedef {Record<string, string>} Palette */

/** @param {Element} element @returns {Palette} */
export function paletteOf(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Call a function when the colors change; return one that ends this. @param {() => void} changed */
export function watchPalette(changed) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", changed);
  return () => query.removeEventListener("change", changed);
}
