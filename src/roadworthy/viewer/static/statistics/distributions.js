// Quantiles of the normal distribution and of Student's t.

const CENTRAL = [
  [
    3.387132872796366608, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
  ],
  [
    1, 4.2313330701600911252e1, 6.871870074920579083e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
    3.930789580009271061e4, 2.8729085735721942674e4, 5.226495278852854561e3,
  ],
];
const MIDDLE = [
  [
    1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
    1.27045825245236838258, 2.4178072517745061177e-1, 2.27238449892691845833e-2, 7.7454501427834140764e-4,
  ],
  [
    1, 2.05319162663775882187, 1.6763848301838038494, 6.8976733498510000455e-1, 1.4810397642748007459e-1,
    1.51986665636164571966e-2, 5.475938084995344946e-4, 1.05075007164441684324e-9,
  ],
];
const FAR = [
  [
    6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 2.9656057182850489123e-1,
    2.6532189526576123093e-2, 1.2426609473880784386e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
  ],
  [
    1, 5.9983220655588793769e-1, 1.3692988092273580531e-1, 1.48753612908506148525e-2, 7.868691311456132591e-4,
    1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15,
  ],
];

/** The normal quantile, by algorithm AS 241 of Wichura (1988), to 16 digits. @param {number} p */
export function normalQuantile(p) {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return (q * polynomial(CENTRAL[0], r)) / polynomial(CENTRAL[1], r);
  }
  let r = Math.sqrt(-Math.log(q < 0 ? p : 1 - p));
  const [above, below] = r <= 5 ? MIDDLE : FAR;
  r -= r <= 5 ? 1.6 : 5;
  const value = polynomial(above, r) / polynomial(below, r);
  return q < 0 ? -value : value;
}

/** @type {Map<string, number>} */
const KNOWN = new Map();

/** The quantile of Student's t with these degrees of freedom. @param {number} freedom @param {number} p */
export function studentQuantile(freedom, p) {
  const name = `${freedom} ${p}`;
  let found = KNOWN.get(name);
  if (found === undefined) KNOWN.set(name, (found = solved(freedom, p)));
  return found;
}

/**
 * Newton's method on the distribution, from the normal quantile.
 * @param {number} freedom
 * @param {number} p
 * @returns {number}
 */
function solved(freedom, p) {
  if (p === 0.5) return 0;
  if (p < 0.5) return -solved(freedom, 1 - p);
  let t = freedom <= 2 ? Math.tan(Math.PI * (p - 0.5)) : normalQuantile(p);
  const scale = Math.exp(logGamma((freedom + 1) / 2) - logGamma(freedom / 2)) / Math.sqrt(freedom * Math.PI);
  for (let k = 0; k < 100; k++) {
    const density = scale * (1 + (t * t) / freedom) ** (-(freedom + 1) / 2);
    const step = (studentUpper(t, freedom) - (1 - p)) / density;
    t = Math.max(t + step, t / 4);
    if (Math.abs(step) <= 1e-14 * t) break;
  }
  return t;
}

/** The probability above t > 0. @param {number} t @param {number} freedom */
function studentUpper(t, freedom) {
  return incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;
}

/**
 * The regularized incomplete beta function, by its continued fraction.
 * @param {number} x
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
function incompleteBeta(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b)) / a;
  let c = 1;
  let d = 1 / nonzero(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 1000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return front * fraction;
}

/**
 * The x at which the regularized incomplete beta function is p.
 * @param {number} a
 * @param {number} b
 * @param {number} p
 */
export function betaQuantile(a, b, p) {
  return root((x) => incompleteBeta(x, a, b), p, 0, 1);
}

/** The x at which the regularized lower incomplete gamma function is p. @param {number} a @param {number} p */
export function gammaQuantile(a, p) {
  let high = a + 10;
  while (incompleteGamma(a, high) < p) high *= 2;
  return root((x) => incompleteGamma(a, x), p, 0, high);
}

/**
 * Where an increasing function has a value, by the method of Illinois within a bracket.
 * @param {(x: number) => number} increasing @param {number} value @param {number} low @param {number} high
 */
function root(increasing, value, low, high) {
  let below = increasing(low) - value;
  let above = increasing(high) - value;
  let side = 0;
  for (let k = 0; k < 200 && high - low > 1e-15 * high; k++) {
    const middle = (low + high) / 2;
    const secant = (low * above - high * below) / (above - below);
    // A bisection now and then bounds the number of steps.
    const x = k % 4 < 3 && secant > low && secant < high ? secant : middle;
    if (!(x > low && x < high)) break;
    const found = increasing(x) - value;
    if (found === 0) return x;
    if (found < 0) {
      low = x;
      below = found;
      if (side === -1) above /= 2;
      side = -1;
    } else {
      high = x;
      above = found;
      if (side === 1) below /= 2;
      side = 1;
    }
  }
  return (low + high) / 2;
}

/**
 * The regularized lower incomplete gamma function, by its series or its continued fraction.
 * @param {number} a
 * @param {number} x
 */
function incompleteGamma(a, x) {
  if (x <= 0) return 0;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a;
    let sum = term;
    for (let n = 1; n < 10000 && Math.abs(term) > 1e-17 * Math.abs(sum); n++) sum += term *= x / (a + n);
    return sum * front;
  }
  let b = x + 1 - a;
  let c = 1e300;
  let d = 1 / b;
  let fraction = d;
  for (let n = 1; n < 10000; n++) {
    const part = -n * (n - a);
    b += 2;
    d = 1 / nonzero(part * d + b);
    c = nonzero(b + part / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return 1 - front * fraction;
}

/** @param {number} value */
function nonzero(value) {
  return Math.abs(value) < 1e-300 ? 1e-300 : value;
}

/** The logarithm of the gamma function for x > 0, by Stirling's series above 12. @param {number} x */
function logGamma(x) {
  let shift = 0;
  while (x < 12) shift += Math.log(x++);
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - (y * 691) / 360360))))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

/** @param {number[]} coefficients lowest first @param {number} x */
function polynomial(coefficients, x) {
  return coefficients.reduceRight((sum, part) => sum * x + part, 0);
}
