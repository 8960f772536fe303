// A table of very many rows: only those in view are in the document.

import { address, h, replace } from "../dom.js";
import { columnName, count, digits, many, NONE } from "../words.js";
import { statusChip } from "./chips.js";

/** @typedef {import("../episodes.js").Episodes} Episodes */

const ROW_PX = 34;
const MOST_PX = 12_000_000; // of an element's height; browsers allow little more
const BEYOND = 6; // rows above and below those in view

/**
 * @param {object} options
 * @param {string} options.key the run
 * @param {Episodes} options.episodes
 * @param {import("../state.js").State} options.state
 * @param {(sort: string) => void} options.sort
 */
export function episodeTable({ key, episodes, state, sort }) {
  /** @type {Uint32Array} */
  let rows = new Uint32Array(0);
  /** @type {string[]} */
  let columns = [];
  let order = "";
  let current = 0;
  const head = h("div", { role: "row", class: "grid-row grid-head", "aria-rowindex": 1 });
  const body = h("div", { role: "rowgroup", class: "grid-body" });
  const space = h("div", { class: "grid-space", role: "presentation" }, body);
  const grid = h(
    "div",
    { role: "grid", class: "grid-table", tabindex: 0, "aria-label": "Episodes", onscroll: drawRows, onkeydown: onKey },
    h("div", { role: "rowgroup", class: "grid-top" }, head),
    space,
  );
  const status = h("p", { class: "muted", role: "status" });
  new ResizeObserver(drawRows).observe(grid);
  return { box: h("div", null, status, grid), draw };

  /** @param {Uint32Array} shown @param {string[]} names @param {string} by */
  function draw(shown, names, by) {
    rows = shown;
    columns = names;
    order = by;
    current = Math.min(current, Math.max(rows.length - 1, 0));
    const widths = names.map(widthOf);
    grid.style.setProperty("--columns", widths.map((width) => `minmax(${width}rem, ${width}fr)`).join(" "));
    grid.style.setProperty("--least", `${widths.reduce((sum, width) => sum + width, 0)}rem`);
    grid.style.setProperty("--rows", String(rows.length + 1));
    grid.setAttribute("aria-rowcount", String(rows.length + 1));
    grid.setAttribute("aria-colcount", String(names.length));
    const total = rows.length === episodes.count ? "" : ` of ${count(episodes.count)}`;
    replace(status, `${many(rows.length, "episode")}${total}`);
    replace(head, names.map(headCell));
    space.style.setProperty("height", `${Math.min(rows.length * ROW_PX, MOST_PX)}px`);
    drawRows();
  }

  /** @param {string} name */
  function headCell(name) {
    const isUp = order === name;
    const isDown = order === `-${name}`;
    const isNumber = episodes.column(name)?.kind === "number";
    return h(
      "div",
      {
        role: "columnheader",
        class: isNumber ? "number" : null,
        "aria-sort": isUp ? "ascending" : isDown ? "descending" : "none",
      },
      h(
        "button",
        { type: "button", class: "sort", onclick: () => sort(isUp ? `-${name}` : isDown ? name : name) },
        columnName(name),
        h("span", { "aria-hidden": "true" }, isUp ? " ▲" : isDown ? " ▼" : ""),
      ),
    );
  }

  function drawRows() {
    const inView = Math.ceil(grid.clientHeight / ROW_PX);
    const scale = rows.length * ROW_PX > MOST_PX ? MOST_PX / (rows.length * ROW_PX) : 1;
    const top = Math.floor(grid.scrollTop / (ROW_PX * scale));
    const first = Math.max(0, Math.min(top, rows.length - inView) - BEYOND);
    const last = Math.min(rows.length, top + inView + BEYOND);
    const made = [];
    for (let place = first; place < last; place++) made.push(rowAt(place));
    const isFocused = body.contains(document.activeElement);
    body.style.setProperty(
      "transform",
      `translateY(${scale === 1 ? first * ROW_PX : grid.scrollTop - (top - first) * ROW_PX}px)`,
    );
    replace(body, made);
    if (isFocused) grid.focus({ preventScroll: true });
  }

  /** @param {number} place */
  function rowAt(place) {
    const row = rows[place];
    const link = address(["episode", key, String(episodes.get(row, "number"))]);
    return h(
      "div",
      {
        role: "row",
        class: ["grid-row", place === current && "current", episodes.get(row, "status") === "failed" && "is-failed"],
        "aria-rowindex": place + 2,
        onclick: () => move(place, false),
      },
      columns.map((name) => {
        const value = episodes.get(row, name);
        return h(
          "div",
          {
            role: "gridcell",
            class: episodes.column(name)?.kind === "number" ? "number" : null,
            title: typeof value === "string" ? value : null,
          },
          name === "episode_id" ? h("a", { href: link, tabindex: -1 }, String(value)) : cell(name, value),
        );
      }),
    );
  }

  /** @param {number} place @param {boolean} scrolls */
  function move(place, scrolls) {
    current = Math.max(0, Math.min(place, rows.length - 1));
    if (scrolls) {
      const top = current * ROW_PX;
      const head_px = head.offsetHeight;
      if (top < grid.scrollTop) grid.scrollTop = top;
      else if (top + ROW_PX + head_px > grid.scrollTop + grid.clientHeight)
        grid.scrollTop = top + ROW_PX + head_px - grid.clientHeight;
    }
    drawRows();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.target !== grid) return;
    const page = Math.max(1, Math.floor(grid.clientHeight / ROW_PX) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      const step = steps[/** @type {keyof typeof steps} */ (event.key)];
      move(step === Infinity ? rows.length - 1 : step === -Infinity ? 0 : current + step, true);
    } else if (event.key === "Enter" && rows.length) {
      location.hash = address(["episode", key, String(episodes.get(rows[current], "number"))]);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The least width of a column in rem. @param {string} name */
  function widthOf(name) {
    if (name === "episode_id") return 15;
    if (name === "status") return 8;
    if (name === "tags" || name === "scenario_id" || name === "error") return 9;
    return Math.max(5.5, 0.5 * columnName(name).length + 3.2);
  }
}

/** @param {string} name @param {any} value */
export function cell(name, value) {
  if (value === null || value === undefined) return NONE;
  if (name === "status") return statusChip(value);
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : digits(value);
  if (Array.isArray(value)) return value.join(", ") || NONE;
  if (typeof value === "object") return Object.keys(value).join(", ") || NONE;
  return String(value);
}
