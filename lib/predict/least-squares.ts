// Least squares with few nonnegative coefficients.

export interface Fit {
  readonly coefficients: readonly number[];
  /** Weighted sum of squared residuals. */
  readonly squares: number;
}

/** Solves the normal equations of the chosen columns by elimination; undefined if they are singular. */
function solve(
  rows: readonly (readonly number[])[],
  values: readonly number[],
  weights: readonly number[],
  chosen: readonly number[],
): number[] | undefined {
  const size = chosen.length;
  const matrix = chosen.map((a) => [
    ...chosen.map((b) => rows.reduce((sum, row, i) => sum + weights[i]! * row[a]! * row[b]!, 0)),
    rows.reduce((sum, row, i) => sum + weights[i]! * row[a]! * values[i]!, 0),
  ]);
  const scale = matrix.map((row, i) => row[i]!);
  for (let k = 0; k < size; k += 1) {
    const pivot = matrix[k]!;
    // Relative to the original diagonal: a smaller rest is rounding.
    if (!(pivot[k]! > scale[k]! * 1e-12)) return undefined;
    for (let i = k + 1; i < size; i += 1) {
      const factor = matrix[i]![k]! / pivot[k]!;
      for (let j = k; j <= size; j += 1) matrix[i]![j]! -= factor * pivot[j]!;
    }
  }
  const solution = new Array<number>(size).fill(0);
  for (let k = size - 1; k >= 0; k -= 1) {
    let rest = matrix[k]![size]!;
    for (let j = k + 1; j < size; j += 1) rest -= matrix[k]![j]! * solution[j]!;
    solution[k] = rest / matrix[k]![k]!;
  }
  return solution;
}

/**
 * The nonnegative coefficients c that minimise `sum weight * (row . c - value)^2`. Tries every subset of nonzero terms,
 * eight for three terms.
 *
 * @param rows the terms of each observation; all of the same length
 * @param weights of the observations; 1 by default
 */
export function nonNegativeLeastSquares(
  rows: readonly (readonly number[])[],
  values: readonly number[],
  weights: readonly number[] = values.map(() => 1),
): Fit {
  const terms = rows[0]?.length ?? 0;
  const residual = (coefficients: readonly number[]): number =>
    rows.reduce((sum, row, i) => {
      const off = row.reduce((all, x, k) => all + x * coefficients[k]!, 0) - values[i]!;
      return sum + weights[i]! * off * off;
    }, 0);
  const nothing = new Array<number>(terms).fill(0);
  let best: Fit = { coefficients: nothing, squares: residual(nothing) };
  for (let mask = 1; mask < 2 ** terms; mask += 1) {
    const chosen = nothing.map((_, k) => k).filter((k) => (mask >> k) % 2 === 1);
    const solution = solve(rows, values, weights, chosen);
    if (solution === undefined || solution.some((value) => value < 0)) continue;
    const coefficients = nothing.map((_, k) => {
      const place = chosen.indexOf(k);
      return place === -1 ? 0 : solution[place]!;
    });
    const squares = residual(coefficients);
    // Prefer fewer terms unless more of them help.
    if (squares < best.squares * (1 - 1e-9)) best = { coefficients, squares };
  }
  return best;
}
