// Named arrays in files of the safetensors layout, and headers that lie.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeEach, describe, expect, it } from 'vitest';

import { GradlinkError } from '../../lib/index.js';
import { readTensors, writeTensors } from '../../lib/train/checkpoints/tensor-file.js';
import type { NamedArray } from '../../lib/train/checkpoints/types.js';
import { folderOfEachTest } from '../support/folders.js';

const noSafetensors = spawnSync('python3', ['-c', 'import safetensors']).status !== 0;

let folder: string;
let path: string;
folderOfEachTest((made) => (folder = made));
beforeEach(() => {
  path = join(folder, 'model.safetensors');
});

function arrays(rank: number, step: number): NamedArray[] {
  return [
    { name: 'a', shape: [3], data: new Float32Array(3).fill(rank + step / 1000) },
    { name: 'µ', shape: [1, 2], data: new Int32Array([step, -1]) },
  ];
}

describe('a file of tensors', () => {
  /** As the format is published: 8 bytes of length, a JSON object, the arrays. */
  function write(header: unknown, body = Buffer.alloc(8)): void {
    const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    writeFileSync(path, Buffer.concat([length, text, body]));
  }

  it('is what the format says', () => {
    writeTensors(path, arrays(2, 7));
    const bytes = readFileSync(path);
    const length = Number(bytes.readBigUInt64LE());
    expect(length % 8).toBe(0);
    const header = JSON.parse(bytes.toString('utf8', 8, 8 + length)) as Record<string, unknown>;
    expect(header).toEqual({
      __metadata__: { gradlink: '2' },
      a: { dtype: 'F32', shape: [3], data_offsets: [0, 12] },
      µ: { dtype: 'I32', shape: [1, 2], data_offsets: [12, 20] },
    });
    expect(bytes.readFloatLE(8 + length + 8)).toBe(Math.fround(2.007));
    expect(bytes.readInt32LE(8 + length + 12)).toBe(7);
    expect(bytes).toHaveLength(8 + length + 20);
  });

  it("is one that Python's safetensors reads", (context) => {
    if (noSafetensors) context.skip("Python's package safetensors is not installed");
    writeTensors(path, [
      ...arrays(2, 7),
      { name: 'none', shape: [0, 4], data: new Float32Array() },
    ]);
    const read = `import json, safetensors, sys
tensors = safetensors.deserialize(open(sys.argv[1], 'rb').read())
print(json.dumps([[name, t['dtype'], t['shape'], bytes(t['data']).hex()] for name, t in tensors]))`;
    const { stdout, stderr } = spawnSync('python3', ['-c', read, path], { encoding: 'utf8' });
    expect(stderr).toBe('');
    const third = Buffer.from(Float32Array.of(2.007).buffer).toString('hex');
    expect((JSON.parse(stdout) as [string][]).sort()).toEqual([
      ['a', 'F32', [3], third.repeat(3)],
      ['none', 'F32', [0, 4], ''],
      ['µ', 'I32', [1, 2], '07000000ffffffff'],
    ]);
  });

  it('gives back any names, and arrays in any order', () => {
    const names = ['__proto__', 'constructor', '', '0', 'b/ü"\\'];
    const given = names.map((name, at) => ({ name, shape: [], data: new Float32Array([at]) }));
    writeTensors(path, given);
    expect(new Map(readTensors(path).map(({ name, data }) => [name, data[0]]))).toEqual(
      new Map(names.map((name, at) => [name, at])),
    );
    const one = { dtype: 'F32', shape: [1], data_offsets: [4, 8] };
    write(
      { second: one, first: { ...one, data_offsets: [0, 4] } },
      Buffer.from([...Array(8).keys()]),
    );
    expect(
      readTensors(path).map(({ name, data }) => [name, new Uint8Array(data.buffer)[0]]),
    ).toEqual([
      ['second', 4],
      ['first', 0],
    ]);
  });

  const good = { dtype: 'F32', shape: [2], data_offsets: [0, 8] };
  it.each([
    ['null', 'null', /JSON object/],
    ['an array', '[]', /JSON object/],
    ['white space before it', ` ${JSON.stringify({ x: good })}`, /JSON object/],
    ['no JSON', '{"x":', /invalid JSON \(.*column 6/],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /UTF-8/],
    ['nothing', {}, /\b0 bytes, 8\b/],
    ['an array that is none', { x: null }, /\bx .*no dtype/],
    ['a name that a terminal acts on', { '\u001b[2J': null }, /\\u001b\[2J .*no dtype/],
    ['another dtype', { x: { ...good, dtype: 'F64', shape: [1] } }, /x has dtype "F64"/],
    ['no dtype', { x: { ...good, dtype: undefined } }, /\bx .*dtype undefined/],
    ['no shape', { x: { ...good, shape: 2 } }, /x has shape 2/],
    ['a negative shape', { x: { ...good, shape: [-1, -2] } }, /x has shape \[-1,-2\]/],
    ['a broken shape', { x: { ...good, shape: [1.5] } }, /x has shape \[1.5\]/],
    ['a shape of more', { x: { ...good, shape: [3] } }, /x has 8 bytes, .*\[3\] 12/],
    ['a shape beyond all', { x: { ...good, shape: Array(40).fill(2 ** 50) } }, /x has 8 bytes/],
    ['no offsets', { x: { ...good, data_offsets: undefined } }, /x has data_offsets undefined/],
    ['one offset', { x: { ...good, data_offsets: [0] } }, /data_offsets \[0\]/],
    ['negative offsets', { x: { ...good, data_offsets: [-4, 4] } }, /data_offsets \[-4,4\]/],
    ['offsets the other way round', { x: { ...good, data_offsets: [8, 0] } }, /\[8,0\]/],
    ['offsets behind the end', { x: { ...good, data_offsets: [8, 16] } }, /\bbyte 8\b/],
    ['a gap', { x: { ...good, shape: [1], data_offsets: [4, 8] } }, /\bbyte 4, expected 0/],
    ['an overlap', { x: good, y: { ...good, shape: [1], data_offsets: [4, 8] } }, /\bbyte 4\b/],
    ['bytes of nobody', { x: { ...good, shape: [1], data_offsets: [0, 4] } }, /\b4 bytes, 8\b/],
    ['metadata that are no text', { __metadata__: { a: 1 }, x: good }, /__metadata__ .*record/],
  ])('with a header of %s is refused', (_, header, message) => {
    if (Buffer.isBuffer(header)) {
      write('{ }');
      const bytes = readFileSync(path);
      header.copy(bytes, 8);
      writeFileSync(path, bytes);
    } else {
      write(header);
    }
    expect(() => readTensors(path)).toThrow(message);
    expect(() => readTensors(path)).toThrow(GradlinkError);
  });

  it.each([0n, 1n, 2n ** 63n, 2n ** 64n - 1n, 100_000_001n, 1000n])(
    'whose header has %s bytes is refused',
    (length) => {
      write({ x: good });
      const bytes = readFileSync(path);
      bytes.writeBigUInt64LE(length);
      writeFileSync(path, bytes);
      expect(() => readTensors(path)).toThrow(`header has ${length} bytes, expected 2 `);
    },
  );

  it('is not written of names that are alike and shapes that do not fit', () => {
    const [one] = arrays(0, 0);
    const wrong = [
      [one!, one!],
      [{ ...one!, name: '__metadata__' }],
      [{ ...one!, shape: [2] }],
      [{ ...one!, shape: [-1, -3] }],
    ];
    for (const given of wrong) {
      expect(() => writeTensors(path, given)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }) as Error,
      );
    }
    expect(existsSync(path)).toBe(false);
  });
});
