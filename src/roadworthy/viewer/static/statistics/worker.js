// Computes slow intervals beside the page, so that it stays responsive.

import { figureOf } from "./figures.js";

addEventListener("message", ({ data }) => {
  const { turn, metric, given } = data;
  postMessage({ turn, figure: figureOf(metric, given) });
});
