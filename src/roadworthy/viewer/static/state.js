// The state of a page, which is its address: `#/page/part?name=value`. Every link restores what it shows.

export class State {
  /** @param {string} hash */
  constructor(hash) {
    const [path, query = ""] = splitOnce(hash.replace(/^#\/?/, ""), "?");
    /** The words of the path, such as ["run", "1f2e3d4c"]. @type {string[]} */
    this.path = path.split("/").filter(Boolean).map(decoded);
    this.query = new URLSearchParams(query);
  }

  /** The name of the page. */
  get page() {
    return this.path[0] ?? "runs";
  }

  /** @param {string} name @param {string} [otherwise] */
  get(name, otherwise = "") {
    return this.query.get(name) ?? otherwise;
  }

  /** @param {string} name @returns {string[]} */
  all(name) {
    return this.query.getAll(name);
  }

  /**
   * Change values in the address without showing the page again; an empty value removes a name. `push` adds an entry to
   * the history, so that Back undoes the change.
   * @param {Record<string, string | string[] | null>} values
   * @param {{push?: boolean}} [options]
   */
  set(values, { push = false } = {}) {
    for (const [name, value] of Object.entries(values)) {
      this.query.delete(name);
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== null && one !== "") this.query.append(name, one);
      }
    }
    history[push ? "pushState" : "replaceState"](null, "", this.href);
    dispatchEvent(new CustomEvent("statechange"));
  }

  /** The address. */
  get href() {
    const query = this.query.toString();
    return `#/${this.path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
  }
}

/** @param {string} text @param {string} mark @returns {[string, string?]} */
function splitOnce(text, mark) {
  const place = text.indexOf(mark);
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
