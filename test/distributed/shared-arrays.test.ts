// Arrays of kv.allocShared, which servers read where they lie: between processes.
import { afterAll, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

describe('arrays of allocShared', () => {
  it('are pushed and pulled as plain ones are, and stay after close()', async () => {
    const { workers, servers } = await runJob(
      scripts,
      { workers: 2, servers: 2 },
      `
      ${helpers}
      const kv = await KVStore.create('dist_sync', { bigArrayBound: 100_000 });
      const count = 300_001;
      const array = kv.allocShared('float32', count);
      const zeroed = array.every((value) => value === 0);
      await kv.init(['shared', 'plain'], [new Float32Array(count), new Float32Array(count)]);
      const wrong = [];
      for (let round = 1; round <= 3; round += 1) {
        const out = filled(count, 0);
        array.forEach((_, i) => { array[i] = (i % 1021) + round * (kv.rank + 1); });
        await kv.push('plain', array.slice());
        await kv.pull('plain', out);
        await kv.push('shared', array);
        array.fill(-1); // the caller's again
        await kv.pull('shared', array);
        wrong.push(array.findIndex((value, i) => value !== out[i]));
        await kv.pushPull('shared', array.fill(round));
        wrong.push(array.findIndex((value) => value !== 2 * round));
      }
      await kv.close();
      report({ zeroed, wrong, last: array[count - 1] });
      `,
    );
    const reports = [{ zeroed: true, wrong: [-1, -1, -1, -1, -1, -1], last: 6 }];
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
    for (const server of servers) expect(server).toMatchObject(well);
  });
});
