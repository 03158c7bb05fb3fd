// Timelines are JSON whenever somebody looks, also where the process has died.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { monotonicSeconds } from '../../lib/time.js';
import { mergeTimelines, Timeline, timelineFile } from '../../lib/files/timeline.js';
import { errorWith } from '../support/errors.js';
import { folderOfAllTests } from '../support/folders.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { eventsIn, spansIn } from '../support/timelines.js';

let folder = '';
folderOfAllTests((made) => (folder = made));

const startOf = (file: string): number => {
  const { otherData } = JSON.parse(readFileSync(file, 'utf8')) as {
    otherData: Record<string, number>;
  };
  return otherData['startTimeSinceEpochMicroseconds']!;
};

describe('a timeline', () => {
  it.each([
    ['trace.json', 'trace.rank-3.json'],
    ['runs/1.0/trace', 'runs/1.0/trace.rank-3'],
    ['/tmp/.trace', '/tmp/.trace.rank-3'],
    ['a.b.json', 'a.b.rank-3.json'],
  ])('%s is of all ranks, %s of rank 3', (all, one) => {
    expect(timelineFile(all, 3)).toBe(one);
  });

  it('is valid after every event', () => {
    const file = join(folder, 'valid.json');
    const timeline = new Timeline(file, { rank: 3, buffered: 1 });
    expect(eventsIn(file).every(({ ph }) => ph === 'M')).toBe(true);
    for (let step = 0; step < 20; step += 1) {
      timeline.add(step % 2 === 0 ? 'compute' : 'communication', `läuft ${step}`, 1, 2);
      const events = spansIn(file);
      expect(events).toHaveLength(step + 1);
      expect(events[step]).toMatchObject({
        name: `läuft ${step}`,
        pid: 3,
        tid: step % 2,
        dur: 1e6,
      });
    }
    timeline.close();
    timeline.add('compute', 'too late', 1, 2);
    timeline.close();
    expect(spansIn(file)).toHaveLength(20);
  });

  it.skipIf(noSmallDisk !== undefined)('stays what it was, and valid, on a full disk', () => {
    const disk = new SmallDisk(65_536);
    try {
      const file = join(disk.folder, 'trace.json');
      const timeline = new Timeline(file, { buffered: 1e6 });
      timeline.add('compute', 'first', 1, 2);
      timeline.flush();
      for (let event = 0; event < 1000; event += 1) timeline.add('compute', 'more', 1, 2);
      disk.fill(0);
      const full = errorWith('ERR_SYSTEM', new RegExp(`^${file} .*ENOSPC`));
      expect(() => {
        timeline.flush();
      }).toThrow(full);
      expect(spansIn(file)).toHaveLength(1);
      expect(() => {
        timeline.close();
      }).toThrow(full);
      expect(() => new Timeline(file)).toThrow(full);
      expect(() => {
        mergeTimelines([file], file);
      }).toThrow(full);
      expect(spansIn(file)).toHaveLength(1);
      disk.empty(40_960);
      const few = new Timeline(file);
      few.add('compute', 'again', 1, 2);
      few.close();
      expect(eventsIn(file).some(({ name }) => name === 'again')).toBe(true);
    } finally {
      disk.remove();
    }
  });

  it('names its lanes, and writes when enough has gathered', () => {
    const file = join(folder, 'lanes.json');
    using timeline = new Timeline(file, { buffered: 3 });
    timeline.mark('compute', 'step 0');
    timeline.span('compute', 'work', () => undefined);
    expect(eventsIn(file).some(({ ph }) => ph !== 'M')).toBe(false);
    timeline.add('communication', 'bucket 0', 1, 2, { bytes: 4 });
    const events = eventsIn(file);
    const lanes = events.filter(({ name }) => name === 'thread_name');
    expect(lanes.map(({ tid, args }) => [tid, args.name])).toEqual([
      [0, 'compute'],
      [1, 'communication'],
    ]);
    expect(events.at(-1)).toMatchObject({ name: 'bucket 0', args: { bytes: 4 } });
  });

  it('notes how long work took, also when it fails or is awaited', async () => {
    const file = join(folder, 'span.json');
    const before = monotonicSeconds();
    const timeline = new Timeline(file);
    expect(timeline.span('compute', 'sum', () => 7)).toBe(7);
    expect(() =>
      timeline.span('compute', 'broken', () => {
        throw new Error('no');
      }),
    ).toThrow('no');
    await expect(timeline.span('communication', 'late', () => Promise.resolve(1))).resolves.toBe(1);
    const after = monotonicSeconds();
    timeline.close();
    const events = spansIn(file);
    expect(events.map(({ name }) => name)).toEqual(['sum', 'broken', 'late']);
    for (const { ts, dur } of events) {
      expect(dur).toBeGreaterThanOrEqual(0);
      expect(ts).toBeGreaterThanOrEqual(0);
      expect(ts + dur).toBeLessThanOrEqual((after - before) * 1e6 + 1);
    }
  });

  it('lies beside those of other ranks in one file', () => {
    const files = [0, 1].map((rank) => join(folder, `rank-${rank}.json`));
    files.forEach((file, rank) => {
      using timeline = new Timeline(file, { rank });
      timeline.add('compute', 'pass', monotonicSeconds(), monotonicSeconds());
    });
    const starts = files.map(startOf);
    // Within a minute: microseconds.
    expect(Math.abs(starts[0]! - Date.now() * 1e3)).toBeLessThan(60e6);
    const own = spansIn(files[1]!)[0]!.ts;
    const merged = join(folder, 'merged.json');
    mergeTimelines(files, merged);
    const passes = spansIn(merged);
    expect(passes.map(({ pid }) => pid)).toEqual([0, 1]);
    expect(passes[1]!.ts).toBeCloseTo(own + starts[1]! - starts[0]!, 3);
    expect(() => mergeTimelines([merged, join(folder, 'none.json')], merged)).toThrow(/ENOENT/);
  });

  it.each<readonly [string, (file: string) => void, string, RegExp]>([
    ['a pipe', (file) => execFileSync('mkfifo', [file]), 'ERR_SYSTEM', /regular file/],
    [
      'a file of 1 TiB',
      (file) => {
        writeFileSync(file, '');
        truncateSync(file, 2 ** 40);
      },
      'ERR_SYSTEM',
      /\b268435456$/,
    ],
    ['a torn one', (file) => writeFileSync(file, '{"\u001b'), 'ERR_UNSUPPORTED', /invalid JSON \(/],
    ['a list', (file) => writeFileSync(file, '[]'), 'ERR_UNSUPPORTED', /other JSON/],
    [
      'one of other events',
      (file) =>
        writeFileSync(
          file,
          '{"otherData": {"startTimeSinceEpochMicroseconds": 1}, "traceEvents": [1]}',
        ),
      'ERR_UNSUPPORTED',
      /other JSON/,
    ],
  ])('is not made of %s', (what, make, code, tokens) => {
    const file = join(folder, `${what}.json`);
    make(file);
    const into = join(folder, 'never.json');
    expect(() => mergeTimelines([file], into)).toThrow(errorWith(code, tokens));
    expect(existsSync(into)).toBe(false);
  });
});
