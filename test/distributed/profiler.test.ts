// What servers note of their work: MXNet's profiler with profile_process='server', whose nightly test
// (test_server_profiling.py) looks for a file of each server that parses.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { mergeTimelines } from '../../lib/files/timeline.js';
import { errorWith } from '../support/errors.js';
import { folderOfEachTest } from '../support/folders.js';
import { Scripts, well } from '../support/processes.js';
import { eventsIn, type Event } from '../support/timelines.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

let folder: string;
let file: string;
folderOfEachTest((made) => {
  folder = made;
  file = join(folder, 'profile.json');
});
const ofServer = (server: number) => join(folder, `profile.server-${server}.json`);

const sum = (events: readonly Event[]) => events.reduce((all, { args }) => all + args.bytes, 0);
const called = (events: readonly Event[], name: string, key?: string) =>
  events.filter((event) => event.name === name && (key === undefined || event.args.key === key));

const size = { workers: 2, servers: 2 };
// `big` lies on both servers, in pieces of 256 KiB.
const bigBytes = 4 * 200_000;
const begin = (type = 'dist_sync') => `
  ${helpers}
  import { LAMB, SGD } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
  const kv = await KVStore.create('${type}', { bigArrayBound: 10_000 });
  const file = ${JSON.stringify(file)};
  await kv.init(['small', 'big'], [filled(8, 0), filled(200_000, 0)]);
  await kv.setOptimizer(new SGD());
  const step = async (value = 1) => {
    for (const [key, length] of [['small', 8], ['big', 200_000]]) {
      const array = filled(length, value);
      await kv.push(key, array);
      await kv.pull(key, array);
    }
  };
  await kv.barrier();
`;

describe('setServerProfiler', () => {
  it.each(['dist_sync', 'dist_async'])(
    'of %s: who pushed what, what became of it',
    { tags: 'smoke' },
    async (type) => {
      const { workers, servers } = await runJob(
        scripts,
        size,
        `${begin(type)}
      await step();
      // Else a step of worker 0 may still be answered when worker 1 begins.
      await kv.barrier();
      if (kv.rank === 1) await kv.setServerProfiler(file);
      await kv.barrier();
      for (let i = 0; i < 3; ++i) await step();
      await kv.barrier();
      // Worker 0 ends what worker 1 began.
      if (kv.rank === 0) await kv.setServerProfiler(null);
      await kv.barrier();
      await step();
      await kv.close();`,
      );
      for (const ended of [...workers, ...servers]) expect(ended).toMatchObject(well);
      const all = [0, 1].map((server) => eventsIn(ofServer(server)));
      const events = all.flat();

      // Three steps of two workers: each byte is received, merged in a step, and answered.
      const pushed = called(events, 'receive push', 'big');
      expect(sum(pushed)).toBe(3 * 2 * bigBytes);
      for (const worker of [0, 1]) {
        const own = pushed.filter(({ args }) => args.worker === worker);
        expect(sum(own)).toBe(3 * bigBytes);
        const answers = called(events, 'answer', 'big').filter(
          ({ args }) => args.worker === worker,
        );
        expect(sum(answers)).toBe(3 * bigBytes);
      }
      const updates = called(events, 'update', 'big');
      expect(sum(updates)).toBe(3 * 2 * bigBytes);
      const together = type === 'dist_sync' ? 2 : 1;
      expect(new Set(updates.map(({ args }) => args.pushes))).toEqual(new Set([together]));
      // Four pieces, two on each server.
      expect(updates).toHaveLength((3 * 4 * 2) / together);
      expect(sum(called(events, 'receive push', 'small'))).toBe(3 * 2 * 32);
      expect(called(events, 'receive barrier').length).toBeGreaterThanOrEqual(2 * 2);
      expect(events.filter(({ name }) => name === 'receive init' || name === 'merge')).toEqual([]);

      for (const [server, own] of all.entries()) {
        expect(new Set(own.map(({ pid }) => pid))).toEqual(new Set([2 + server]));
        const named = own.filter(({ ph }) => ph === 'M').map(({ args }) => args.name);
        expect(named.slice(0, 4)).toEqual([`server ${server}`, undefined, 'receive', 'pipeline 0']);
        const lanes = new Set(own.filter(({ name }) => name === 'update').map(({ tid }) => tid));
        expect(Math.min(...lanes)).toBeGreaterThan(0);
        for (const { ph, ts, dur } of own) {
          if (ph === 'M') continue;
          expect(ts).toBeGreaterThanOrEqual(0);
          if (ph === 'X') expect(dur).toBeGreaterThanOrEqual(0);
        }
        // What one pipeline does it does one after the other; to the nearest nanosecond.
        for (const lane of lanes) {
          const work = own.filter(({ ph, tid }) => ph === 'X' && tid === lane);
          const inOrder = work.sort((a, b) => a.ts - b.ts);
          for (const [i, next] of inOrder.slice(1).entries()) {
            const before = inOrder[i]!;
            expect(next.ts).toBeGreaterThan(before.ts + before.dur - 0.01);
          }
        }
      }
      mergeTimelines([ofServer(0), ofServer(1)], join(folder, 'all.json'));
      expect(eventsIn(join(folder, 'all.json'))).toHaveLength(events.length);
    },
  );

  it('tells merging from updating, and the time of an updater', async () => {
    const { workers } = await runJob(
      scripts,
      { ...size, serving: 'updater: (key, received, stored) => stored.set(received),' },
      `${helpers}
      import { SGD } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
      const kv = await KVStore.create('dist_sync');
      await kv.init(['plain', 'packed'], [filled(1000, 0), filled(1000, 0)]);
      await kv.barrier();
      if (kv.rank === 0) await kv.setServerProfiler(${JSON.stringify(file)});
      await kv.barrier();
      const out = filled(1000, 1);
      await kv.pushPull('plain', out); // by the servers' updater
      await kv.setGradientCompression({ type: '2bit' });
      await kv.setOptimizer(new SGD());
      await kv.pushPull('packed', out); // decoded first
      await kv.setOptimizer(null);
      await kv.pushPull('packed', out); // assigned
      report(out.length);
      await kv.close();`,
    );
    for (const ended of workers) expect(ended).toMatchObject(well);
    const events = [0, 1].flatMap((server) => eventsIn(ofServer(server)));
    const work = (key: string) =>
      events
        .filter(({ name, args }) => (name === 'merge' || name === 'update') && args.key === key)
        .map(({ name, args }) => [name, args.pushes, args.bytes]);
    expect(work('plain')).toEqual([
      ['merge', 2, 8000],
      ['update', 2, 8000],
    ]);
    // 2 bits a number.
    expect(work('packed')).toEqual([
      ['merge', 2, 504],
      ['update', 2, 504],
      ['merge', 2, 504],
    ]);
  });

  it('a file that cannot be written is the error of who asked, and no server goes on', async () => {
    mkdirSync(ofServer(1));
    const { workers, servers } = await runJob(
      scripts,
      size,
      `${begin()}
      const { default: { join, dirname } } = await import('node:path');
      if (kv.rank === 0) {
        report(await outcome(kv.setServerProfiler(join(dirname(file), 'missing', 'profile.json'))));
        // Server 0 could write its own.
        report(await outcome(kv.setServerProfiler(file)));
        const other = join(dirname(file), 'other.json');
        await kv.setServerProfiler(other);
        report(await outcome(kv.setServerProfiler(file)));
        await step();
        await kv.setServerProfiler(null);
        await kv.setServerProfiler(null);
        report(await outcome(kv.setServerProfiler('')));
        report(await outcome(kv.setServerProfiler(7)));
      } else {
        await step();
      }
      await kv.close();`,
    );
    for (const ended of servers) expect(ended).toMatchObject(well);
    expect(workers[1]).toMatchObject(well);
    const failed = (message: RegExp) => errorWith('ERR_SYSTEM', message);
    expect(workers[0]).toMatchObject({
      ...well,
      reports: [
        failed(/^setServerProfiler: server [01]: .*missing/),
        failed(/^setServerProfiler: server 1: .*profile\.server-1\.json/),
        failed(/other\.server-[01]\.json.*setServerProfiler\(null\)/),
        { code: 'ERR_INVALID_ARG_VALUE' },
        { code: 'ERR_INVALID_ARG_TYPE' },
      ],
    });
    // The second start of worker 0 did not end the first.
    for (const server of [0, 1]) {
      const events = eventsIn(join(folder, `other.server-${server}.json`));
      expect(called(events, 'update', 'big')).toHaveLength(2);
    }
    expect(called(eventsIn(ofServer(0)), 'update')).toEqual([]);
  });

  it('a worker that fails to begin does not end what another has begun', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${begin()}
      if (kv.rank === 0) await kv.setServerProfiler(file);
      await kv.barrier();
      await step();
      if (kv.rank === 1) report((await outcome(kv.setServerProfiler(file + '2'))).code);
      // The same once more is the same.
      await kv.setServerProfiler(file);
      await kv.barrier();
      await step();
      await kv.close();`,
    );
    expect(workers[1]).toMatchObject({ ...well, reports: ['ERR_SYSTEM'] });
    // Nobody ended it: the store's end did.
    for (const server of [0, 1]) {
      expect(called(eventsIn(ofServer(server)), 'update', 'big')).toHaveLength(4);
    }
    expect(existsSync(`${ofServer(0)}2`)).toBe(false);
  });

  it('two stores do not write one file', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${begin()}
      const other = await KVStore.create('dist_sync');
      if (kv.rank === 0) {
        await kv.setServerProfiler(file);
        report((await outcome(other.setServerProfiler(file))).message);
        await kv.setServerProfiler(null);
        await other.setServerProfiler(file);
      }
      await other.close();
      await kv.close();`,
    );
    const text = expect.stringMatching(/server-[01]\.json.*another store/) as unknown;
    expect(workers[0]).toMatchObject({ ...well, reports: [text] });
  });
});
