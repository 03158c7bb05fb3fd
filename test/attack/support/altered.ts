// A file as disks, copies and hands alter it.
import type { Random } from './random.js';

export interface Altered {
  readonly how: string;
  readonly bytes: Buffer;
}

function* each(bytes: Buffer, random: Random): Generator<Altered> {
  for (let at = 0; at < bytes.length; at += 1) {
    const flipped = Buffer.from(bytes);
    flipped[at] = bytes[at]! ^ (1 + random.int(255));
    yield { how: `byte ${at} flipped`, bytes: flipped };
    yield { how: `cut at ${at}`, bytes: bytes.subarray(0, at) };
    const zeros = Buffer.from(bytes).fill(0, at);
    yield { how: `zeros from ${at}`, bytes: zeros };
  }
}

function spliced(bytes: Buffer, random: Random): Altered {
  const from = random.int(bytes.length);
  const length = random.int(bytes.length - from + 1);
  const to = random.int(bytes.length + 1);
  const replaced = random.chance(0.5) ? length : random.int(bytes.length - to + 1);
  const piece = random.chance(0.8)
    ? bytes.subarray(from, from + length)
    : Buffer.from(random.bytes(length));
  const end = bytes.subarray(to + replaced);
  return {
    how: `${replaced} bytes from ${to} replaced by ${length} of ${from}`,
    bytes: Buffer.concat([bytes.subarray(0, to), piece, end]),
  };
}

function appended(bytes: Buffer, random: Random): Altered {
  const more = random.chance(0.5)
    ? Buffer.from(random.bytes(1 + random.int(20)))
    : bytes.subarray(0, 1 + random.int(bytes.length));
  return { how: `${more.length} bytes more`, bytes: Buffer.concat([bytes, more]) };
}

/** Every byte flipped, a cut and a tail of zeros at every length, and as much at random; never what it was. */
export function* alterationsOf(bytes: Buffer, random: Random, drawn: number): Generator<Altered> {
  const same = (altered: Altered): boolean => altered.bytes.equals(bytes);
  for (const altered of each(bytes, random)) if (!same(altered)) yield altered;
  for (let count = 0; count < drawn; count += 1) {
    const altered = random.chance(0.8) ? spliced(bytes, random) : appended(bytes, random);
    if (!same(altered)) yield altered;
  }
}
