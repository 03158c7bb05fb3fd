// Polls for servers' answers on the event loop. Otherwise a wait for one small operation includes waking two threads:
// the store's own and this one.
import type { NativeKVStore } from '../native/kvstore.js';
import type { PendingOperations } from './pending.js';

export class Answers {
  #looking = false;
  readonly #native: NativeKVStore;
  readonly #pending: PendingOperations;

  constructor(native: NativeKVStore, pending: PendingOperations) {
    this.#native = native;
    this.#pending = pending;
  }

  /**
   * After an operation was sent: polls in each turn of the event loop for about the time of two wake-ups, until native
   * code ends it.
   */
  lookFor(): void {
    if (this.#looking) return;
    this.#looking = true;
    setImmediate(this.#look);
  }

  readonly #look = (): void => {
    this.#looking = !this.#pending.none && this.#native.look();
    if (this.#looking) setImmediate(this.#look);
  };
}
