// Finds overlapping uses of memory in logarithmic time, also for thousands of arrays in one allocation.

/** Bytes of an allocation in use. */
export interface MemoryUse {
  /** Uses overlap only with the same object. */
  readonly buffer: object;
  /** The first byte, and the one past the end. */
  readonly start: number;
  readonly end: number;
  readonly writes: boolean;
}

/** Uses of one allocation, ordered by their first bytes. */
class Ordered<T extends MemoryUse> {
  readonly #uses: T[] = [];
  /** The longest use so far: one that starts further before a byte does not reach it. */
  #longest = 0;

  get size(): number {
    return this.#uses.length;
  }

  add(use: T): void {
    this.#uses.splice(this.#firstFrom(use.start + 1), 0, use);
    this.#longest = Math.max(this.#longest, use.end - use.start);
  }

  delete(use: T): void {
    for (let at = this.#firstFrom(use.start); this.#uses[at]?.start === use.start; at += 1) {
      if (this.#uses[at] !== use) continue;
      this.#uses.splice(at, 1);
      return;
    }
  }

  overlapping({ start, end }: MemoryUse, visit: (other: T) => void): void {
    for (let at = this.#firstFrom(start - this.#longest + 1); at < this.#uses.length; at += 1) {
      const other = this.#uses[at]!;
      if (other.start >= end) return;
      if (start < other.end) visit(other);
    }
  }

  /** The index of the first use that begins at `byte` or later. */
  #firstFrom(byte: number): number {
    let low = 0;
    let high = this.#uses.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#uses[middle]!.start < byte) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Separate lists, because reads never conflict with each other. */
interface Shared<T extends MemoryUse> {
  readonly reads: Ordered<T>;
  readonly writes: Ordered<T>;
}

/** Uses of any number of allocations; empty ones are not kept. */
export class MemoryUses<T extends MemoryUse> {
  /** Most allocations have a single use, stored directly. */
  readonly #of = new Map<object, T | Shared<T>>();

  get empty(): boolean {
    return this.#of.size === 0;
  }

  add(use: T): void {
    if (use.start === use.end) return;
    const there = this.#of.get(use.buffer);
    if (there === undefined) {
      this.#of.set(use.buffer, use);
    } else if (isShared(there)) {
      sideOf(there, use).add(use);
    } else {
      const shared = { reads: new Ordered<T>(), writes: new Ordered<T>() };
      sideOf(shared, there).add(there);
      sideOf(shared, use).add(use);
      this.#of.set(use.buffer, shared);
    }
  }

  delete(use: T): void {
    const there = this.#of.get(use.buffer);
    if (there === use) {
      this.#of.delete(use.buffer);
    } else if (there !== undefined && isShared(there)) {
      sideOf(there, use).delete(use);
      if (there.reads.size + there.writes.size === 0) this.#of.delete(use.buffer);
    }
  }

  /** Calls `visit` with each use that overlaps `wanted` if one of the two writes. */
  conflicting(wanted: MemoryUse, visit: (other: T) => void): void {
    const there = this.#of.get(wanted.buffer);
    if (there === undefined || wanted.start === wanted.end) return;
    if (isShared(there)) {
      there.writes.overlapping(wanted, visit);
      if (wanted.writes) there.reads.overlapping(wanted, visit);
    } else if (
      (wanted.writes || there.writes) &&
      wanted.start < there.end &&
      there.start < wanted.end
    ) {
      visit(there);
    }
  }
}

function isShared<T extends MemoryUse>(there: T | Shared<T>): there is Shared<T> {
  return 'reads' in there;
}

function sideOf<T extends MemoryUse>(shared: Shared<T>, use: T): Ordered<T> {
  return use.writes ? shared.writes : shared.reads;
}
