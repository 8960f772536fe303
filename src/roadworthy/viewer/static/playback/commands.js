// Buttons that copy the link to what is shown, and commands for a terminal.

import { h } from "../dom.js";

/** Return a word for a POSIX shell. @param {string} word */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`;
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
 * @param {string} name @param {() => string} text
 */
export function copyButton(name, text) {
  const told = h("span", { class: "copied", role: "status" });
  const button = h("button", { type: "button", title: "Copy", onclick: async () => {
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
