// What becomes of lines that are longer than there is room for.
import { readdirSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';

import { describe, expect, it } from 'vitest';

import { JobOutput } from '../../lib/launch/output.js';
import { folderOfEachTest } from '../support/folders.js';

const mebibyte = 2 ** 20;

describe('the last lines of a process', () => {
  let directory = '';
  folderOfEachTest((made) => (directory = made));
  const rank = (index: number) =>
    ({ role: 'worker', index, label: String(index), pid: undefined }) as const;

  const words = Array.from({ length: 11 }, (_, line) => `${'x'.repeat(999)}${line}`);
  const last = words.slice(1).map((line) => line.slice(0, 1000));
  it.each([
    ['just above', 'stderr', 14, []],
    ['far above', 'stderr', 15, last],
    ['on another output', 'stdout', 0, last],
  ] as const)('that stand %s are told or not', async (_, name, others, told) => {
    const [stdout, stderr] = [new PassThrough().resume(), new PassThrough().resume()];
    const output = new JobOutput({ stdout, stderr, tag: false, directory });
    const [first, second] = [new PassThrough(), new PassThrough()];
    output.attach({ ...rank(1), role: 'server' }, name, first);
    first.end(`${words.join('\n')}\n`);
    await output.ended();
    output.attach(rank(0), 'stderr', second);
    second.end('another\n'.repeat(others));
    await output.ended();
    expect(output.unseenLines('1')).toEqual(told);
    expect(output.lastLines('1')).toEqual(last);
    await output.close();
    const file = `server-1.${name === 'stderr' ? 'err' : 'out'}`;
    expect(readdirSync(directory).sort()).toEqual(['rank-0.err', file]);
  });
});

it('a line for which there is no room has one tag', async () => {
  const [stdout, stderr, source] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let length = 0;
  let tags = 0;
  stdout.on('data', (data: Buffer) => {
    length += data.length;
    for (let at = data.indexOf('['); at >= 0; at = data.indexOf('[', at + 1)) tags += 1;
  });
  const output = new JobOutput({ stdout, stderr, tag: true });
  output.attach({ index: 0, label: '0', pid: undefined }, 'stdout', source);
  const part = Buffer.alloc(16 * mebibyte, 'x');
  // Above the 64 MiB of all lines together, so that it comes in two.
  for (let i = 0; i < 5; i += 1) source.write(part);
  source.end('\nnext\n');
  await output.ended();
  stdout.end();
  await finished(stdout);
  expect({ tags, length }).toEqual({
    tags: 2,
    length: 5 * part.length + '[0] \n[0] next\n'.length,
  });
});
