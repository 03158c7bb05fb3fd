import { describe, expect, it } from 'vitest';

import { MemoryUses } from '../../lib/tensor/memory-uses.js';
import type { MemoryUse } from '../../lib/tensor/memory-uses.js';
import { Random } from '../attack/support/random.js';

function conflict(a: MemoryUse, b: MemoryUse): boolean {
  return (
    a.buffer === b.buffer &&
    Math.max(a.start, b.start) < Math.min(a.end, b.end) &&
    (a.writes || b.writes)
  );
}

function found(uses: MemoryUses<MemoryUse>, wanted: MemoryUse): Set<MemoryUse> {
  const seen: MemoryUse[] = [];
  uses.conflicting(wanted, (other) => seen.push(other));
  expect(new Set(seen).size).toBe(seen.length);
  return new Set(seen);
}

describe('uses of memory', () => {
  it.each([1, 2, 3, 4])('are found as one by one, while they come and go (seed %i)', (seed) => {
    const random = new Random(seed);
    const below = (limit: number) => random.int(limit);
    const buffers = [{}, {}, {}];
    const drawn = (): MemoryUse => {
      const start = below(60);
      // Empty ones too, and some far longer than the others.
      const length = below(12) === 0 ? below(60) : below(6);
      return { buffer: buffers[below(3)]!, start, end: start + length, writes: below(3) === 0 };
    };
    const uses = new MemoryUses<MemoryUse>();
    const there: MemoryUse[] = [];
    for (let step = 0; step < 3000; step += 1) {
      const wanted = drawn();
      expect(found(uses, wanted)).toEqual(new Set(there.filter((one) => conflict(one, wanted))));
      if (below(50) < there.length) {
        const [gone] = there.splice(below(there.length), 1);
        uses.delete(gone!);
      } else {
        there.push(wanted);
        uses.add(wanted);
      }
    }
    for (const one of there) uses.delete(one);
    expect(uses.empty).toBe(true);
  });

  it('is empty without uses that have bytes', () => {
    const uses = new MemoryUses<MemoryUse>();
    expect(uses.empty).toBe(true);
    const none = { buffer: {}, start: 8, end: 8, writes: true };
    uses.add(none);
    uses.delete(none);
    expect(uses.empty).toBe(true);
    const one = { ...none, end: 9 };
    uses.add(one);
    expect(uses.empty).toBe(false);
    uses.delete({ ...one });
    expect(uses.empty).toBe(false);
  });

  it.each([
    { what: 'writes side by side', place: (at: number) => at * 4, writes: true },
    { what: 'reads of the same bytes', place: () => 0, writes: false },
  ])('of one allocation cost a few looks each: $what', ({ place, writes }) => {
    const buffer = {};
    const count = 4096;
    let looks = 0;
    const uses = new MemoryUses<MemoryUse>();
    const all = Array.from({ length: count }, (_, at) => {
      const start = place(at);
      return {
        buffer,
        get start() {
          looks += 1;
          return start;
        },
        end: start + 4,
        writes,
      };
    });
    for (const one of all) {
      uses.conflicting(one, () => expect.unreachable('none of them conflict'));
      uses.add(one);
    }
    // Two searches for a place among 4,096, and what stands there.
    expect(looks / count).toBeLessThan(2 * Math.log2(count) + 10);
  });
});
