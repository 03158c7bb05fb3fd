// The header of a safetensors file, which locates the arrays. It is trusted only within the format
// (https://huggingface.co/docs/safetensors): arrays follow each other without gaps up to the end of the file.
import { argumentError } from '../../errors.js';
import { printable } from '../../printable.js';
import { parseJson } from '../../files/json-text.js';
import type { NamedArray } from './types.js';

/** The position of an array, in bytes after the header. */
export interface TensorPlace {
  readonly name: string;
  readonly dtype: 'F32' | 'I32';
  readonly shape: readonly number[];
  readonly from: number;
  readonly bytes: number;
}

/** Bytes of the header's length field. */
export const lengthBytes = 8;
/** The format's limit: longer headers are refused unread. */
export const mostHeaderBytes = 100_000_000;
/** Alignment of the first array. */
const alignment = 8;
const elementBytes = 4;
const metadataName = '__metadata__';

/** A file's damage, in words that follow its name. The text may contain names from the file. */
export class DamagedFile extends Error {
  constructor(words: string) {
    super(printable(words));
  }
}

/** The header for these arrays, with its length before it. */
export function encodeHeader(arrays: readonly NamedArray[]): Buffer {
  const entries: [string, object][] = [[metadataName, { gradlink: '2' }]];
  const names = new Set([metadataName]);
  let offset = 0;
  for (const { name, shape, data } of arrays) {
    if (names.has(name)) {
      const expected = `names that differ, and none of them ${metadataName}`;
      throw argumentError('ERR_INVALID_ARG_VALUE', 'arrays', expected, { text: `'${name}' again` });
    }
    names.add(name);
    const elements = shape.reduce((product, length) => product * length, 1);
    if (elements !== data.length || !isCounts(shape)) {
      const expected = `${data.length} elements, as its data have`;
      const shown = { text: `[${shape.join(', ')}]` };
      throw argumentError('ERR_INVALID_ARG_VALUE', `the shape of ${name}`, expected, shown);
    }
    const dtype = data instanceof Float32Array ? 'F32' : 'I32';
    const end = offset + data.byteLength;
    entries.push([name, { dtype, shape, data_offsets: [offset, end] }]);
    offset = end;
  }
  // fromEntries, because an array may be called __proto__.
  const text = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const padded = Math.ceil(text.length / alignment) * alignment;
  const head = Buffer.alloc(lengthBytes + padded, ' ');
  head.writeBigUInt64LE(BigInt(padded));
  text.copy(head, lengthBytes);
  return head;
}

/** The header's length in a file of `fileBytes`. */
export function headerLength(start: Uint8Array, fileBytes: number): number {
  const { buffer, byteOffset } = start;
  const length = new DataView(buffer, byteOffset, lengthBytes).getBigUint64(0, true);
  const most = Math.min(mostHeaderBytes, fileBytes - lengthBytes);
  if (length < 2n || length > BigInt(most)) {
    throw new DamagedFile(`its header has ${length} bytes, expected 2 to ${most}`);
  }
  return Number(length);
}

/** The positions of the arrays in header order. `bodyBytes`: the size after the header. */
export function decodeHeader(text: Uint8Array, bodyBytes: number): TensorPlace[] {
  const header = parse(text);
  const places = Object.entries(header)
    .filter(([name]) => name !== metadataName)
    .map(([name, entry]) => placeOf(name, entry));
  checkMetadata(header[metadataName]);
  let end = 0;
  for (const place of [...places].sort((a, b) => a.from - b.from || a.bytes - b.bytes)) {
    if (place.from !== end) {
      throw new DamagedFile(`${place.name} begins at byte ${place.from}, expected ${end}`);
    }
    end += place.bytes;
  }
  if (end !== bodyBytes) {
    throw new DamagedFile(`its arrays have ${end} bytes, ${bodyBytes} are there`);
  }
  return places;
}

function parse(text: Uint8Array): Readonly<Record<string, unknown>> {
  const wrong = (why: string): DamagedFile => new DamagedFile(`its header is ${why}`);
  let read: string;
  try {
    read = new TextDecoder('utf-8', { fatal: true }).decode(text);
  } catch {
    throw wrong('no UTF-8 text');
  }
  const header = parseJson(read, wrong);
  if (text[0] !== 0x7b || !isRecord(header))
    throw new DamagedFile('its header is not a JSON object');
  return header;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function checkMetadata(metadata: unknown): void {
  if (metadata === undefined) return;
  if (isRecord(metadata) && Object.values(metadata).every((value) => typeof value === 'string')) {
    return;
  }
  throw new DamagedFile(`its ${metadataName} is not a record of strings`);
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;
const isCounts = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every(isCount);

function placeOf(name: string, entry: unknown): TensorPlace {
  if (!isRecord(entry)) throw new DamagedFile(`${name} has no dtype, shape and data_offsets`);
  const { dtype, shape, data_offsets: offsets } = entry;
  if (dtype !== 'F32' && dtype !== 'I32') {
    throw new DamagedFile(`${name} has dtype ${JSON.stringify(dtype)}, expected F32 or I32`);
  }
  if (!isCounts(shape)) {
    throw new DamagedFile(`${name} has shape ${JSON.stringify(shape)}, expected whole numbers`);
  }
  if (!isCounts(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!) {
    const shown = JSON.stringify(offsets);
    throw new DamagedFile(`${name} has data_offsets ${shown}, expected a begin and an end`);
  }
  const [from, to] = offsets as [number, number];
  const bytes = shape.reduce((product, length) => product * length, elementBytes);
  if (bytes !== to - from) {
    throw new DamagedFile(
      `${name} has ${to - from} bytes, its shape [${shape.join(', ')}] ${bytes}`,
    );
  }
  return { name, dtype, shape, from, bytes };
}
