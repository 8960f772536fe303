// The figures of selected episodes: sums over clusters here, slow intervals in a worker.

import { Episodes } from "./episodes.js";
import { sumsOf } from "./statistics/clusters.js";
import { figureOf, isSlow } from "./statistics/figures.js";

/** @typedef {import("./words.js").Figure} Figure */
/** @typedef {import("./statistics/figures.js").Metric} Metric */

export class SelectionFigures {
  /**
   * @param {import("./source.js").Source} source
   * @param {string} key the run
   * @param {Episodes} episodes
   */
  constructor(source, key, episodes) {
    this.source = source;
    this.key = key;
    this.episodes = episodes;
    /** @type {Metric[]} */
    this.metrics = [];
    /** @type {Episodes | null} */
    this.sums = null;
    this.turn = 0;
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {{count: number, codes: Uint32Array, clusters: number} | null} */
    this.clusters = null;
  }

  /** Read the sums of episodes that are not here yet. @param {any} run run.json */
  async update(run) {
    const known = new Map((run.metrics.figures ?? []).map((/** @type {any} */ figure) => [figure.name, figure]));
    const trials = this.episodes.column("trials")?.values ?? [];
    const isOneTrial = trials.every((count) => !(count > 1));
    // A figure that another version computed would differ from what is computed here.
    this.metrics = run.sums.filter((/** @type {any} */ metric) => (known.get(metric.name)?.version ?? metric.version) === metric.version)
      .map((/** @type {any} */ metric) => ({ ...metric, per: known.get(metric.name)?.per ?? (isOneTrial && metric.per === "trial" ? "agent" : metric.per) }));
    this.sums = await Episodes.open(this.source, this.key, "sums");
    await this.sums.update(run.rows);
  }

  /**
   * Call `found` with the figures of some episodes, again when slow intervals are there.
   * @param {Uint32Array} rows
   * @param {(figures: Figure[], isComplete: boolean) => void} found
   */
  compute(rows, found) {
    const turn = ++this.turn;
    this.worker?.terminate();
    this.worker = null;
    if (!this.sums) return;
    /** @type {Map<string, Figure>} */
    const figures = new Map();
    /** @type {{metric: Metric, sums: import("./statistics/clusters.js").Sums}[]} */
    const slow = [];
    for (const metric of this.metrics) {
      const sums = this.sumsOf(metric, rows);
      if (!sums) continue;
      if (isSlow(metric)) {
        slow.push({ metric, sums });
        figures.set(metric.name, waiting(metric, sums));
      } else {
        figures.set(metric.name, figureOf(metric, sums));
      }
    }
    found([...figures.values()], slow.length === 0);
    if (!slow.length) return;
    const worker = new Worker(new URL("./statistics/worker.js", import.meta.url), { type: "module" });
    this.worker = worker;
    let open = slow.length;
    worker.onmessage = ({ data }) => {
      if (data.turn !== this.turn) return;
      figures.set(data.figure.name, data.figure);
      if (--open === 0) {
        found([...figures.values()], true);
        this.end();
      }
    };
    for (const job of slow) worker.postMessage({ turn, ...job });
  }

  /** Return the figures of some episodes without slow intervals. @param {Uint32Array} rows @param {string[]} names @returns {Figure[]} */
  quick(rows, names) {
    return this.metrics.filter(({ name }) => names.includes(name)).flatMap((metric) => {
      const sums = this.sumsOf(metric, rows);
      return sums ? [isSlow(metric) ? waiting(metric, sums) : figureOf(metric, sums)] : [];
    });
  }

  /** End the worker. */
  end() {
    this.worker?.terminate();
    this.worker = null;
  }

  /** @param {Metric} metric @param {Uint32Array} rows */
  sumsOf(metric, rows) {
    const column = (/** @type {string} */ kind) => this.sums?.column(`${metric.name}.${kind}`)?.values;
    const total = column("total");
    const sizes = column("rows");
    if (!total || !sizes) return null;
    const { codes, clusters } = this.clustered();
    return sumsOf(total, column("weight") ?? sizes, sizes, codes, clusters, rows);
  }

  /** The cluster of each episode, numbered by sorted name. */
  clustered() {
    const { episodes } = this;
    if (this.clusters?.count !== episodes.count) {
      const column = episodes.column("cluster") ?? episodes.column("scenario_id");
      const names = Array.from({ length: episodes.count }, (_, row) => String(column?.get(row)));
      const places = new Map([...new Set(names)].sort().map((name, place) => [name, place]));
      const codes = Uint32Array.from(names, (name) => /** @type {number} */ (places.get(name)));
      this.clusters = { count: episodes.count, codes, clusters: places.size };
    }
    return this.clusters;
  }
}

/** A figure whose interval is being computed. @param {Metric} metric @param {import("./statistics/clusters.js").Sums} sums @returns {Figure} */
function waiting(metric, sums) {
  let total = 0;
  let weight = 0;
  const isEach = metric.isPerScenario;
  for (let k = 0; k < sums.total.length; k++) {
    total += isEach ? sums.total[k] / sums.weight[k] : sums.total[k];
    weight += isEach ? 1 : sums.weight[k];
  }
  const [above, below] = metric.isInverse ? [weight, total] : [total, weight];
  const n = isEach ? sums.total.length : metric.kind === "ratio" ? below : sums.rows;
  return { name: metric.name, unit: metric.unit, per: isEach ? "scenario" : metric.per, value: below > 0 ? above / below : null,
    low: null, high: null, n, note: "computing the interval ..." };
}
