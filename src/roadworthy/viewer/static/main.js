// The frame around pages: finds the page of an address and shows it.

import { address, h, replace } from "./dom.js";
import { Source } from "./source.js";
import { State } from "./state.js";
import { loadWords } from "./words.js";
import { openHelp } from "./help.js";

/**
 * A page: fills `root` and returns, if it needs to, a function that ends what it started.
 * @typedef {(root: HTMLElement, source: Source, state: State) => Promise<void | (() => void)>} Show
 */

/** The module of each page. @type {Record<string, () => Promise<{show: Show}>>} */
const PAGES = {
  runs: () => import("./pages/runs.js"),
  run: () => import("./pages/run.js"),
  episode: () => import("./pages/episode.js"),
  compare: () => import("./pages/compare.js"),
  history: () => import("./pages/history.js"),
  training: () => import("./pages/training.js"),
  sensitivity: () => import("./pages/sensitivity.js"),
  realism: () => import("./pages/realism.js"),
};

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const top = /** @type {HTMLElement} */ (document.getElementById("top"));
const source = new Source();
let shown = 0;
/** @type {void | (() => void)} */
let end;

/** Show the page of the current address. */
async function navigate() {
  const turn = ++shown;
  end?.();
  end = undefined;
  scrollTo(0, 0);
  const state = new State(location.hash);
  const page = PAGES[Object.hasOwn(PAGES, state.page) ? state.page : "runs"];
  drawTop(state);
  const root = h("div", { class: `page page-${state.page}` });
  try {
    const { show } = await page();
    const started = show(root, source, state);
    const waiting = setTimeout(() => turn === shown && replace(main, root), 150);
    const finish = await started;
    clearTimeout(waiting);
    if (turn !== shown) finish?.();
    else end = finish;
  } catch (error) {
    replace(root, failure(error));
  }
  if (turn !== shown) return;
  if (root.parentNode !== main) replace(main, root);
  document.title = `${root.querySelector("h1")?.textContent ?? "Runs"} - Roadworthy`;
  document.documentElement.dataset.ready = state.page;
}

/** @param {unknown} error */
function failure(error) {
  const text = error instanceof Error ? error.message : String(error);
  return h(
    "section",
    { class: "warnings", role: "alert" },
    h("h1", null, "This page can't be shown"),
    h("p", null, text),
    h("p", null, h("a", { href: "#/runs" }, "All runs")),
  );
}

/** @param {State} state */
function drawTop(state) {
  replace(
    top,
    h(
      "a",
      { class: "brand", href: "#/runs" },
      h("img", { src: "app/icon.svg", alt: "", width: 22, height: 22 }),
      "Roadworthy",
    ),
    h(
      "nav",
      { "aria-label": "Pages" },
      h("a", { href: "#/runs", "aria-current": state.page === "runs" ? "page" : null }, "Runs"),
      state.path[1] && !["compare", "history", "training"].includes(state.page)
        ? h("a", { href: address(["run", state.path[1]]), "aria-current": state.page === "run" ? "page" : null }, "Run")
        : null,
      h("a", { href: "#/compare", "aria-current": state.page === "compare" ? "page" : null }, "Compare"),
      h("a", { href: "#/history", "aria-current": state.page === "history" ? "page" : null }, "History"),
    ),
    h("span", { class: "live muted", role: "status" }, source.isLive ? "live" : "static"),
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": "Keyboard and help",
        title: "Keyboard and help (?)",
        onclick: openHelp,
      },
      "?",
    ),
  );
}

addEventListener("hashchange", navigate);
addEventListener("popstate", () => undefined);
addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  const search = /** @type {HTMLElement | null} */ (main.querySelector("[data-search]"));
  if (event.key === "?") openHelp();
  else if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  }
});

try {
  const first = new State(location.hash);
  // Modules and data of the first page travel at the same time.
  PAGES[Object.hasOwn(PAGES, first.page) ? first.page : "runs"]().catch(() => undefined);
  if (first.page === "run" && first.path[1]) source.json(`data/run/${first.path[1]}/run.json`).catch(() => undefined);
  await Promise.all([source.open(), loadWords(source)]);
  await navigate();
} catch (error) {
  replace(main, failure(error));
}
