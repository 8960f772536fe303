// The dialog with all keys.

import { h } from "./dom.js";
import { meaning, plainName } from "./words.js";

const KEYS = [
  ["Tab, Shift+Tab", "next and previous control"],
  ["Enter, Space", "follow a link, sort by a column, toggle a choice"],
  ["Arrows, Page Up, Page Down, Home, End", "move in a table of episodes; in a plot, move and size the brush"],
  ["Enter on a row", "open the episode"],
  ["Escape", "clear the brush, close this"],
  ["/", "search"],
  ["?", "this help"],
];

const EXPLAINED = ["score", "passed", "closed_loop_score"];

/** Open the dialog. */
export function openHelp() {
  const found = document.querySelector("dialog");
  if (found) return;
  const dialog = h(
    "dialog",
    { "aria-label": "Keyboard", onclose: () => dialog.remove() },
    h("h2", null, "Keyboard"),
    h(
      "table",
      null,
      h(
        "tbody",
        null,
        KEYS.map(([key, what]) => h("tr", null, h("th", { scope: "row" }, key), h("td", null, what))),
      ),
    ),
    h("h2", null, "Figures"),
    h(
      "dl",
      null,
      EXPLAINED.filter(meaning).flatMap((name) => [h("dt", null, plainName(name)), h("dd", null, `${meaning(name)}.`)]),
    ),
    h("p", { class: "muted" }, "The address holds everything that is shown: copy it to share a view."),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
