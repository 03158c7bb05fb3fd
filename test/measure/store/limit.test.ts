import { describe, expect, it } from 'vitest';

import { CoresLimit } from '../../../lib/measure/machine/cores-limit.js';
import { aloneInJob, type StoreJob } from '../../../lib/measure/store/job.js';
import { measureHostLimits } from '../../../lib/measure/store/limit.js';
import { storeVolume } from '../../../lib/results/bandwidth.js';
import { environmentOf } from '../../../lib/measure/machine/environment.js';

const bytes = 1e6;
const stores = ['device', 'dist_sync', 'allreduce'];

/** Two workers, of which this process is one. */
const workers: StoreJob = {
  ...aloneInJob,
  size: 2,
  measureCores: (cores) =>
    Promise.resolve(
      new CoresLimit(workers, 2, cores, () => Promise.reject(new Error('measured twice'))),
    ),
};

async function partsOf(job: StoreJob, kvStores: readonly string[]) {
  const limits = await measureHostLimits(job, environmentOf(), kvStores);
  return kvStores.map((kvStore) => {
    const { between } = limits(kvStore, storeVolume({ bytes, devices: 1, workers: 2 }), true);
    return between?.crossing.parts;
  });
}

describe('the limit of stores in a job', () => {
  it('has what workers pass to one another where these sum, and of no other store', async () => {
    const part = { put: bytes, get: bytes };
    expect(await partsOf(workers, stores)).toEqual([undefined, undefined, [part, part]]);
  });

  it('has nothing of one worker', async () => {
    expect(await partsOf(aloneInJob, stores)).toEqual(stores.map(() => undefined));
  });

  it('times nothing between cores that no store needs', async () => {
    const measureCores = () => Promise.reject(new Error('not needed'));
    await expect(partsOf({ ...workers, measureCores }, ['dist_sync'])).resolves.toEqual([
      undefined,
    ]);
  });
});
