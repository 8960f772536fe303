// An episode: what is known about it.

import { address, append, h } from "../dom.js";
import { Episodes } from "../episodes.js";
import { columnName } from "../words.js";

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  const [, key, number] = state.path;
  const episodes = await Episodes.open(source, key);
  const row = episodes.rowOf(Number(number));
  if (row < 0) throw new Error(`the run has no ended episode number ${number}`);
  append(root, h("h1", null, episodes.get(row, "episode_id")), h("p", null, h("a", { href: address(["run", key]) }, "The run")),
    h("table", null, h("tbody", null, [...episodes.columns.keys()].map((name) =>
      h("tr", null, h("th", { scope: "row" }, columnName(name)), h("td", null, JSON.stringify(episodes.get(row, name))))))));
}
