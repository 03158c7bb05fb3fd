import { describe, expect, it } from 'vitest';

import { namedPlot, plotLines } from '../../lib/report/plot.js';

const size = { columns: 24, rows: 4 };

describe('a plot of letters', () => {
  it('has the values where they belong', () => {
    // A letter has two columns of dots: the lowest of the first, then up to the highest of the second.
    expect(plotLines([0, 3], { columns: 8, rows: 1 })).toEqual(['  3 ┤⡸']);
    const rising = plotLines([0, 1, 2, 3], { columns: 10, rows: 2 });
    expect(rising).toHaveLength(2);
    expect(rising[0]).toMatch(/^ *3 ┤/);
    expect(rising[1]).toMatch(/^ *0 ┤/);
    expect(rising[1]).toMatch(/┤[⠀-⣿]/);
  });

  it.each([1, 2, 7, 40, 5000])('of %i values is as large as it was asked to be', (count) => {
    const values = Array.from({ length: count }, (_, index) => Math.sin(index / 3) * 1e7);
    const lines = plotLines(values, size);
    expect(lines).toHaveLength(size.rows);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(size.columns);
    expect(lines.join('')).toMatch(/[⠁-⣿]/);
    expect(lines.join('')).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('of equal values is a level line, and of none is nothing', () => {
    const lines = plotLines([5, 5, 5, 5], { columns: 12, rows: 3 });
    expect(lines.filter((line) => /[⠁-⣿]/.test(line))).toHaveLength(1);
    expect(plotLines([], size)).toEqual([]);
  });

  it('says what it shows, and the figures that matter', () => {
    const lines = namedPlot({ name: 'loss', unit: '', values: [3, 1, 2] }, size);
    expect(lines[0]).toBe('loss');
    expect(lines.at(-1)).toBe('3 points, last 2, min 1, median 2, max 3');
    const even = namedPlot({ name: 'loss', unit: '', values: [1, 2, 4, 8] }, size);
    expect(even.at(-1)).toBe('4 points, last 8, min 1, median 3, max 8');
  });
});
