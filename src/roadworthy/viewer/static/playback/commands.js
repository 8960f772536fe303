// Buttons that copy the link to what is shown, and commands for a terminal.

import { h } from "../dom.js";

/** Return a word for a POSIX shell. @param {string} word */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Said of commands in a bundle, which does not know where the runs are. */
export const WHERE_FROM = "The path begins at the folder that this bundle was made from: run the command in it, or put its place in front.";

/** Return commands for a closer look at a run; a log of another tool holds nothing to run or draw again. @param {any} run */
export function runCommands(run) {
  const verbs = run.is_driving ? ["report", "render --worst 3", "audit", "rescore"] : ["report"];
  return verbs.map((words) => {
    const [verb, ...options] = words.split(" ");
    return ["roadworthy", verb, quoted(run.command_path), ...options].join(" ");
  });
}

/** @param {string} path @param {string} id */
export function replayCommand(path, id) {
  return `roadworthy replay ${quoted(path)} ${quoted(id)}`;
}

/** @param {string} path @param {string} id */
export function renderCommand(path, id) {
  return `roadworthy render ${quoted(path)} --episode ${quoted(id)} --view ego,bev`;
}

/**
 * A button that copies a text; where the browser refuses, the text is shown to be copied by hand.
 * @param {string} name @param {() => string} text @param {string} [title]
 */
export function copyButton(name, text, title = "Copy") {
  const told = h("span", { class: "copied", role: "status" });
  const button = h("button", { type: "button", title, onclick: async () => {
    const found = text();
    try {
      await navigator.clipboard.writeText(found);
      told.textContent = "copied";
      setTimeout(() => (told.textContent = ""), 1600);
    } catch {
      const field = h("input", { type: "text", readonly: true, value: found, "aria-label": name });
      told.replaceChildren(field);
      field.select();
    }
  } }, name);
  return h("span", { class: "copy" }, button, told);
}
