// What argument checks need to know of a communicator.
import { GradlinkError } from '../errors.js';

export interface Group {
  readonly size: number;
  /** The first held rank. */
  readonly rank: number;
  readonly heldRanks: readonly number[];
  /** The GPU of each held rank; empty where the ranks' arrays are in the memory of the host. */
  readonly gpus: readonly number[];
}

/** @throws GradlinkError ERR_UNSUPPORTED where several ranks are held */
export function assertOneRank(group: Group, op: string): void {
  const held = group.heldRanks.length;
  if (held === 1) return;
  throw new GradlinkError(
    'ERR_UNSUPPORTED',
    `${op}: for communicators that hold one rank; this one holds ${held}: call it on each of its ranks (Communicator.ranks)`,
    { op, usable: true },
  );
}
