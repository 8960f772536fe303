// All runs and trainings: sort, search, filter, group; choose two to compare.

import { address, append, h, replace } from "../dom.js";
import { onLeave } from "../leave.js";
import { statusChip } from "../widgets/chips.js";
import { intervalCell } from "../widgets/interval.js";
import { sortHead } from "../widgets/sort_head.js";
import { NONE, count, duration, many, moment, plainName, shared } from "../words.js";

/** @typedef {any} Summary a run of data/runs.json */

const GROUPS = { "": "no groups", evaluator: "suite", policy: "policy", status: "status" };
const MOST_FIGURES = 4;

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  let data = await source.json("data/runs.json");
  const box = h("div", { class: "runs" });
  const controls = h("div", { class: "controls" });
  append(root, h("h1", null, "Runs"), controls, box);
  drawControls(controls, data, state, draw);
  draw();
  return onLeave(
    source.watch("data/runs.json", (value) => {
      data = value;
      draw();
    }),
  );

  function draw() {
    const focused = focusOf(box);
    const rows = chosen(data.runs, state);
    const figures = mainFigures(rows);
    const names = figures.length ? figures : [];
    replace(
      box,
      rows.length
        ? table(rows, names, state, draw)
        : h(
            "p",
            { class: "muted" },
            data.runs.length
              ? "No run matches."
              : "There are no runs below these folders yet. Evaluate a policy, and they appear here.",
          ),
      h(
        "p",
        { class: "muted", role: "status" },
        `${many(rows.length, "run")}${rows.length === data.runs.length ? "" : ` of ${count(data.runs.length)}`}`,
      ),
      data.trainings.length ? trainings(data.trainings, data.runs) : null,
    );
    if (focused)
      /** @type {HTMLElement | null} */ (box.querySelector(`[data-focus="${CSS.escape(focused)}"]`))?.focus();
  }
}

/** @param {Summary[]} runs @param {import("../state.js").State} state */
function chosen(runs, state) {
  const words = state.get("q").toLowerCase().split(/\s+/).filter(Boolean);
  const status = state.get("status");
  const withReferences = state.get("references") === "yes";
  const found = runs.filter((run) => {
    if (status && run.status !== status) return false;
    if (run.role && !withReferences) return false;
    const text =
      `${run.evaluator} ${run.policy} ${run.policy_spec ?? ""} ${run.path} ${run.status} ${run.revision?.commit ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const sort = state.get("sort", "-created");
  const by = sort.replace(/^-/, "");
  const order = sort.startsWith("-") ? -1 : 1;
  return found
    .map((run) => ({ run, key: sortKey(run, by) }))
    .sort((a, b) => compare(a.key, b.key, order) || compare(a.run.path, b.run.path, 1))
    .map(({ run }) => run);
}

/** @param {Summary} run @param {string} by */
function sortKey(run, by) {
  if (by === "progress") return run.planned_episodes ? run.ended_episodes / run.planned_episodes : null;
  if (by.startsWith("figure."))
    return run.figures.find((/** @type {any} */ figure) => figure.name === by.slice(7))?.value ?? null;
  if (by === "revision") return run.revision?.commit ?? null;
  return run[by] ?? null;
}

/** Missing values come last in both orders. @param {any} a @param {any} b @param {number} order */
function compare(a, b, order) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  return order * (a < b ? -1 : a > b ? 1 : 0);
}

/** The figures for columns: the most important ones that any run has. @param {Summary[]} runs @returns {string[]} */
function mainFigures(runs) {
  const known = new Set(
    runs.flatMap((run) =>
      run.figures
        .filter((/** @type {any} */ figure) => figure.value !== null)
        .map((/** @type {any} */ figure) => figure.name),
    ),
  );
  return shared.headlines.filter((/** @type {string} */ name) => known.has(name)).slice(0, MOST_FIGURES);
}

/**
 * @param {HTMLElement} controls @param {any} data @param {import("../state.js").State} state @param {() => void} draw
 */
function drawControls(controls, data, state, draw) {
  const statuses = [...new Set(data.runs.map((/** @type {Summary} */ run) => run.status))].sort();
  const change = (/** @type {Record<string, string>} */ values) => {
    state.set(values);
    draw();
  };
  const select = (/** @type {string} */ label, /** @type {string} */ name, /** @type {[string, string][]} */ options) =>
    h(
      "label",
      null,
      label,
      h(
        "select",
        { onchange: (/** @type {any} */ event) => change({ [name]: event.target.value }) },
        options.map(([value, text]) => h("option", { value, selected: state.get(name) === value }, text)),
      ),
    );
  replace(
    controls,
    h(
      "label",
      { class: "grow" },
      "Search",
      h("input", {
        type: "search",
        value: state.get("q"),
        "data-search": true,
        oninput: (/** @type {any} */ event) => change({ q: event.target.value }),
      }),
    ),
    select("Status", "status", [
      ["", "all"],
      ...statuses.map((status) => /** @type {[string, string]} */ ([status, status])),
    ]),
    select("Group by", "group", Object.entries(GROUPS)),
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: state.get("references") === "yes",
        onchange: (/** @type {any} */ event) => change({ references: event.target.checked ? "yes" : "" }),
      }),
      "floor and ceiling runs",
    ),
  );
}

/**
 * @param {Summary[]} runs @param {string[]} figures @param {import("../state.js").State} state @param {() => void} draw
 */
function table(runs, figures, state, draw) {
  const sort = (/** @type {string} */ value) => {
    state.set({ sort: value === "-created" ? "" : value });
    draw();
  };
  const head = (/** @type {string} */ by, /** @type {string} */ text, isNumber = false) =>
    sortHead(text, by, state.get("sort", "-created"), sort, isNumber);
  const picked = new Set(state.all("pick"));
  const pick = (/** @type {string} */ key, /** @type {boolean} */ isPicked) => {
    isPicked ? picked.add(key) : picked.delete(key);
    state.set({ pick: [...picked] });
    draw();
  };
  const group = state.get("group");
  const groups = new Map();
  for (const run of runs) {
    const name = group ? String(run[group]) : "";
    groups.set(name, [...(groups.get(name) ?? []), run]);
  }
  const columns = 7 + figures.length;
  const bodies = [...groups].map(([name, members]) =>
    h(
      "tbody",
      null,
      group
        ? h(
            "tr",
            { class: "group" },
            h(
              "th",
              { colspan: columns, scope: "rowgroup" },
              name,
              h("span", { class: "muted" }, ` ${many(members.length, "run")}`),
            ),
          )
        : null,
      members.map((/** @type {Summary} */ run) => row(run, figures, picked, pick)),
    ),
  );
  const [a, b] = picked;
  return h(
    "div",
    null,
    picked.size
      ? h(
          "p",
          { class: "picked", role: "status" },
          picked.size === 2
            ? h("a", { class: "button", href: address(["compare", a, b]) }, "Compare the two chosen runs")
            : `${picked.size} chosen; choose two runs to compare them`,
        )
      : null,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Runs" },
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", null, h("span", { class: "hidden" }, "compare")),
            head("evaluator", "suite"),
            head("policy", "policy"),
            head("status", "status"),
            head("progress", "episodes", true),
            figures.map((name) => head(`figure.${name}`, plainName(name), true)),
            head("created", "started"),
            head("revision", "code"),
          ),
        ),
        bodies,
      ),
    ),
  );
}

/**
 * @param {Summary} run @param {string[]} figures @param {Set<string>} picked
 * @param {(key: string, isPicked: boolean) => void} pick
 */
function row(run, figures, picked, pick) {
  const by = new Map(run.figures.map((/** @type {any} */ figure) => [figure.name, figure]));
  const link =
    run.status === "damaged"
      ? run.evaluator
      : h("a", { href: address(["run", run.key]), "data-focus": `run-${run.key}` }, run.evaluator);
  return h(
    "tr",
    { "data-run": run.key },
    h(
      "td",
      null,
      run.status === "damaged"
        ? null
        : h("input", {
            type: "checkbox",
            checked: picked.has(run.key),
            "data-focus": `pick-${run.key}`,
            "aria-label": `compare ${run.evaluator}, ${run.policy}`,
            onchange: (/** @type {any} */ event) => pick(run.key, event.target.checked),
          }),
    ),
    h("th", { scope: "row" }, link, run.role ? h("span", { class: "chip" }, run.role) : null),
    h(
      "td",
      { class: "wrap", title: run.policy_spec ?? run.path },
      run.policy,
      run.step ? h("div", { class: "note" }, `step ${count(run.step)}`) : null,
    ),
    h("td", null, statusChip(run.status), run.error ? h("div", { class: "note wrap" }, run.error) : null),
    h("td", { class: "number" }, progressCell(run)),
    figures.map((name) => intervalCell(/** @type {any} */ (by.get(name)))),
    h(
      "td",
      { class: "date" },
      run.created
        ? h("time", { datetime: run.created, title: moment(run.created) }, moment(run.created).slice(0, 10))
        : NONE,
      h("div", { class: "note" }, moment(run.created).slice(11, 16), run.eval_seconds ? `, ${duration(run.eval_seconds)}` : ""),
    ),
    h(
      "td",
      { class: "key" },
      run.revision?.commit ? `${run.revision.commit.slice(0, 8)}${run.revision.is_dirty ? "+" : ""}` : NONE,
    ),
  );
}

/** @param {Summary} run */
function progressCell(run) {
  if (run.ended_episodes === undefined) return NONE;
  const failed = run.failed_episodes ? h("div", { class: "note bad" }, `${count(run.failed_episodes)} failed`) : null;
  if (run.ended_episodes === run.planned_episodes) return h("span", null, count(run.ended_episodes), failed);
  const label = `${count(run.ended_episodes)} of ${count(run.planned_episodes)}`;
  return h(
    "span",
    null,
    h("progress", { max: run.planned_episodes || 1, value: run.ended_episodes, "aria-label": label }),
    " ",
    label,
    failed,
  );
}

/** @param {any[]} list @param {Summary[]} runs */
function trainings(list, runs) {
  return h(
    "section",
    { class: "trainings" },
    h("h2", null, "Trainings"),
    h(
      "ul",
      null,
      list.map((training) => {
        const inside = runs.filter((run) => training.runs.includes(run.key)).length;
        return h(
          "li",
          null,
          h("a", { href: address(["training", training.key]) }, training.path),
          h("span", { class: "muted" }, ` ${many(training.updates, "update")}, ${many(inside, "evaluation")}`),
        );
      }),
    ),
  );
}

/** @param {HTMLElement} box */
function focusOf(box) {
  return box.contains(document.activeElement)
    ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus
    : undefined;
}
