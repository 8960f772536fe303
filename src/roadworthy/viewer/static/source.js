// Where data come from: relative addresses, from the server or from the files of a bundle.

import { decode } from "./columns.js";

const FRESH_MS = 500; // an answer is not asked for again so soon

/** A request that failed: `status` is that of the answer, 0 if there was none. */
export class SourceError extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export class Source {
  /** @param {string} [home] the address of the folder that holds `data` */
  constructor(home = "") {
    this.home = home;
    /** @type {{version: number, is_live: boolean, made_by: string, folders: string[], records?: Record<string, string>}} */
    this.about = { version: 1, is_live: false, made_by: "", folders: [] };
    /** The last answer for each JSON address. @type {Map<string, {etag: string | null, value: any, time: number}>} */
    this.answers = new Map();
    /** @type {Map<string, Promise<import("./columns.js").Table>>} */
    this.tables = new Map();
  }

  /** Read what made the site. */
  async open() {
    this.about = await this.json("data/site.json");
    return this;
  }

  /** Whether records may change while the page is open. */
  get isLive() {
    return this.about.is_live;
  }

  /**
   * Return the value at an address. On a live server, an unchanged value is the same object and travels once.
   * @param {string} path
   * @returns {Promise<any>}
   */
  async json(path) {
    const known = this.answers.get(path);
    if (known && (!this.isLive || Date.now() - known.time < FRESH_MS)) return known.value;
    const headers = known?.etag ? { "If-None-Match": known.etag } : undefined;
    const answer = await this.request(path, { headers, cache: known?.etag ? "no-store" : "default" });
    if (answer.status === 304 && known) {
      await answer.arrayBuffer();
      known.time = Date.now();
      return known.value;
    }
    const value = await answer.json();
    this.answers.set(path, { etag: answer.headers.get("etag"), value, time: Date.now() });
    return value;
  }

  /**
   * Return a table at an address. It never changes, except that `order` says in which order its rows are.
   * @param {string} path
   * @param {string} [order]
   * @returns {Promise<import("./columns.js").Table>}
   */
  table(path, order = "") {
    const name = `${path} ${order}`;
    const known = this.tables.get(name);
    if (known) return known;
    const loading = this.bytes(path).then(decode);
    this.tables.set(name, loading);
    loading.catch(() => this.tables.delete(name));
    return loading;
  }

  /**
   * Return the motion of an episode.
   * @param {string} key the run
   * @param {number} number the episode's row in the ledger
   */
  async trace(key, number) {
    const { readTrace } = await import("./trace.js"); // with its decompressor, which other pages don't need
    return readTrace(await this.bytes(await this.tracePath(key, number)));
  }

  /**
   * The address of an episode's motion.
   * @param {string} key
   * @param {number} number
   */
  async tracePath(key, number) {
    const folder = this.about.records?.[key];
    if (folder === undefined) return `data/run/${key}/trace/${number}.trace`;
    const [{ Episodes }, { safeName }] = await Promise.all([import("./episodes.js"), import("./safe_name.js")]);
    const episodes = await Episodes.open(this, key);
    const id = episodes.get(episodes.rowOf(number), "episode_id");
    return `${folder}/traces/${await safeName(String(id))}.trace`;
  }

  /**
   * Return the address of a video or picture of a run, for an element.
   * @param {string} key
   * @param {string} path
   */
  fileUrl(key, path) {
    const folder = this.about.records?.[key];
    return this.url(folder === undefined ? `data/run/${key}/file/${path}` : `${folder}/${path}`);
  }

  /** @param {string} path @returns {Promise<ArrayBuffer>} */
  async bytes(path) {
    return (await this.request(path)).arrayBuffer();
  }

  /** Return the address of a file, such as a video, for an element. @param {string} path */
  url(path) {
    return this.home + path.split("/").map(encodeURIComponent).join("/");
  }

  /**
   * Call a function when the value at an address changes, every few seconds while the page is visible. Return a function
   * that ends this. On a site that is not live, it is never called.
   * @param {string} path
   * @param {(value: any) => void | Promise<void>} changed
   * @param {number} [seconds]
   */
  watch(path, changed, seconds = 1.5) {
    let ended = !this.isLive;
    let known = this.answers.get(path)?.value;
    const look = async () => {
      if (ended) return;
      if (!document.hidden) {
        try {
          const value = await this.json(path);
          if (!ended && value !== known) {
            known = value;
            await changed(value);
          }
          document.documentElement.removeAttribute("data-offline");
        } catch (error) {
          if (error instanceof SourceError && error.status === 0)
            document.documentElement.setAttribute("data-offline", "");
        }
      }
      setTimeout(look, 1000 * seconds);
    };
    if (!ended) setTimeout(look, 1000 * seconds);
    return () => {
      ended = true;
    };
  }

  /** @param {string} path @param {RequestInit} [options] */
  async request(path, options) {
    let answer;
    try {
      answer = await fetch(this.url(path), { credentials: "same-origin", ...options });
    } catch {
      throw new SourceError("the server does not answer; is it still running?", 0);
    }
    if (!answer.ok && answer.status !== 304) {
      const text = answer.status === 404 ? `${path}: there is no such file` : (await answer.text()).slice(0, 500);
      throw new SourceError(text.trim() || `${path}: ${answer.status}`, answer.status);
    }
    return answer;
  }
}
