// The figures of selected episodes: sums over clusters here, slow intervals in a worker.

import { Episodes } from "./episodes.js";
import { MOST_CLUSTERS } from "./statistics/bootstrap.js";
import { figureOf, givenOf, waitingFigure } from "./statistics/figures.js";

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
    this.isDriving = true;
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {import("./statistics/clusters.js").Groups & {count: number} | null} */
    this.groups = null;
  }

  /** Read the sums of episodes that are not here yet. @param {any} run run.json */
  async update(run) {
    this.isDriving = run.is_driving;
    const known = new Map((run.metrics.figures ?? []).map((/** @type {any} */ figure) => [figure.name, figure]));
    const trials = this.episodes.column("trials")?.values ?? [];
    const isOneTrial = trials.every((count) => !(count > 1));
    // A figure that another version computed would differ from what is computed here, and one that a sealed run lacks
    // means nothing for it.
    this.metrics = run.sums
      .filter((/** @type {any} */ metric) => known.size === 0 || known.get(metric.name)?.version === metric.version)
      .map((/** @type {any} */ metric) => ({
        ...metric,
        per: known.get(metric.name)?.per ?? (isOneTrial && metric.per === "trial" ? "agent" : metric.per),
      }));
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
    /** @type {{metric: Metric, given: import("./statistics/figures.js").Given}[]} */
    const slow = [];
    for (const metric of this.metrics) {
      const given = this.given(metric, rows);
      if (!given) continue;
      const isLater = isSlow(metric, given);
      if (isLater) slow.push({ metric, given });
      figures.set(metric.name, isLater ? waitingFigure(metric, given) : figureOf(metric, given));
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

  /**
   * Return the figures of some episodes without slow intervals.
   * @param {Uint32Array} rows
   * @param {string[]} names
   * @returns {Figure[]}
   */
  quick(rows, names) {
    return this.metrics
      .filter(({ name }) => names.includes(name))
      .flatMap((metric) => {
        const given = this.given(metric, rows);
        return given
          ? [isSlow(metric, given) ? { ...waitingFigure(metric, given), note: null } : figureOf(metric, given)]
          : [];
      });
  }

  /** End the worker. */
  end() {
    this.worker?.terminate();
    this.worker = null;
  }

  /** @param {Metric} metric @param {Uint32Array} rows */
  given(metric, rows) {
    const column = (/** @type {string} */ kind) => this.sums?.column(`${metric.name}.${kind}`)?.values;
    const total = column("total");
    const sizes = column("rows");
    if (!total || !sizes) return null;
    return givenOf(
      metric,
      { total, weight: column("weight") ?? sizes, rows: sizes, missing: column("missing") },
      this.grouped(),
      rows,
    );
  }

  /** The cluster and the scenario of each episode. */
  grouped() {
    const { episodes } = this;
    if (this.groups?.count !== episodes.count) {
      const ofScenarios = numbered(episodes, "scenario_id");
      const ofClusters = episodes.columns.has("cluster") ? numbered(episodes, "cluster") : ofScenarios;
      // Scenarios count within clusters only where egos drove several scenarios on one map.
      const isShared = this.isDriving && ofClusters[1] < ofScenarios[1];
      const [clusters, clusterCount] = this.isDriving && !isShared ? ofScenarios : ofClusters;
      const [scenarios, scenarioCount] = isShared ? ofScenarios : [clusters, clusterCount];
      this.groups = { count: episodes.count, clusters, clusterCount, scenarios, scenarioCount };
    }
    return this.groups;
  }
}

/**
 * Whether an interval takes the bootstrap.
 * @param {Metric} metric
 * @param {import("./statistics/figures.js").Given} given
 */
function isSlow(metric, { sums }) {
  return metric.kind !== "rate" && sums.total.length > 1 && sums.total.length <= MOST_CLUSTERS;
}

/**
 * Number the names in a column in their order.
 * @param {Episodes} episodes
 * @param {string} name
 * @returns {[Uint32Array, number]}
 */
function numbered(episodes, name) {
  const column = episodes.column(name);
  const names = Array.from({ length: episodes.count }, (_, row) => String(column?.get(row)));
  const places = new Map([...new Set(names)].sort().map((text, place) => [text, place]));
  return [Uint32Array.from(names, (text) => /** @type {number} */ (places.get(text))), places.size];
}
