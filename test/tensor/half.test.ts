import { describe, expect, it } from 'vitest';

import { halfTable, toHalf } from '../../lib/tensor/half.js';

/** Patterns that are numbers and do not come back as they were. */
function changedPatterns(dtype: 'float16' | 'bfloat16'): number[] {
  const table = halfTable(dtype);
  const numbers = [...table.keys()].filter((bits) => !Number.isNaN(table[bits]));
  return numbers.filter((bits) => toHalf(dtype, table[bits] ?? 0) !== bits);
}

describe('float16', () => {
  const table = halfTable('float16');

  it.each([
    [0x0000, 0],
    [0x0001, 2 ** -24],
    [0x03ff, 1023 * 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3c00, 1],
    [0x3c01, 1 + 2 ** -10],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x7c00, Infinity],
    [0xfc00, -Infinity],
  ])('reads pattern %i', (bits, value) => {
    expect(table[bits]).toBe(value);
  });

  it('writes every pattern back', () => {
    expect(changedPatterns('float16')).toEqual([]);
    expect(table[toHalf('float16', NaN)]).toBeNaN();
  });

  it('rounds to nearest, ties to even', () => {
    const wrong: number[] = [];
    for (let bits = 0; bits < 0x7c00; bits += 1) {
      const low = table[bits] ?? 0;
      // Behind the largest number the next step would have been 65536.
      const high = bits === 0x7bff ? 65536 : (table[bits + 1] ?? 0);
      const middle = (low + high) / 2;
      const even = bits % 2 === 0 ? bits : bits + 1;
      // One float32 below and above the middle.
      const rounded = [1, 1 - 2 ** -23, 1 + 2 ** -23, -1].map((f) => toHalf('float16', middle * f));
      const expected = [even, bits, bits + 1, even | 0x8000];
      if (rounded.some((value, i) => value !== expected[i])) wrong.push(bits);
    }
    expect(wrong).toEqual([]);
  });

  it('gives infinity for what is too large and 0 for what is too small', () => {
    expect(toHalf('float16', 1e9)).toBe(0x7c00);
    expect(toHalf('float16', -Infinity)).toBe(0xfc00);
    expect(toHalf('float16', 1e-30)).toBe(0);
    expect(toHalf('float16', -1e-30)).toBe(0x8000);
  });
});

describe('bfloat16', () => {
  const table = halfTable('bfloat16');

  it('writes every pattern back', () => {
    expect(changedPatterns('bfloat16')).toEqual([]);
    expect(table[toHalf('bfloat16', NaN)]).toBeNaN();
  });

  it('rounds to nearest, ties to even', () => {
    expect(toHalf('bfloat16', 1 + 2 ** -8)).toBe(0x3f80);
    expect(toHalf('bfloat16', 1 + 3 * 2 ** -8)).toBe(0x3f82);
    expect(toHalf('bfloat16', 1 + 2 ** -8 + 2 ** -20)).toBe(0x3f81);
    expect(toHalf('bfloat16', 3.4e38)).toBe(0x7f80);
  });
});
