// Who meets whom: each round pairs hosts, nobody twice, and all rounds are all pairs.
import { describe, expect, it } from 'vitest';

import { mostRounds, partnerIn, roundsOf } from '../../../lib/measure/hosts/rounds.js';

describe('rounds of pairs', () => {
  it.each([1, 2, 3, 4, 5, 8, 9, 33, 64])('of %i hosts meet each once', (count) => {
    const met = new Set<string>();
    for (const round of roundsOf(count)) {
      for (let own = 0; own < count; own += 1) {
        const partner = partnerIn(round, own, count);
        if (partner === undefined) continue;
        expect(partner).not.toBe(own);
        expect(partnerIn(round, partner, count)).toBe(own);
        if (own < partner) met.add(`${own}-${partner}`);
      }
    }
    expect(met.size).toBe((count * (count - 1)) / 2);
  });

  it('of a thousand hosts are so many that each meets others from everywhere', () => {
    const count = 1000;
    const rounds = roundsOf(count);
    expect(rounds).toHaveLength(mostRounds);
    for (const own of [0, 1, 500, 999]) {
      const partners = new Set(rounds.map((round) => partnerIn(round, own, count)));
      expect(partners.size).toBe(mostRounds);
    }
  });
});
