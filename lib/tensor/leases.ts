// Which memory pending operations use. Native code reads and writes it on other threads: until an operation settles,
// nothing else may write what it uses, nor use what it writes.
import { argumentError } from '../errors.js';
import type { Region } from './memory.js';

interface Lease {
  readonly buffer: object;
  readonly start: number;
  readonly end: number;
  readonly writes: boolean;
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

const active = new Map<object, Lease[]>();

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
  if (active.size > 0 || groups.size > 0) made.forEach(assertFree);
  for (const one of made) {
    const others = active.get(one.buffer);
    if (others === undefined) active.set(one.buffer, [one]);
    else others.push(one);
  }
  return made;
}

/**
 * The arrays of one operation that comes again and again: leased and released as one, however many they are.
 */
export class LeaseGroup {
  /** By allocation. */
  readonly #leases = new Map<object, Lease[]>();
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
    for (const one of made) {
      const others = this.#leases.get(one.buffer);
      if (others === undefined) this.#leases.set(one.buffer, [one]);
      else others.push(one);
    }
  }

  /** @throws TypeError ERR_BUFFER_IN_USE as {@link leaseParts} */
  lease(holder: Holder): void {
    for (const [other, holders] of groups) this.#meet(other, holder, holders);
    if (active.size > 0) {
      for (const leases of this.#leases.values()) {
        for (const one of leases) assertApart(one, active.get(one.buffer), holder);
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

  /** Its leases of an allocation. */
  of(buffer: object): readonly Lease[] | undefined {
    return this.#leases.get(buffer);
  }

  #meet(other: LeaseGroup, holder: Holder, holders: readonly Holder[]): void {
    if (this.#apart.has(other) || !(this.#writes || other.#writes)) return;
    let waits = false;
    for (const leases of this.#leases.values()) {
      for (const one of leases) {
        for (const theirs of other.of(one.buffer) ?? []) {
          if (!conflicts(one, theirs)) continue;
          if (other.#owner !== this.#owner) throw inUse(one, theirs);
          waits ||= !this.#owner.inOrder(one, theirs);
        }
      }
    }
    if (!waits) this.#apart.add(other);
    else for (const one of holders) holder.waitFor(one);
  }
}

/** Groups that are leased, and the operations that have them. */
const groups = new Map<LeaseGroup, Holder[]>();

/** Gives leases back. */
export function release(leases: Leases): void {
  for (const one of leases) {
    const others = active.get(one.buffer);
    if (others === undefined) continue;
    const at = others.indexOf(one);
    if (at >= 0) others.splice(at, 1);
    if (others.length === 0) active.delete(one.buffer);
  }
}

/**
 * For an operation that is over before anything else can begin: the checks of {@link lease}, without leasing.
 *
 * @throws TypeError ERR_BUFFER_IN_USE
 */
export function assertUsable(op: string, reads: LeasedArrays, writes: LeasedArrays): void {
  if (active.size === 0 && groups.size === 0) return;
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
  assertApart(wanted, active.get(wanted.buffer), wanted.holder);
  for (const [group, holders] of groups) {
    for (const other of holders) {
      assertApart(wanted, group.of(wanted.buffer), wanted.holder, other);
    }
  }
}

/** @param of - whose `others` are, where they do not say so themselves. */
function assertApart(
  wanted: Lease,
  others: readonly Lease[] | undefined,
  holder: Holder | undefined,
  of?: Holder,
): void {
  for (const other of others ?? []) {
    if (!conflicts(wanted, other)) continue;
    const theirs = of ?? other.holder;
    if (holder === undefined || theirs?.owner !== holder.owner) throw inUse(wanted, other);
    if (!holder.owner.inOrder(wanted, other)) holder.waitFor(theirs);
  }
}

function conflicts(wanted: Lease, other: Lease): boolean {
  const overlaps = wanted.start < other.end && other.start < wanted.end;
  return overlaps && (wanted.writes || other.writes);
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
