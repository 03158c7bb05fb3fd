// What ranks tell each other before a call of several parts: its name and what it brings, so that a mismatch is seen by all
// before anything moves, and shows what each called.
import { GradlinkError } from '../errors.js';
import type { Communicator } from './communicator.js';
import { hashOf } from './hash.js';
import type { CallOptions } from './types.js';

/** One short message of the engine. */
const headerBytes = 256;
const textAt = 16;

/** What ranks that are asked to agree say of their call. */
export interface Said {
  readonly op: string;
  /** As the caller named the call; empty where it did not. */
  readonly name: string;
  /** What must be equal on all ranks. */
  readonly brings: string;
  /** What may differ: every rank gets everybody's. */
  readonly count: number;
}

const textOf = ({ op, name, brings }: Said): string =>
  `${op}${name === '' ? '' : ` '${name}'`} of ${brings}`;

/**
 * Collective.
 *
 * @returns everybody's count.
 * @throws GradlinkError ERR_MISMATCH, on every rank, where they say different things; the communicator stays usable.
 */
export async function agree(
  communicator: Communicator,
  said: Said,
  calls: CallOptions,
): Promise<number[]> {
  const header = new Uint8Array(headerBytes);
  const view = new DataView(header.buffer);
  const text = textOf(said);
  view.setFloat64(0, said.count);
  view.setInt32(8, hashOf(text));
  new TextEncoder().encodeInto(text, header.subarray(textAt));
  const all = await communicator.allGather(header, calls);
  const whole = new DataView(all.buffer, all.byteOffset, all.byteLength);
  const ranks = Array.from({ length: communicator.size }, (_, rank) => rank);
  const hashes = ranks.map((rank) => whole.getInt32(rank * headerBytes + 8));
  if (hashes.some((hash) => hash !== hashes[0])) {
    throw different(
      said.op,
      ranks.map((rank) => [rank, hashes[rank]!, shown(all, rank)] as const),
    );
  }
  return ranks.map((rank) => whole.getFloat64(rank * headerBytes));
}

function shown(all: Uint8Array, rank: number): string {
  const bytes = all.subarray(rank * headerBytes + textAt, (rank + 1) * headerBytes);
  const text = new TextDecoder().decode(bytes).replace(/\0+$/, '');
  return bytes.at(-1) === 0 ? text : `${text.replace(/�+$/, '')}…`;
}

function different(
  op: string,
  told: readonly (readonly [rank: number, hash: number, text: string])[],
): GradlinkError {
  const groups = new Map<number, { readonly ranks: number[]; readonly text: string }>();
  for (const [rank, hash, text] of told) {
    const group = groups.get(hash) ?? { ranks: [], text };
    group.ranks.push(rank);
    groups.set(hash, group);
  }
  const listed = [...groups.values()];
  const calls = listed.map(
    ({ ranks, text }) =>
      `${ranks.length === 1 ? 'rank' : 'ranks'} ${ranks.join(', ')} called ${text}`,
  );
  const message = `${op}: the ranks made different calls: ${calls.join('; ')}. All ranks must call the same with the same name, lengths and types`;
  return new GradlinkError('ERR_MISMATCH', message, {
    op,
    rank: listed[1]!.ranks[0]!,
    usable: true,
  });
}
