// Updaters: JavaScript functions that update values.
import type { NativeUpdater } from '../native/kvstore.js';
import type { StorageArray } from '../tensor/dtype.js';
import type { Key, KeyTable } from './keys.js';

/**
 * Changes `stored` in place, given the sum of a push. Called on the thread that opened the store; keys have their
 * original type. The arrays are copies: `stored` is read when the function returns, and neither is used later. float16
 * and bfloat16 are bit patterns in a Uint16Array.
 */
export type Updater = (key: Key, received: StorageArray, stored: StorageArray) => void;

/**
 * The same on a server, for stores of type `dist_…`: `received` is the sum of a round, or for an asynchronous store one
 * worker's push. `stored` is this server's part of the key, which starts at element `first`. Int keys come in decimal.
 */
export type ServerUpdater = (
  key: string,
  received: StorageArray,
  stored: StorageArray,
  first: number,
) => void;

/** Passes an updater's errors to the push that ran it. */
export class UpdaterCalls {
  readonly #keys: KeyTable;
  readonly #failures = new Map<number, unknown>();

  constructor(keys: KeyTable) {
    this.#keys = keys;
  }

  wrap(updater: Updater): NativeUpdater {
    return (id, received, stored) => {
      const info = this.#keys.byId(id);
      if (info === undefined) return;
      try {
        updater(info.key, received, stored);
      } catch (error) {
        // Native code only reports that there was an error: an error object cannot cross its threads.
        this.#failures.set(id, error);
        throw error;
      }
    };
  }

  /** The promise of a push of these keys, which rejects with the updater's error. */
  async rethrow(ids: readonly number[], pushed: Promise<void>): Promise<void> {
    try {
      await pushed;
    } catch (error) {
      const failed = ids.find((id) => this.#failures.has(id));
      if (failed === undefined) throw error;
      const thrown = this.#failures.get(failed);
      for (const id of ids) this.#failures.delete(id);
      throw thrown;
    }
  }
}
