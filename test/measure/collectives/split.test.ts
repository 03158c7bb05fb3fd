// nccl-tests' split: its operations, signs and numbers, and what no rule is.
import { describe, expect, it } from 'vitest';

import { groupsOf, splitRule, unevenGroups } from '../../../lib/measure/collectives/split.js';

describe('a split of eight ranks', () => {
  it.each([
    ...['AND 0x3', '&3', 'mod:4', '% 0b100'].map((text) => [text, '04 15 26 37'] as const),
    ...['OR 0x3', '|3', 'DIV 4', '/4'].map((text) => [text, '0123 4567'] as const),
    // The largest value there is.
    ...['AND 0', 'DIV 2147483647'].map((text) => [text, '01234567'] as const),
  ])('by %s', (text, groups) => {
    const rule = splitRule.parse(text);
    expect(
      groupsOf(rule, 8)
        .map(({ ranks }) => ranks.join(''))
        .join(' '),
    ).toBe(groups);
    expect(splitRule.parse(rule)).toBe(rule);
  });

  it('has the colors of nccl-tests', () => {
    expect(groupsOf('OR:3', 8).map(({ color }) => color)).toEqual([3, 7]);
    expect(groupsOf('DIV:4', 8).map(({ color }) => color)).toEqual([0, 1]);
  });

  it('is not even by each rule', () => {
    expect(unevenGroups(groupsOf('DIV:4', 8))).toBeUndefined();
    expect(unevenGroups(groupsOf('DIV:3', 8))).toBeDefined();
  });

  it.each(['', 'XOR 3', 'MOD', 'MOD 0', '/0', 'AND x', 'AND 3 4', 'DIV -2', 'AND 0x100000000'])(
    'is not by %j',
    (text) => {
      expect(() => splitRule.parse(text)).toThrow();
      expect(() => splitRule.check(text, 'split')).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
      );
    },
  );
});
