// How long a call and a meeting wait where nobody says.
import { expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';

it('is 30 s, and then the rank is named', { tags: ['full'], timeout: 60_000 }, async () => {
  const group = Communicator.local(2);
  const ranks = await group.openRanks();
  const waits = [
    ranks[0]!.receive(new Float32Array(1), { from: 1 }),
    Communicator.join({ name: 'nobody else', rank: 0, size: 2 }),
    Communicator.join({ name: 'nobody else', rank: 0, size: 2, threads: true }),
  ];
  const began = performance.now();
  const ended = await Promise.all(
    waits.map(async (wait) => {
      await expect(wait).rejects.toMatchObject({ code: 'ERR_TIMEOUT', rank: 1 });
      return (performance.now() - began) / 1000;
    }),
  );
  for (const seconds of ended) {
    expect(seconds).toBeGreaterThan(29.5);
    expect(seconds).toBeLessThan(45);
  }
  await group.close();
});
