// Where the names of lines stand.
import { describe, expect, it } from 'vitest';

import { endsOf, lineLabels } from '../../lib/report/charts/line-labels.js';

const scale = { least: 0, most: 10, log: false } as const;
const ends = (...heights: number[]) =>
  heights.map((y, index) => ({ series: `line ${String(index)}`, x: 16, y }));
const heights = (labels: ReturnType<typeof lineLabels>): number[] =>
  (labels ?? []).map(({ labelY }) => Number(labelY));

describe('labels at the ends of lines', () => {
  it('stand where lines end that are apart', () => {
    expect(heights(lineLabels(ends(2, 8), scale, 860))).toEqual([2, 8]);
  });

  it('keep apart, in the order of their lines, and within the plot', () => {
    const places = heights(lineLabels(ends(10, 9.99, 9.98, 0), scale, 860));
    const gaps = places.slice(1).map((place, index) => place - places[index]!);
    expect(Math.min(...gaps)).toBeGreaterThan(0.7);
    expect(Math.max(...places)).toBeLessThanOrEqual(10);
  });

  it('keep as far apart on a logarithmic axis', () => {
    const log = { least: 1e-6, most: 1, log: true } as const;
    const places = heights(lineLabels(ends(1e-3, 1.001e-3), log, 860)).map(Math.log10);
    expect(places[1]! - places[0]!).toBeCloseTo(0.075 * 6, 5);
  });

  it.each([
    { name: 'one line', given: ends(1), width: 860 },
    { name: 'many lines', given: ends(1, 2, 3, 4, 5, 6, 7, 8, 9), width: 860 },
    { name: 'a narrow picture', given: ends(1, 2), width: 120 },
  ])('give way to a legend: $name', ({ given, width }) => {
    expect(lineLabels(given, scale, width)).toBeUndefined();
  });

  it('are at the last point of each line, wherever it comes', () => {
    const points = [
      { series: 'a', x: 4, y: 1 },
      { series: 'a', x: 2, y: 9 },
      { series: 'b', x: 2, y: 3 },
    ];
    expect(endsOf(points)).toEqual([points[0], points[2]]);
  });
});
