// Named arrays in a file, in the safetensors layout: the length of a header, the header in JSON, the arrays.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';

import { GradlinkError } from '../errors.js';

/** An array with its place in a model or an optimizer. */
export interface NamedArray {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array | Int32Array;
}

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

const headBytes = 8;
const alignment = 8;

/** Writes the file whole or not at all: under another name first, on the disk before it gets its own. */
export function writeWhole(path: string, parts: readonly (Uint8Array | string)[]): void {
  const draft = `${path}.partial`;
  const file = openSync(draft, 'w');
  try {
    for (const part of parts) writeAll(file, typeof part === 'string' ? Buffer.from(part) : part);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
}

/** Names must differ. */
export function writeTensors(path: string, arrays: readonly NamedArray[]): void {
  const header: Record<string, Entry> = {};
  let offset = 0;
  for (const { name, shape, data } of arrays) {
    const dtype = data instanceof Float32Array ? 'F32' : 'I32';
    header[name] = { dtype, shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  const text = JSON.stringify(header);
  const padded = text.padEnd(Math.ceil(text.length / alignment) * alignment);
  const encoded = Buffer.from(padded);
  const head = Buffer.alloc(headBytes);
  head.writeBigUInt64LE(BigInt(encoded.length));
  const bytes = arrays.map(
    ({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  );
  writeWhole(path, [head, encoded, ...bytes]);
}

/** @throws GradlinkError ERR_SYSTEM that names the file, where it is absent or damaged. */
export function readTensors(path: string): NamedArray[] {
  try {
    const bytes = readFileSync(path);
    const headerEnd = headBytes + Number(bytes.readBigUInt64LE());
    const text = bytes.subarray(headBytes, headerEnd).toString();
    const body = bytes.subarray(headerEnd);
    return Object.entries(JSON.parse(text) as Record<string, Entry>).map(([name, entry]) => {
      const [from, to] = entry.data_offsets;
      if (to > body.length) throw new Error(`it ends before ${name} does`);
      // A copy of its own: the file's place of an array need not be a multiple of 4.
      const copy = Uint8Array.prototype.slice.call(body, from, to).buffer;
      const data = entry.dtype === 'I32' ? new Int32Array(copy) : new Float32Array(copy);
      return { name, shape: entry.shape, data };
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new GradlinkError('ERR_SYSTEM', `${path} cannot be read: ${why}`, { cause });
  }
}
