// The page run.

import { h } from "../dom.js";

/** @type {import("../main.js").Show} */
export async function show(root, source, state) {
  root.append(h("h1", null, "run"), h("p", null, state.href, source.home));
}
