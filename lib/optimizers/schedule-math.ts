// The arithmetic of native/kvstore/optimizer/lr_scheduler.cc, operation for operation: change both or neither. Math.pow and
// Math.cos are not used because engines and C libraries do not promise the same bits.

const ln2High = 6.9314718036912381649e-1;
const ln2Low = 1.9082149292705877e-10;
const halfPi = 1.57079632679489661923;
const rootHalf = 0.7071067811865475244;

/** Of x <= 0. */
function exponential(x: number): number {
  // Half of the least float64 above 0 rounds to 0.
  if (x < -746) return 0;
  const n = Math.floor(x / (ln2High + ln2Low) + 0.5);
  const r = x - n * ln2High - n * ln2Low;
  let sum = 1;
  for (let k = 16; k >= 1; k -= 1) sum = 1 + (r * sum) / k;
  for (let i = n; i < 0; i += 1) sum *= 0.5;
  return sum;
}

/** Of 0 < x <= 1. */
function logarithm(x: number): number {
  let doublings = 0;
  while (x < rootHalf) {
    x *= 2;
    doublings += 1;
  }
  const s = (x - 1) / (x + 1);
  const square = s * s;
  let sum = 0;
  for (let k = 25; k >= 1; k -= 2) sum = 1 / k + square * sum;
  const series = 2 * s * sum;
  return series - doublings * ln2Low - doublings * ln2High;
}

/** x to the power p for 0 <= x <= 1 and p > 0. */
export function power(x: number, p: number): number {
  if (x <= 0) return 0;
  if (p <= 64 && p === Math.floor(p)) {
    let result = 1;
    for (let i = 0; i < p; i += 1) result *= x;
    return result;
  }
  return exponential(p * logarithm(x));
}

/** (1 + cos(pi x)) / 2 for 0 <= x <= 1; exact at both ends. */
export function halfCosine(x: number): number {
  const t = halfPi * (x <= 0.5 ? x : 1 - x);
  const square = t * t;
  let sum = 1;
  for (let k = 21; k >= 3; k -= 2) sum = 1 - (square * sum) / (k * (k - 1));
  const sine = t * sum;
  return x <= 0.5 ? 1 - sine * sine : sine * sine;
}
