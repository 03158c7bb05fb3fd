// Windows by name: those open on one rank, and the check that all ranks gave the same name.
import { GradlinkError, argumentError } from '../../errors.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { wellFormed } from '../../checks.js';
import { hashOf } from '../hash.js';
import type { NeighborWindow } from './window.js';

const op = 'createWindow';

/** The open windows of one rank that have a name. */
export class NamedWindows {
  readonly #byName = new Map<string, NeighborWindow>();
  /** Names whose windows are being opened. */
  readonly #opening = new Set<string>();

  get names(): string[] {
    return [...this.#byName.keys()];
  }

  /** @throws GradlinkError ERR_UNSUPPORTED, which lists the open ones. */
  find(name: unknown): NeighborWindow {
    const window = this.#byName.get(wellFormed(name, 'name'));
    if (window !== undefined) return window;
    const open = this.names.join(', ') || 'none';
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `window: no open window is called '${name as string}' (open: ${open}): make it with createWindow(data, { name })`,
      { op: 'window', usable: true },
    );
  }

  /** Opens a window whose name is not in use. */
  async open<A extends AnyArray>(
    name: string,
    opened: (onFree: () => void) => Promise<NeighborWindow<A>>,
  ): Promise<NeighborWindow<A>> {
    if (this.#byName.has(name) || this.#opening.has(name)) {
      const expected = 'a name that no open window has: free that one first';
      throw argumentError('ERR_INVALID_ARG_VALUE', 'name', expected, name);
    }
    this.#opening.add(name);
    try {
      const window = await opened(() => this.#byName.delete(name));
      this.#byName.set(name, window);
      return window;
    } finally {
      this.#opening.delete(name);
    }
  }
}

/** The hash of a name, which ranks compare. */
export function nameHash(name: string): Int32Array<ArrayBuffer> {
  return Int32Array.of(hashOf(name));
}

/** @throws GradlinkError ERR_MISMATCH, on every rank, unless all hashes are equal. */
export function assertSameName(name: string, hashes: Int32Array): void {
  if (hashes.every((hash) => hash === hashes[0])) return;
  const ranks: number[] = [];
  const [own] = nameHash(name);
  hashes.forEach((hash, rank) => {
    if (hash !== own) ranks.push(rank);
  });
  throw new GradlinkError(
    'ERR_MISMATCH',
    `${op}: ranks gave windows different names: this one '${name}', different from ${ranks.join(', ')}. All ranks make the same windows in the same order`,
    { op, usable: true },
  );
}
