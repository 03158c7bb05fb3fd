import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, describe, expect, it, vi } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import { mergeTimelines } from '../../lib/files/timeline.js';
import { errorWith } from '../support/errors.js';
import { ranksOfTests } from '../support/ranks.js';
import { folderOfEachTest } from '../support/folders.js';
import { spansIn } from '../support/timelines.js';

const open = ranksOfTests();
let folder: string;
folderOfEachTest((made) => (folder = made));
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('the timeline of a communicator', () => {
  it('has each operation of each rank, one after the other', async () => {
    const ranks = await open(2);
    const file = join(folder, 'trace.json');
    for (const one of ranks) one.startTimeline(file);
    await Promise.all(
      ranks.flatMap((one) => [
        one.allReduce(new Float32Array(1000)),
        one.broadcast(new Float64Array(3)),
        one.neighborAllReduce(new Float32Array(2)),
        one.barrier(),
      ]),
    );
    ranks[0]!.sendSync(new Uint8Array(5), { to: 1 });
    ranks[1]!.receiveSync(new Uint8Array(5));
    for (const one of ranks) one.stopTimeline();
    for (const one of ranks) one.stopTimeline();
    await Promise.all(ranks.map((one) => one.barrier()));
    const files = ranks.map((_, rank) => join(folder, `trace.rank-${rank}.json`));
    files.forEach((path, rank) => {
      const events = spansIn(path);
      expect(events.map(({ name, args }) => [name, args.bytes])).toEqual([
        ['allReduce', 4000],
        ['broadcast', 24],
        ['neighborAllReduce', 8],
        ['barrier', 0],
        [rank === 0 ? 'send' : 'receive', 5],
      ]);
      events.slice(1).forEach((event, i) => {
        expect(event.pid).toBe(rank);
        // In microseconds with three digits.
        expect(event.ts).toBeGreaterThanOrEqual(events[i]!.ts + events[i]!.dur - 0.002);
      });
    });
    const merged = join(folder, 'all.json');
    mergeTimelines(files, merged);
    expect(spansIn(merged)).toHaveLength(10);
  });

  it('says in ms how long an operation waited for the one before it', async () => {
    const [one, other] = await open(2);
    one!.startTimeline(join(folder, 'trace.json'));
    const issuedAt = performance.now();
    const calls = [one!.barrier(), one!.barrier()];
    const waiting = performance.now();
    while (performance.now() < waiting + 3);
    await Promise.all([...calls, other!.barrier(), other!.barrier()]);
    one!.stopTimeline();
    const [, second] = spansIn(join(folder, 'trace.rank-0.json'));
    expect(second!.args.waitedMs).toBeGreaterThanOrEqual(3);
    expect(second!.args.waitedMs).toBeLessThan(performance.now() - issuedAt);
  });

  it('has what failed too, and ends with the communicator', async () => {
    const group = Communicator.local(2);
    const file = join(folder, 'group.json');
    group.startTimeline(file);
    expect(() => {
      group.startTimeline(file);
    }).toThrow(/call stopTimeline\(\) first/);
    group.allReduceSync([new Float32Array(1), new Float32Array(1)]);
    await group.allReduce([new Float32Array(70_000), new Float32Array(70_000)]);
    expect(spansIn(file)).toEqual([]);
    await group.close();
    expect(spansIn(file).map(({ name }) => name)).toEqual(['allReduce', 'allReduce']);

    const ranks = await open(2);
    ranks[0]!.startTimeline(file);
    await Promise.allSettled([
      ranks[0]!.allReduce(new Float32Array(1)),
      ranks[1]!.allReduce(new Float32Array(2)),
    ]);
    ranks[0]!.stopTimeline();
    expect(spansIn(join(folder, 'group.rank-0.json')).map(({ name }) => name)).toEqual([
      'allReduce',
    ]);
  });

  it('of the world is written where GRADLINK_TIMELINE says', async () => {
    vi.stubEnv('GRADLINK_TIMELINE', join(folder, 'world.json'));
    const world = await Communicator.world();
    await world.barrier();
    await world.close();
    expect(spansIn(join(folder, 'world.rank-0.json')).map(({ name }) => name)).toEqual(['barrier']);
  });

  it('says which file cannot be written', async () => {
    const [one] = await open(1);
    expect(() => {
      one!.startTimeline(join(folder, 'no', 'trace.json'));
    }).toThrow(expect.objectContaining({ code: 'ERR_SYSTEM' }) as Error);
    const file = join(folder, 'trace.json');
    const link = join(folder, 'trace.rank-0.json');
    symlinkSync(file, link);
    expect(() => {
      one!.startTimeline(file);
    }).toThrow(errorWith('ERR_SYSTEM', /trace\.rank-0\.json .*\blink\b/));
    rmSync(link);
    one!.startTimeline(file);
  });
});
