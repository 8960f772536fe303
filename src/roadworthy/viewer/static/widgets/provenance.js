// Where a run comes from: its settings and its origin, folded.

import { h } from "../dom.js";
import { runCommands, WHERE_FROM } from "../playback/commands.js";
import { moment, NONE } from "../words.js";

/** @param {any} run @param {import("../source.js").Source} source */
export function provenance(run, source) {
  const { header } = run;
  const session = (header.sessions ?? []).at(-1) ?? {};
  const log = header.import;
  const facts = [
    ["folder", run.command_path],
    ["imported from", log && [log.file, log.format && `format ${log.format}`].filter(Boolean).join(", ")],
    ["log, sha256", log?.sha256],
    ...Object.entries(log?.facts ?? {}).map(([name, value]) => [`of the log: ${name}`, value]),
    ["policy", run.policy_spec ?? run.policy],
    ["checkpoint", header.checkpoint?.path],
    ["checkpoint, sha256", header.checkpoint_hash],
    [log ? "imported" : "started", moment(run.created)],
    ["ended", log ? null : moment(run.ended)],
    [
      "code",
      !log && session.revision?.commit
        ? `${session.revision.commit}${session.revision.is_dirty ? ", with uncommitted changes" : ""}`
        : null,
    ],
    ["machine", !log && [session.host, session.system, session.processor].filter(Boolean).join(", ")],
    ["ledger", header.ledger_hash],
    ["settings, hash", header.config_hash],
  ].filter(([, value]) => value && value !== NONE);
  const settings = leaves(header.config ?? {});
  return h(
    "section",
    { class: "provenance", "aria-label": "Origin" },
    h("h2", null, "Settings and origin"),
    h("details", null, h("summary", null, "Where it comes from"), table(facts)),
    h("details", null, h("summary", null, `Settings (${settings.length})`), table(settings)),
    h(
      "details",
      null,
      h("summary", null, "Commands"),
      runCommands(run).map((line) => h("pre", null, line)),
      source.isLive ? null : h("p", { class: "note" }, WHERE_FROM),
      log ? h("p", { class: "note" }, "The episodes ran in another tool, so they can't be run, drawn or scored again here.") : null,
    ),
  );
}

/** @param {any[][]} rows */
function table(rows) {
  return h(
    "div",
    { class: "scroll", tabindex: 0 },
    h(
      "table",
      { class: "origin" },
      h(
        "tbody",
        null,
        rows.map(([name, value]) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, name),
            h("td", { class: "key" }, typeof value === "string" ? value : JSON.stringify(value)),
          ),
        ),
      ),
    ),
  );
}

/**
 * Settings with dotted keys.
 * @param {Record<string, any>} values
 * @param {string} [prefix]
 * @returns {[string, any][]}
 */
function leaves(values, prefix = "") {
  return Object.entries(values).flatMap(([name, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length
      ? leaves(value, `${prefix}${name}.`)
      : [[`${prefix}${name}`, value]],
  );
}
