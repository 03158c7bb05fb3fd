// How a cost grows: the slope of a line through the logarithms, and the word for it.

/** @typedef {{x: number, y: number}} Point */

/** Least squares: y = intercept + slope x. @param {Point[]} points */
export function line(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middleX, middleY] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))];
  const spread = mean(points.map(({ x }) => (x - middleX) ** 2));
  const together = mean(points.map(({ x, y }) => (x - middleX) * (y - middleY)));
  const slope = together / spread;
  return { slope, intercept: middleY - slope * middleX };
}

/** Below it a cost that hardly moves is called constant; as far above 1 one is still called linear. */
const tolerance = 0.15;

/** From the best to the worst. */
export const words = ['constant', 'logarithmic', 'below linear', 'linear', 'worse than linear'];

/**
 * @param {Point[]} points at least three, of different x, all above 0
 * @returns {{slope: number, factor: number, steepest: number, word: string}} cost = factor x^slope; steepest: the largest slope
 *   between neighbours, which one far point cannot hide
 */
export function growth(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x);
  if (new Set(sorted.map(({ x }) => x)).size < 3) {
    throw new Error(`expected costs at three sizes or more, got ${sorted.length}`);
  }
  if (sorted.some(({ x, y }) => !(x > 0 && y > 0))) {
    throw new Error('expected sizes and costs above 0');
  }
  const logs = sorted.map(({ x, y }) => ({ x: Math.log2(x), y: Math.log2(y) }));
  const power = line(logs);
  const steps = logs
    .slice(1)
    .map(({ x, y }, i) => ({ x, slope: (y - logs[i].y) / (x - logs[i].x) }))
    .filter(({ slope }) => Number.isFinite(slope));
  return {
    slope: power.slope,
    factor: 2 ** power.intercept,
    steepest: Math.max(...steps.map(({ slope }) => slope)),
    word: wordOf(sorted, logs, power),
  };
}

function wordOf(sorted, logs, power) {
  if (power.slope <= tolerance) return 'constant';
  if (power.slope > 1 + tolerance) return 'worse than linear';
  // What a + b log x leaves beside what a power of x leaves, both seen as factors.
  const logarithm = line(sorted.map(({ x, y }) => ({ x: Math.log2(x), y })));
  const left = (predicted) =>
    logs.reduce((sum, { x, y }) => sum + (Math.log2(Math.max(predicted(x), 1e-300)) - y) ** 2, 0);
  const ofLogarithm = left((x) => logarithm.intercept + logarithm.slope * x);
  const ofPower = left((x) => 2 ** (power.intercept + power.slope * x));
  if (ofLogarithm < ofPower && power.slope < 1 - tolerance) return 'logarithmic';
  return power.slope < 1 - tolerance ? 'below linear' : 'linear';
}

/** Whether a cost grows no faster than was asked. */
export const within = (word, wanted) => words.indexOf(word) <= words.indexOf(wanted);
