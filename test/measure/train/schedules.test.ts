// Whom `gradlink train` averages with over several hosts: BlueFog's defaults, so that its curve compares.
import { afterEach, expect, it, vi } from 'vitest';

import { dynamicNeighbors, oneMachine } from '../../../lib/measure/train/weight-methods.js';
import { ranksOfTests } from '../../support/ranks.js';

const open = ranksOfTests();
afterEach(() => {
  vi.unstubAllEnvs();
});

/** To whom each rank sends in each of 12 steps; what it takes is what others send it. */
async function sent(size: number, perNode: number): Promise<number[][][]> {
  vi.stubEnv('GRADLINK_RANKS_PER_NODE', String(perNode));
  const ranks = await open(size);
  const next = await Promise.all(ranks.map((one) => dynamicNeighbors(one)));
  return Array.from({ length: 12 }, (_, step) => {
    const all = next.map((each) => each(step));
    const to = all.map(({ dstWeights }) =>
      (Array.isArray(dstWeights) ? dstWeights : Object.keys(dstWeights)).map(Number),
    );
    all.forEach(({ srcWeights }, rank) => {
      const from = Object.keys(srcWeights).map(Number);
      expect(from).toEqual(ranks.map((_, r) => r).filter((r) => to[r]!.includes(rank)));
    });
    return to;
  });
}

it('of each node one rank exchanges outside in a step, in turn, the others inside', async () => {
  const perNode = 4;
  for (const [step, to] of (await sent(12, perNode)).entries()) {
    to.forEach((list, rank) => {
      expect(list).toHaveLength(1);
      const node = Math.floor(rank / perNode);
      const [target] = list as [number];
      if (rank % perNode === step % perNode) {
        // At a distance of 1, or 2, nodes: a power of two.
        const distance = 2 ** (step % 2);
        expect(target).toBe(((node + distance) % 3) * perNode + (rank % perNode));
      } else {
        expect(Math.floor(target / perNode)).toBe(node);
      }
    });
  }
});

it('nodes of two ranks, and one node, have one neighbour a step at a distance of a power of two', async () => {
  for (const [size, perNode] of [
    [4, 2],
    [4, 4],
  ] as const) {
    const steps = await sent(size, perNode);
    steps.forEach((to, step) => {
      expect(to).toEqual(to.map((_, rank) => [(rank + 2 ** (step % 2)) % size]));
    });
  }
});

it('averaging of nodes goes to one node a step at a distance of a power of two', async () => {
  vi.stubEnv('GRADLINK_RANKS_PER_NODE', '2');
  const ranks = await open(8);
  await Promise.all(ranks.map((one) => one.setMachineTopology()));
  const next = ranks.map((one) => oneMachine(one));
  for (let step = 0; step < 6; ++step) {
    next.forEach((each, rank) => {
      const { dstMachineWeights } = each(step);
      const to = Array.isArray(dstMachineWeights)
        ? dstMachineWeights
        : Object.keys(dstMachineWeights);
      expect(to.map(Number)).toEqual([(Math.floor(rank / 2) + 2 ** (step % 2)) % 4]);
    });
  }
});
