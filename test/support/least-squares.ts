// Decentralised least squares as BlueFog's example has it: each rank has 20 rows of 5 unknowns of its own, and the minimum
// of the sum of all is known.
export const rows = 20;
export const unknowns = 5;
const regularisation = 1e-2;

interface Problem {
  readonly a: readonly Float64Array[];
  readonly b: Float64Array;
}

/** What a test needs of the ranks' problems. */
export interface LeastSquares {
  /** Of one rank's own loss: the mean of squares over its rows, halved, and the regularisation. */
  readonly gradient: (rank: number) => (w: Float64Array, gradient: Float64Array) => void;
  /** From the minimum of the sum of all. */
  readonly distance: (w: Float64Array) => number;
}

export function leastSquares(size: number): LeastSquares {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5;
  const truth = Float64Array.from({ length: unknowns }, random);
  const problems: Problem[] = Array.from({ length: size }, () => {
    const a = Array.from({ length: rows }, () =>
      Float64Array.from({ length: unknowns }, () => 3 * random()),
    );
    const b = Float64Array.from(a, (row) => dot(row, truth) + random());
    return { a, b };
  });
  const best = solution(problems);
  return {
    gradient: (rank) => gradientOf(problems[rank]!),
    distance: (w) => Math.hypot(...w.map((value, i) => value - best[i]!)),
  };
}

function dot(x: Float64Array, y: Float64Array): number {
  return x.reduce((sum, value, i) => sum + value * y[i]!, 0);
}

function gradientOf({ a, b }: Problem) {
  return (w: Float64Array, gradient: Float64Array) => {
    gradient.set(w.map((value) => regularisation * value));
    a.forEach((row, r) => {
      const residual = (dot(row, w) - b[r]!) / rows;
      row.forEach((value, i) => (gradient[i]! += residual * value));
    });
  };
}

/** The minimum of the sum of all: by elimination. */
function solution(problems: readonly Problem[]): Float64Array {
  const m = Array.from({ length: unknowns }, (_, i) =>
    Array.from({ length: unknowns + 1 }, (__, j) => {
      let sum = i === j ? regularisation * rows * problems.length : 0;
      for (const { a, b } of problems) {
        a.forEach((row, r) => (sum += row[i]! * (j < unknowns ? row[j]! : b[r]!)));
      }
      return sum;
    }),
  );
  for (let k = 0; k < unknowns; ++k) {
    for (let i = 0; i < unknowns; ++i) {
      const times = i === k ? 0 : m[i]![k]! / m[k]![k]!;
      for (let j = k; j <= unknowns; ++j) m[i]![j]! -= times * m[k]![j]!;
    }
  }
  return Float64Array.from(m, (row, i) => row[unknowns]! / row[i]!);
}
