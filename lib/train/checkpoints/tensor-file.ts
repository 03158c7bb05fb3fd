// Named arrays in a file, in the safetensors layout: the length of a header, the header in JSON, the arrays. Written and
// read piece by piece: beside the arrays themselves no memory is needed, whatever their size.
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

/** What a file must be to the byte. */
export interface Digest {
  readonly bytes: number;
  /** 64 hexadecimal digits, as sha256sum prints them. */
  readonly sha256: string;
}

const pieceBytes = 16 * 2 ** 20;

const bytesOf = ({ data }: NamedArray): Uint8Array =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/**
 * Writes a file in one step. The header is checked before anything is written.
 *
 * @throws TypeError with a code for names that are alike and shapes that are not those of the data; GradlinkError
 * ERR_SYSTEM where it cannot be written.
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
 * The arrays of a file.
 *
 * @param expected what it must be; absent: only its header is held against its length.
 * @throws GradlinkError ERR_SYSTEM that names the file, where it is absent or damaged.
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

/** A file that is read from its begin to its end. */
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
