// Update rules that are JavaScript functions.
import type { NativeUpdater } from '../native/kvstore.js';
import type { StorageArray } from '../tensor/dtype.js';
import type { Key, KeyTable } from './keys.js';

/**
 * Changes `stored` in place, given the sum of a push. Called on the thread that made the store; int keys come as
 * ints, string keys as strings. The arrays are copies: `stored` is taken over when the function returns, and neither
 * is looked at later. float16 and bfloat16 come as bit patterns in a Uint16Array.
 */
export type Updater = (key: Key, received: StorageArray, stored: StorageArray) => void;

/**
 * The same on a server, for stores of type `dist_…`: `received` is the sum of a round, or in an asynchronous store one
 * worker's push, and `stored` what this server has of the key: all of it, or, of a key that is cut over the servers, the
 * elements from `first` on. Int keys come in decimal.
 */
export type ServerUpdater = (
  key: string,
  received: StorageArray,
  stored: StorageArray,
  first: number,
) => void;

/** An updater whose errors reach the push that ran it. */
export class UpdaterCalls {
  readonly #keys: KeyTable;
  readonly #failures = new Map<number, unknown>();

  constructor(keys: KeyTable) {
    this.#keys = keys;
  }

  /** The function for native code. */
  wrap(updater: Updater): NativeUpdater {
    return (id, received, stored) => {
      const info = this.#keys.byId(id);
      if (info === undefined) return;
      try {
        updater(info.key, received, stored);
      } catch (error) {
        // Native code carries only that there was an error: an error object may not cross its threads.
        this.#failures.set(id, error);
        throw error;
      }
    };
  }

  /** The promise of a push of these keys, rejecting with what the updater threw. */
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
