// Which memory pending operations use. Native code reads and writes it on other threads: until an operation settles,
// nothing else may write what it uses, nor use what it writes.
import { argumentError } from '../errors.js';
import { MemoryUses } from './memory-uses.js';
import type { MemoryUse } from './memory-uses.js';
import type { Region } from './memory.js';

interface Lease extends MemoryUse {
  /** The operation that has it, for messages. */
  readonly op: string;
  /** Of a holder's: what it is used for; a store's key. */
  readonly part: number;
  readonly holder: Holder | undefined;
}

/** Memory that an operation uses, as its owner sees it. */
export type Use = Omit<Lease, 'buffer' | 'op' | 'holder'>;

/** Whoever keeps its own operations in order, so that memory they share is no conflict: a store. */
export interface LeaseOwner {
  /** Whether the two, which overlap, are in order by themselves; else `wanted` has to wait. */
  inOrder(wanted: Use, pending: Use): boolean;
}

/** An operation of an owner. */
export interface Holder {
  readonly owner: LeaseOwner;
  /** It begins when the other, a pending operation of the same owner, has ended. */
  waitFor(other: Holder): void;
}

/** The arrays of one part of an operation. What is both read and written is given as written only. */
export interface LeasedPart {
  readonly part: number;
  readonly reads: LeasedArrays;
  readonly writes: LeasedArrays;
}

/** What one operation has leased. */
export type Leases = readonly Lease[];

const active = new MemoryUses<Lease>();

/** Arrays of an operation; null where a rank needs none. */
export type LeasedArrays = Region | readonly (Region | null)[] | null;

/**
 * Leases the arrays of one operation until {@link release}. What is both read and written is given as written only.
 *
 * @throws TypeError ERR_BUFFER_IN_USE when a pending operation writes one of them, or uses one of `writes`.
 */
export function lease(op: string, reads: LeasedArrays, writes: LeasedArrays): Leases {
  const made: Lease[] = [];
  add(made, op, writes, true);
  if (reads !== writes) add(made, op, reads, false);
  return take(made);
}

/**
 * {@link lease} for an operation whose owner orders what it does itself.
 *
 * @throws TypeError ERR_BUFFER_IN_USE when what somebody else does is in the way
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

/**
 * The arrays of one operation that comes again and again: leased and released as one, however many they are.
 */
export class LeaseGroup {
  readonly #leases: readonly Lease[];
  readonly #uses = new MemoryUses<Lease>();
  readonly #owner: LeaseOwner;
  readonly #writes: boolean;
  /** Groups that need not wait for one another: nothing they share is written, or it is in order. */
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

  /** Calls `visit` with each of its leases that is in the way of `wanted`. */
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

/** Groups that are leased, and the operations that have them. */
const groups = new Map<LeaseGroup, Holder[]>();

/** Gives leases back. */
export function release(leases: Leases): void {
  for (const one of leases) active.delete(one);
}

/**
 * For an operation that is over before anything else can begin: the checks of {@link lease}, without leasing.
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

/** What two conflicting leases mean for the holder of the one that is wanted: nothing, a wait or an error. */
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
