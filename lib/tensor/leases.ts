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
  readonly #writes: boolean;
  /** Groups that were found to share nothing that one of them writes. */
  readonly #apart = new WeakSet<LeaseGroup>();

  /** What is both read and written is given as written only. */
  constructor(op: string, reads: LeasedArrays, writes: LeasedArrays) {
    const made: Lease[] = [];
    add(made, op, writes, true);
    this.#writes = made.length > 0;
    add(made, op, reads, false);
    for (const one of made) {
      const others = this.#leases.get(one.buffer);
      if (others === undefined) this.#leases.set(one.buffer, [one]);
      else others.push(one);
    }
  }

  /** @throws TypeError ERR_BUFFER_IN_USE as {@link lease} */
  lease(): void {
    for (const other of groups.keys()) this.#assertApart(other);
    if (active.size > 0) {
      for (const leases of this.#leases.values()) {
        for (const one of leases) assertApart(one, active.get(one.buffer));
      }
    }
    groups.set(this, (groups.get(this) ?? 0) + 1);
  }

  release(): void {
    const left = (groups.get(this) ?? 0) - 1;
    if (left > 0) groups.set(this, left);
    else groups.delete(this);
  }

  /** Its leases of an allocation. */
  of(buffer: object): readonly Lease[] | undefined {
    return this.#leases.get(buffer);
  }

  #assertApart(other: LeaseGroup): void {
    if (this.#apart.has(other) || !(this.#writes || other.#writes)) return;
    for (const leases of this.#leases.values()) {
      for (const one of leases) assertApart(one, other.of(one.buffer));
    }
    this.#apart.add(other);
  }
}

/** Groups that are leased, and how many times. */
const groups = new Map<LeaseGroup, number>();

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

function add(to: Lease[], op: string, arrays: LeasedArrays, writes: boolean): void {
  if (arrays === null) return;
  if (isList(arrays)) {
    for (const array of arrays) add(to, op, array, writes);
    return;
  }
  if (arrays.byteLength === 0) return;
  const start = arrays.byteOffset;
  to.push({ buffer: arrays.buffer, start, end: start + arrays.byteLength, writes, op });
}

function isList(arrays: NonNullable<LeasedArrays>): arrays is readonly (Region | null)[] {
  return Array.isArray(arrays);
}

function assertFree(wanted: Lease): void {
  assertApart(wanted, active.get(wanted.buffer));
  for (const group of groups.keys()) assertApart(wanted, group.of(wanted.buffer));
}

function assertApart(wanted: Lease, others: readonly Lease[] | undefined): void {
  for (const other of others ?? []) {
    const overlaps = wanted.start < other.end && other.start < wanted.end;
    if (!overlaps || !(wanted.writes || other.writes)) continue;
    throw argumentError(
      'ERR_BUFFER_IN_USE',
      `what ${wanted.op} ${wanted.writes ? 'writes' : 'reads'}`,
      'memory that no pending operation uses',
      {
        text: `memory that ${other.op} is ${other.writes ? 'writing' : 'reading'}: await that first`,
      },
    );
  }
}
