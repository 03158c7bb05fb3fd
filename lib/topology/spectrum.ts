// Eigenvalues of a real matrix, not necessarily symmetric: Hessenberg form by reflections, then QR steps with
// Wilkinson's shift in complex arithmetic.

interface Complex {
  readonly re: number;
  readonly im: number;
}

const plus = (a: Complex, b: Complex): Complex => ({ re: a.re + b.re, im: a.im + b.im });
const minus = (a: Complex, b: Complex): Complex => ({ re: a.re - b.re, im: a.im - b.im });
const times = (a: Complex, b: Complex): Complex => ({
  re: a.re * b.re - a.im * b.im,
  im: a.re * b.im + a.im * b.re,
});
const scaled = (a: Complex, by: number): Complex => ({ re: a.re * by, im: a.im * by });
const conjugate = (a: Complex): Complex => ({ re: a.re, im: -a.im });
const modulus = (a: Complex): number => Math.hypot(a.re, a.im);
const zero: Complex = { re: 0, im: 0 };

function squareRoot(a: Complex): Complex {
  const r = modulus(a);
  const re = Math.sqrt((r + a.re) / 2);
  const im = Math.sqrt(Math.max(0, (r - a.re) / 2));
  return { re, im: a.im < 0 ? -im : im };
}

/** The second largest modulus of the eigenvalues; 0 for a matrix of one row. */
export function secondModulus(matrix: readonly (readonly number[])[]): number {
  const moduli = eigenvalues(matrix)
    .map(modulus)
    .sort((a, b) => b - a);
  return moduli[1] ?? 0;
}

/** All eigenvalues, in no order. */
export function eigenvalues(matrix: readonly (readonly number[])[]): Complex[] {
  const h = hessenberg(matrix).map((row) => row.map((re): Complex => ({ re, im: 0 })));
  const norm = Math.max(
    ...h.map((row) => row.reduce((sum, a) => sum + modulus(a), 0)),
    Number.MIN_VALUE,
  );
  const found: Complex[] = [];
  let last = h.length - 1;
  let steps = 0;
  while (last >= 0) {
    let first = last;
    while (first > 0 && !negligible(h, first, norm)) --first;
    if (first > 0) h[first]![first - 1] = zero;
    if (first === last) {
      found.push(h[last]![last]!);
      --last;
      steps = 0;
      continue;
    }
    step(h, first, last, ++steps % 10 === 0 ? unusual(h, last) : shift(h, last));
  }
  return found;
}

/** Relative to the whole matrix: near a zero eigenvalue the diagonal's neighbours are as small as rounding. */
function negligible(h: readonly Complex[][], row: number, norm: number): boolean {
  return modulus(h[row]![row - 1]!) <= Number.EPSILON * norm;
}

/** The eigenvalue of the last two rows' block that is nearer to its last element. */
function shift(h: readonly Complex[][], last: number): Complex {
  const a = h[last - 1]![last - 1]!;
  const b = h[last - 1]![last]!;
  const c = h[last]![last - 1]!;
  const d = h[last]![last]!;
  const half = scaled(minus(a, d), 0.5);
  const root = squareRoot(plus(times(half, half), times(b, c)));
  const middle = scaled(plus(a, d), 0.5);
  const one = plus(middle, root);
  const two = minus(middle, root);
  return modulus(minus(one, d)) < modulus(minus(two, d)) ? one : two;
}

/** For matrices that steps with the usual shift do not change: those of one-way rings. */
function unusual(h: readonly Complex[][], last: number): Complex {
  const size = 0.75 * modulus(h[last]![last - 1]!);
  return plus(h[last]![last]!, { re: size * 0.8, im: size * 0.6 });
}

/** One QR step on the rows and columns from first to last: rotations from the left, then the same from the right. */
function step(h: Complex[][], first: number, last: number, by: Complex): void {
  for (let i = first; i <= last; ++i) h[i]![i] = minus(h[i]![i]!, by);
  const rotations: { c: Complex; s: Complex }[] = [];
  for (let k = first; k < last; ++k) {
    const upper = h[k]!;
    const lower = h[k + 1]!;
    const length = Math.hypot(modulus(upper[k]!), modulus(lower[k]!));
    const c = length === 0 ? { re: 1, im: 0 } : scaled(upper[k]!, 1 / length);
    const s = length === 0 ? zero : scaled(lower[k]!, 1 / length);
    rotations.push({ c, s });
    for (let j = k; j <= last; ++j) {
      const [a, b] = [upper[j]!, lower[j]!];
      upper[j] = plus(times(conjugate(c), a), times(conjugate(s), b));
      lower[j] = minus(times(c, b), times(s, a));
    }
  }
  rotations.forEach(({ c, s }, at) => {
    const k = first + at;
    for (let i = first; i <= Math.min(k + 1, last); ++i) {
      const [a, b] = [h[i]![k]!, h[i]![k + 1]!];
      h[i]![k] = plus(times(c, a), times(s, b));
      h[i]![k + 1] = minus(times(conjugate(c), b), times(conjugate(s), a));
    }
  });
  for (let i = first; i <= last; ++i) h[i]![i] = plus(h[i]![i]!, by);
}

/** A similar matrix with zeros below the first subdiagonal, by Householder reflections. */
function hessenberg(matrix: readonly (readonly number[])[]): number[][] {
  const a = matrix.map((row) => [...row]);
  const n = a.length;
  for (let k = 0; k + 2 < n; ++k) {
    const v = new Array<number>(n).fill(0);
    let norm = 0;
    for (let i = k + 1; i < n; ++i) norm = Math.hypot(norm, (v[i] = a[i]![k]!));
    if (norm === 0) continue;
    // Normalised first, because squares of rounding errors would underflow.
    for (let i = k + 1; i < n; ++i) v[i]! /= norm;
    v[k + 1]! += v[k + 1]! < 0 ? -1 : 1;
    const square = v.reduce((sum, x) => sum + x * x, 0);
    for (let j = 0; j < n; ++j) {
      let dot = 0;
      for (let i = k + 1; i < n; ++i) dot += v[i]! * a[i]![j]!;
      for (let i = k + 1; i < n; ++i) a[i]![j]! -= ((2 * dot) / square) * v[i]!;
    }
    for (const row of a) {
      let dot = 0;
      for (let j = k + 1; j < n; ++j) dot += v[j]! * row[j]!;
      for (let j = k + 1; j < n; ++j) row[j]! -= ((2 * dot) / square) * v[j]!;
    }
  }
  return a;
}
