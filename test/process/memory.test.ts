// Memory that native threads use is there until they have ended, whatever JavaScript does with its arrays meanwhile.
import { afterEach, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

/** `free(array)`: its memory goes to another array, which is collected; `others()`: an array that may get that memory. */
const collecting = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  import { MessageChannel } from 'node:worker_threads';
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const turn = () => new Promise(setImmediate);
  const n = 1 << 22;
  const free = async (array) => {
    structuredClone(array.buffer, { transfer: [array.buffer] });
    for (let i = 0; i < 4; ++i) { collect(); await turn(); }
  };
  const sevens = () => new Float32Array(n).fill(7);
  const whole = (array) => array.every((x) => x === 7);
  const ones = () => new Float32Array(n).fill(1);
`;

/** Begins a call of rank 0 that writes \`data\`, and gives what lets it end. */
const calls = {
  allReduce: `
    const pending = a.allReduce(data);
    const end = () => b.allReduce(ones());`,
  receive: `
    const pending = a.receive(data, { from: 1 });
    const end = () => b.send(ones(), { to: 0 });`,
  neighborAllReduce: `
    const weights = (rank) => ({ selfWeight: 0.5, srcWeights: { [rank]: 0.5 }, dstWeights: { [rank]: 1 } });
    const pending = a.neighborAllReduce(data, weights(1));
    const end = () => b.neighborAllReduce(ones(), weights(0));`,
  pairGossip: `
    const pending = a.pairGossip(data, { peer: 1 });
    const end = () => b.pairGossip(ones(), { peer: 0 });`,
  broadcast: `
    const pending = a.broadcast(data, { root: 1 });
    const end = () => b.broadcast(ones(), { root: 1 });`,
};

describe('an array that a pending call writes', () => {
  it.each(Object.entries(calls))('may be transferred and collected: %s', async (_, call) => {
    const ended = await scripts.run(`
      ${collecting}
      const [a, b] = await Communicator.local(2).openRanks();
      const data = ones();
      ${call}
      await free(data);
      const others = [sevens(), sevens(), sevens()];
      await Promise.all([pending, end()]);
      report([data.length, others.every(whole)]);
    `);
    expect(ended).toMatchObject({ ...well, reports: [[0, true]] });
  });

  it('may be transferred while a store pulls into it', async () => {
    const ended = await scripts.run(`
      ${collecting}
      const kv = await KVStore.create('local', { devices: 1 });
      await kv.init('w', ones());
      const outs = Array.from({ length: 12 }, ones);
      const pending = outs.map((out) => kv.pull('w', out));
      for (const out of outs) await free(out);
      const others = [sevens(), sevens()];
      await Promise.all(pending);
      report(others.every(whole));
      await kv.close();
    `);
    expect(ended).toMatchObject({ ...well, reports: [true] });
  });
});
