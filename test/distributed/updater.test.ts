// Update rules that are JavaScript functions on servers: MXNet's updaters of servers.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { errorWith } from '../support/errors.js';
import { Launches } from '../support/launching.js';
import { Scripts, well } from '../support/processes.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
const launches = new Launches();
afterAll(async () => {
  await scripts.remove();
  await launches.remove();
});

const library = new URL('../../dist/index.js', import.meta.url).href;

// A key of two pieces of a shard on each of two servers, and one on a single server.
const lengths = `
  ${helpers}
  const lengths = { big: 300_001, small: 5 };
  const keys = Object.keys(lengths);
  const zeros = () => keys.map((key) => filled(lengths[key], 0));
`;

// Momentum by key, as an optimizer keeps it.
const momentum = `
  updater: (() => {
    const states = new Map();
    return (key, received, stored, first) => {
      if (!states.has(key)) report({ key, first, length: stored.length });
      const state = states.get(key) ?? states.set(key, new Float32Array(stored.length)).get(key);
      for (let i = 0; i < stored.length; i += 1) {
        state[i] = 0.5 * state[i] + received[i];
        stored[i] -= state[i];
      }
    };
  })(),
`;

const storeReport = { store: expect.anything() as unknown };

describe('serveJob({ updater })', () => {
  it('steps the sum of a round, with a state by key, also of keys that are cut', async () => {
    const { workers, servers } = await runJob(
      scripts,
      { workers: 2, servers: 2, serving: momentum },
      `
      ${lengths}
      const kv = await KVStore.create('dist_sync', { bigArrayBound: 1000 });
      await kv.init(keys, zeros());
      const outs = zeros();
      const right = [];
      // The steps of a gradient of 3: 3, 4.5, 5.25.
      for (const value of [-3, -7.5, -12.75]) {
        const grads = keys.map((key) => filled(lengths[key], kv.rank + 1));
        await kv.pushPull(keys, grads, outs);
        right.push(outs.every((out) => same(out, value)));
      }
      report(right);
      await kv.close();
      `,
    );
    for (const worker of workers) {
      expect(worker).toMatchObject({ ...well, reports: [[true, true, true]] });
    }
    const told = servers.flatMap(({ reports }) =>
      reports.filter((one) => !('store' in (one as object))),
    );
    expect(told).toHaveLength(3);
    expect(told).toContainEqual({ key: 'small', first: 0, length: 5 });
    const big = (told as { key: string; first: number; length: number }[])
      .filter(({ key }) => key === 'big')
      .toSorted((a, b) => a.first - b.first);
    expect(big.map(({ first }) => first)).toEqual([0, big[0]!.length]);
    expect(big[0]!.length + big[1]!.length).toBe(300_001);
  });

  it('rejects what ran it with what it threw, leaves the value, and goes on', async () => {
    const { workers, servers } = await runJob(
      scripts,
      {
        workers: 2,
        servers: 1,
        serving: `
        updater: (key, received, stored) => {
          stored.fill(-1);
          if (received[0] > 100) throw new RangeError('too large');
          stored.set(received);
        },`,
      },
      `
      ${lengths}
      const kv = await KVStore.create('dist_sync');
      await kv.init(keys, zeros());
      const outs = zeros();
      const grads = (value) => keys.map((key) => filled(lengths[key], value));
      await kv.pushPull(keys, grads(1), outs);
      report(await outcome(kv.pushPull('small', filled(5, 1000), outs[1])));
      report(await outcome(kv.pushPull('big', filled(lengths.big, 1000), outs[0])));
      // A push is done when its arrays have been read: what comes after it tells.
      await kv.push('small', filled(5, 1000));
      report((await outcome(kv.barrier())).code);
      await kv.pull(keys, outs);
      report(outs.map((out) => same(out, 2)));
      await kv.pushPull(keys, grads(4), outs);
      report(outs.map((out) => same(out, 8)));
      await kv.close();
      `,
    );
    const failure = (key: string): object =>
      errorWith('ERR_SYSTEM', new RegExp(`updater.*key ${key}.*: too large$`));
    const reports = [failure('small'), failure('big'), 'ERR_SYSTEM', [true, true], [true, true]];
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
    expect(servers[0]).toMatchObject({ ...well, reports: [storeReport] });
  });

  it('gives way to an optimizer that worker 0 sets; a worker that sets an updater is told where it belongs', async () => {
    const { workers } = await runJob(
      scripts,
      { workers: 2, servers: 1, serving: 'updater: (key, received, stored) => stored.fill(7),' },
      `
      const { SGD } = await import(${JSON.stringify(library)});
      ${helpers}
      const kv = await KVStore.create('dist_sync');
      await kv.init(1, filled(3, 0));
      const out = filled(3, 0);
      await kv.pushPull(1, filled(3, 1), out);
      report([...out]);
      report((await outcome(kv.setUpdater(() => undefined))).message);
      await kv.setOptimizer(new SGD({ learningRate: 0.5 }));
      await kv.pushPull(1, filled(3, 1), out);
      report([...out]);
      await kv.setOptimizer(null);
      await kv.pushPull(1, filled(3, 1), out);
      report([...out]);
      await kv.close();
      `,
    );
    const text = expect.stringContaining('serveJob({ updater })') as unknown;
    const reports = [[7, 7, 7], text, [6, 6, 6], [2, 2, 2]];
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
  });
});

function file(name: string, text: string): string {
  const path = join(launches.scratch, name);
  writeFileSync(path, text);
  return path;
}

it('gradlink serve takes the updater of a module', async () => {
  const updater = file(
    'updater.mjs',
    'export const updater = (key, received, stored) => stored.fill(received[0] * Number(key));',
  );
  const app = file(
    'app.mjs',
    `
    import { KVStore } from ${JSON.stringify(library)};
    const kv = await KVStore.create('dist_sync');
    await kv.init(21, new Float32Array(2));
    const out = new Float32Array(2);
    await kv.pushPull(21, Float32Array.of(2, 2), out);
    console.log('value', [...out].join());
    await kv.close();
    `,
  );
  const run = launches.start([
    ...['-n', '1', '-s', '1', '--env-server', `GRADLINK_SERVER_MODULE=${updater}`],
    ...[process.execPath, app],
  ]);
  const { code, stdout } = await run.ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'value 42,42\n' });
});
