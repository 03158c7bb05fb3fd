// Named arrays in a file in safetensors format: the header's length, the header in JSON, the arrays. Reads and writes
// in pieces, without further memory.
import { createHash, type Hash } from 'node:crypto';
import { closeSync, readSync } from 'node:fs';

import { fileFailure, openRegular, writeOwnFile } from '../../files/index.js';
import {
  DamagedFile,
  decodeHeader,
  encodeHeader,
  headerLength,
  lengthBytes,
  type TensorPlace,
} from './tensor-header.js';
import type { NamedArray } from './types.js';

/** A file's size and hash. */
export interface Digest {
  readonly bytes: number;
  /** 64 hexadecimal digits, as from sha256sum. */
  readonly sha256: string;
}

const pieceBytes = 16 * 2 ** 20;

const bytesOf = ({ data }: NamedArray): Uint8Array =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/**
 * Writes a file atomically. Validates the header first.
 *
 * @throws TypeError with a code for repeated names and shapes that do not match the data; GradlinkError ERR_SYSTEM if
 *   it cannot be written.
 */
export function writeTensors(path: string, arrays: readonly NamedArray[]): Digest {
  const pieces = [encodeHeader(arrays), ...arrays.map(bytesOf)];
  const hash = createHash('sha256');
  let bytes = 0;
  const hashed = function* (): Generator<Uint8Array> {
    for (const piece of pieces) {
      for (let from = 0; from < piece.length; from += pieceBytes) {
        const part = piece.subarray(from, from + pieceBytes);
        hash.update(part);
        bytes += part.length;
        yield part;
      }
    }
  };
  writeOwnFile(path, hashed());
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * Reads the arrays of a file.
 *
 * @param expected its digest; absent: only the header and length are verified.
 * @throws GradlinkError ERR_SYSTEM that names the file, if it is absent or damaged.
 */
export function readTensors(path: string, expected?: Digest): NamedArray[] {
  return read(path, expected, (file) => {
    const places = header(file);
    const byOffset = [...places].sort((a, b) => a.from - b.from);
    const arrays = new Map(byOffset.map((place) => [place.name, arrayOf(file, place)]));
    return places.map(({ name }) => arrays.get(name)!);
  });
}

/** As {@link readTensors}, without keeping the arrays. */
export function checkTensors(path: string, expected?: Digest): void {
  read(path, expected, (file) => {
    header(file);
    const piece = new Uint8Array(Math.min(pieceBytes, file.left));
    while (file.left > 0) file.fill(piece.subarray(0, Math.min(piece.length, file.left)));
  });
}

class Reading {
  left: number;
  readonly hash: Hash | undefined;

  constructor(
    readonly descriptor: number,
    readonly bytes: number,
    hashed: boolean,
  ) {
    this.left = bytes;
    this.hash = hashed ? createHash('sha256') : undefined;
  }

  fill(into: Uint8Array): void {
    for (let done = 0; done < into.length;) {
      const length = Math.min(into.length - done, pieceBytes);
      const got = readSync(this.descriptor, into, done, length, null);
      if (got === 0) throw new DamagedFile('it was cut short while it was read');
      this.hash?.update(into.subarray(done, done + got));
      done += got;
    }
    this.left -= into.length;
  }
}

function read<T>(path: string, expected: Digest | undefined, take: (file: Reading) => T): T {
  try {
    const { descriptor, bytes } = openRegular(path);
    try {
      if (expected !== undefined && bytes !== expected.bytes) {
        throw new DamagedFile(`it has ${bytes} bytes, ${expected.bytes} were written`);
      }
      const file = new Reading(descriptor, bytes, expected !== undefined);
      const taken = take(file);
      if (expected !== undefined && file.hash?.digest('hex') !== expected.sha256) {
        throw new DamagedFile('its checksum does not match, so it was altered');
      }
      return taken;
    } finally {
      closeSync(descriptor);
    }
  } catch (cause) {
    throw fileFailure(path, 'read', cause);
  }
}

function header(file: Reading): TensorPlace[] {
  if (file.left < lengthBytes) throw new DamagedFile(`it has ${file.left} bytes, too few`);
  const start = new Uint8Array(lengthBytes);
  file.fill(start);
  const text = new Uint8Array(headerLength(start, file.bytes));
  file.fill(text);
  return decodeHeader(text, file.left);
}

function arrayOf(file: Reading, { name, dtype, shape, bytes }: TensorPlace): NamedArray {
  const buffer = new ArrayBuffer(bytes);
  file.fill(new Uint8Array(buffer));
  return { name, shape, data: dtype === 'I32' ? new Int32Array(buffer) : new Float32Array(buffer) };
}
