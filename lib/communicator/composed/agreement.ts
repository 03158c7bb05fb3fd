// What ranks tell each other before a call of several parts: its name and what it brings, so that a mismatch is seen by all
// before anything moves, and shows what each called.
import { GradlinkError } from '../../errors.js';
import type { Communicator } from '../communicator.js';
import { hashOf } from '../hash.js';
import type { CallOptions } from '../calls/types.js';

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
 * @returns everybody's count; 0 of ranks that have joined.
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
  const headers = await headersOf(communicator, header, calls);
  const hashes = [...headers].map(([rank, one]) => [rank, viewOf(one).getInt32(8), one] as const);
  if (hashes.some(([, hash]) => hash !== hashes[0]![1])) {
    throw different(
      said.op,
      hashes.map(([rank, hash, one]) => [rank, hash, shown(one)] as const),
    );
  }
  return Array.from({ length: communicator.size }, (_, rank) => {
    const one = headers.get(rank);
    return one === undefined ? 0 : viewOf(one).getFloat64(0);
  });
}

const viewOf = (bytes: Uint8Array) =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** The header of each rank that has not joined. */
async function headersOf(
  communicator: Communicator,
  header: Uint8Array,
  calls: CallOptions,
): Promise<ReadonlyMap<number, Uint8Array>> {
  const { data, counts } = communicator.joinable
    ? await communicator.allGatherV(header, calls)
    : { data: await communicator.allGather(header, calls), counts: undefined };
  const ranks = Array.from({ length: communicator.size }, (_, rank) => rank);
  const told = ranks.filter((rank) => counts === undefined || counts[rank]! > 0);
  return new Map(
    told.map((rank, i) => [rank, data.subarray(i * headerBytes, (i + 1) * headerBytes)]),
  );
}

function shown(header: Uint8Array): string {
  const bytes = header.subarray(textAt);
  const [text = ''] = new TextDecoder().decode(bytes).split('\0', 1);
  // The last letter may be cut as well.
  return bytes.at(-1) === 0 ? text : `${text.replace(/�{1,3}$/, '')}…`;
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
