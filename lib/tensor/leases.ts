// Memory in use by pending operations. Native code accesses it on other threads: until an operation settles, nothing
// else may write its memory or use its output.
import { argumentError } from '../errors.js';
import { MemoryUses } from './memory-uses.js';
import type { MemoryUse } from './memory-uses.js';
import type { Region } from './memory.js';

interface Lease extends MemoryUse {
  /** The operation, for messages. */
  readonly op: string;
  /** Within the holder: the store's key. */
  readonly part: number;
  readonly holder: Holder | undefined;
}

/** Memory that an operation uses, for its owner. */
export type Use = Omit<Lease, 'buffer' | 'op' | 'holder'>;

/** An owner that orders its own operations, so that shared memory is no conflict: a store. */
export interface LeaseOwner {
  /** Whether two overlapping uses are already ordered; otherwise `wanted` must wait. */
  inOrder(wanted: Use, pending: Use): boolean;
}

export interface Holder {
  readonly owner: LeaseOwner;
  /** Starts after `other`, a pending operation of the same owner. */
  waitFor(other: Holder): void;
}

/** The arrays of one part of an operation. An array that is read and written counts as written. */
export interface LeasedPart {
  readonly part: number;
  readonly reads: LeasedArrays;
  readonly writes: LeasedArrays;
}

export type Leases = readonly Lease[];

const active = new MemoryUses<Lease>();

/** The arrays of an operation; null for ranks without one. */
export type LeasedArrays = Region | readonly (Region | null)[] | null;

/**
 * Leases the arrays of one operation until {@link release}. An array that is read and written counts as written.
 *
 * @throws TypeError ERR_BUFFER_IN_USE if a pending operation writes one of them, or uses one of `writes`.
 */
export function lease(op: string, reads: LeasedArrays, writes: LeasedArrays): Leases {
  const made: Lease[] = [];
  add(made, op, writes, true);
  if (reads !== writes) add(made, op, reads, false);
  return take(made);
}

/**
 * {@link lease} for an operation of an owner that orders its own.
 *
 * @throws TypeError ERR_BUFFER_IN_USE on a conflict with an operation of somebody else
 */
export function leaseParts(op: string, parts: readonly LeasedPart[], holder: Holder): Leases {
  const made: Lease[] = [];
  for (const { part, reads, writes } of parts) {
    add(made, op, writes, true, part, holder);
    add(made, op, reads, false, part, holder);
  }
  return take(made);
}

function take(made: readonly Lease[]): Leases {
  if (!active.empty || groups.size > 0) made.forEach(assertFree);
  for (const one of made) active.add(one);
  return made;
}

/** The arrays of a repeated operation, leased and released as one group. */
export class LeaseGroup {
  readonly #leases: readonly Lease[];
  readonly #uses = new MemoryUses<Lease>();
  readonly #owner: LeaseOwner;
  readonly #writes: boolean;
  /** Groups that do not conflict: shared arrays are not written, or are ordered. */
  readonly #apart = new WeakSet<LeaseGroup>();

  constructor(op: string, parts: readonly LeasedPart[], owner: LeaseOwner) {
    this.#owner = owner;
    const made: Lease[] = [];
    for (const { part, reads, writes } of parts) {
      add(made, op, writes, true, part);
      add(made, op, reads, false, part);
    }
    this.#writes = made.some(({ writes }) => writes);
    this.#leases = made;
    for (const one of made) this.#uses.add(one);
  }

  /** @throws TypeError ERR_BUFFER_IN_USE as {@link leaseParts} */
  lease(holder: Holder): void {
    for (const [other, holders] of groups) this.#meet(other, holder, holders);
    if (!active.empty) {
      for (const one of this.#leases) {
        active.conflicting(one, (other) => meet(one, other, holder, other.holder));
      }
    }
    const holders = groups.get(this);
    if (holders === undefined) groups.set(this, [holder]);
    else holders.push(holder);
  }

  release(holder: Holder): void {
    const holders = groups.get(this) ?? [];
    const at = holders.indexOf(holder);
    if (at >= 0) holders.splice(at, 1);
    if (holders.length === 0) groups.delete(this);
  }

  /** Calls `visit` with each conflicting lease. */
  conflicting(wanted: Lease, visit: (lease: Lease) => void): void {
    this.#uses.conflicting(wanted, visit);
  }

  #meet(other: LeaseGroup, holder: Holder, holders: readonly Holder[]): void {
    if (this.#apart.has(other) || !(this.#writes || other.#writes)) return;
    const unordered: Lease[] = [];
    for (const one of this.#leases) {
      other.conflicting(one, (theirs) => {
        if (other.#owner !== this.#owner) throw inUse(one, theirs);
        if (!this.#owner.inOrder(one, theirs)) unordered.push(theirs);
      });
    }
    if (unordered.length === 0) this.#apart.add(other);
    else for (const one of holders) holder.waitFor(one);
  }
}

/** Leased groups with their operations. */
const groups = new Map<LeaseGroup, Holder[]>();

export function release(leases: Leases): void {
  for (const one of leases) active.delete(one);
}

/**
 * For a synchronous operation: checks as {@link lease}, without leasing.
 *
 * @throws TypeError ERR_BUFFER_IN_USE
 */
export function assertUsable(op: string, reads: LeasedArrays, writes: LeasedArrays): void {
  if (active.empty && groups.size === 0) return;
  const wanted: Lease[] = [];
  add(wanted, op, writes, true);
  if (reads !== writes) add(wanted, op, reads, false);
  wanted.forEach(assertFree);
}

function add(
  to: Lease[],
  op: string,
  arrays: LeasedArrays,
  writes: boolean,
  part = 0,
  holder?: Holder,
): void {
  if (arrays === null) return;
  if (isList(arrays)) {
    for (const array of arrays) add(to, op, array, writes, part, holder);
    return;
  }
  if (arrays.byteLength === 0) return;
  const start = arrays.byteOffset;
  const end = start + arrays.byteLength;
  to.push({ buffer: arrays.buffer, start, end, writes, op, part, holder });
}

function isList(arrays: NonNullable<LeasedArrays>): arrays is readonly (Region | null)[] {
  return Array.isArray(arrays);
}

function assertFree(wanted: Lease): void {
  active.conflicting(wanted, (other) => meet(wanted, other, wanted.holder, other.holder));
  for (const [group, holders] of groups) {
    group.conflicting(wanted, (other) => {
      for (const theirs of holders) meet(wanted, other, wanted.holder, theirs);
    });
  }
}

/** Resolves a conflict between two leases: nothing, a wait or an error. */
function meet(wanted: Lease, other: Lease, holder: Holder | undefined, theirs?: Holder): void {
  if (holder === undefined || theirs?.owner !== holder.owner) throw inUse(wanted, other);
  if (!holder.owner.inOrder(wanted, other)) holder.waitFor(theirs);
}

function inUse(wanted: Lease, other: Lease): Error {
  return argumentError(
    'ERR_BUFFER_IN_USE',
    `what ${wanted.op} ${wanted.writes ? 'writes' : 'reads'}`,
    'memory that no pending operation uses',
    {
      text: `memory that ${other.op} is ${other.writes ? 'writing' : 'reading'}: await that first`,
    },
  );
}
