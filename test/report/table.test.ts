import { describe, expect, it } from 'vitest';

import { matrixLines, tableLines, type Column } from '../../lib/report/table.js';

const columns: readonly Column[] = [
  { title: 'name', align: 'left' },
  { title: 'what it is', align: 'left', weight: 3 },
  { title: 'rarely-asked-for', align: 'right', weight: 1 },
  { title: 'asked for', align: 'right', weight: 2 },
  { title: 'GB/s', align: 'right' },
];
const rows = [
  ['all_reduce', 'the sum of all ranks', '1234567890', '12345678901234567', '7.25'],
  ['broadcast', 'the value of one rank', '1', '2', '10.50'],
];

describe('a table', () => {
  it('is as wide as its cells where nothing limits it', () => {
    const [titles, first] = tableLines(columns, rows);
    expect(titles).toContain('rarely-asked-for');
    expect(first).toBe(
      'all_reduce  the sum of all ranks         1234567890  12345678901234567   7.25',
    );
  });

  it('leaves the lightest columns out in a narrow room, and names them', () => {
    const lines = tableLines(columns, rows, 60);
    for (const line of lines.slice(0, -1)) expect(line.length).toBeLessThanOrEqual(60);
    expect(lines[0]).not.toContain('rarely');
    expect(lines[1]).toContain('12345678901234567');
    expect(lines.at(-1)).toBe('left out at 60 columns: rarely-asked-for; --json has all');
  });

  it('leaves out first, without a word, what says nothing of any row', () => {
    const empty = [...columns, { title: 'empty', align: 'right' } as const];
    const lines = tableLines(empty, [[...rows[0]!, '-'], rows[1]!], 80);
    expect(lines).toEqual(tableLines(columns, rows, 80));
    expect(tableLines(empty, [[...rows[0]!, '-'], rows[1]!])[0]).toMatch(/empty$/);
  });

  it('wraps words where no column may go', () => {
    const words: readonly Column[] = [
      { title: 'key', align: 'left' },
      { title: 'text', align: 'left' },
    ];
    const text = 'a sentence of many words that goes on and on until it is longer than a line';
    const lines = tableLines(words, [['k', text]], 60);
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
    expect(lines.slice(1).join(' ').replaceAll(/ +/g, ' ')).toContain(text);
  });

  it('is not made narrower than 60 columns', () => {
    expect(tableLines(columns, rows, 20)).toEqual(tableLines(columns, rows, 60));
  });
});

describe('a matrix', () => {
  const gpus = Array.from({ length: 8 }, (_, i) => `GPU ${String(i)}`);
  const header: readonly Column[] = ['', ...gpus].map((title) => ({ title, align: 'right' }));
  const cells = gpus.map((name) => [name, ...gpus.map(() => '1234.56')]);

  it('is in blocks, each with the first column, in a narrow room', () => {
    const lines = matrixLines(header, cells, 60);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
    const starts = lines.filter((line) => line.startsWith('GPU 0'));
    expect(starts).toHaveLength(2);
    expect(starts.join(' ').match(/1234\.56/g)).toHaveLength(8);
  });
});
