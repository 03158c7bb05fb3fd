// Adasum: adds what points apart and averages what points the same way, variable by variable.
import type { Communicator } from '../communicator/communicator.js';
import type { CallOptions } from '../communicator/types.js';
import { GradlinkError } from '../errors.js';

/** Below it, a squared length is as good as none: the square root of the smallest normal float64. */
const tiny = Math.sqrt(2 ** -1022);

/**
 * `a ← (1 − a·b / 2a²) a + (1 − a·b / 2b²) b` for each part, sums in float64.
 *
 * @param offsets - where each part starts, and the end.
 */
export function adasumPair(a: Float32Array, b: Float32Array, offsets: readonly number[]): void {
  for (let part = 0; part + 1 < offsets.length; ++part) {
    const end = offsets[part + 1]!;
    let both = 0;
    let ofA = 0;
    let ofB = 0;
    for (let i = offsets[part]!; i < end; ++i) {
      both += a[i]! * b[i]!;
      ofA += a[i]! * a[i]!;
      ofB += b[i]! * b[i]!;
    }
    const forA = ofA < tiny ? 1 : 1 - both / (2 * ofA);
    const forB = ofB < tiny ? 1 : 1 - both / (2 * ofB);
    for (let i = offsets[part]!; i < end; ++i) a[i] = forA * a[i]! + forB * b[i]!;
  }
}

/** Whom a rank meets in each round, nearest first. */
function partners(comm: Communicator): number[] {
  if ((comm.size & (comm.size - 1)) !== 0) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `Adasum: expected a power of two of ranks, got ${comm.size}; take another algorithm`,
      { usable: true },
    );
  }
  const list: number[] = [];
  for (let apart = 1; apart < comm.size; apart *= 2) list.push(comm.rank ^ apart);
  return list;
}

/** Combines everybody's data pairwise, in place; every rank gets the same bits. */
export async function adasum(
  comm: Communicator,
  data: Float32Array,
  offsets: readonly number[],
  calls: CallOptions,
): Promise<void> {
  for (const peer of partners(comm)) {
    const withPeer = { srcRanks: [peer], dstRanks: [peer], ...calls };
    settle(comm, data, await comm.neighborAllGather(data, withPeer), peer, offsets);
  }
}

/** {@link adasum}, blocking. */
export function adasumSync(
  comm: Communicator,
  data: Float32Array,
  offsets: readonly number[],
  calls: CallOptions,
): void {
  for (const peer of partners(comm)) {
    const withPeer = { srcRanks: [peer], dstRanks: [peer], ...calls };
    settle(comm, data, comm.neighborAllGatherSync(data, withPeer), peer, offsets);
  }
}

/** The lower rank's comes first on both sides, so that both get the same bits. */
function settle(
  comm: Communicator,
  data: Float32Array,
  other: Float32Array,
  peer: number,
  offsets: readonly number[],
): void {
  if (comm.rank < peer) {
    adasumPair(data, other, offsets);
  } else {
    adasumPair(other, data, offsets);
    data.set(other);
  }
}
