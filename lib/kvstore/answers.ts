// Looking for the servers' answers from the event loop. What waits for one small operation at a time would otherwise wait
// for two threads to wake up: the store's own, by the answer, and then this one.
import type { NativeKVStore } from '../native/kvstore.js';
import type { PendingOperations } from './pending.js';

/** Of one store with servers. */
export class Answers {
  #looking = false;
  readonly #native: NativeKVStore;
  readonly #pending: PendingOperations;

  constructor(native: NativeKVStore, pending: PendingOperations) {
    this.#native = native;
    this.#pending = pending;
  }

  /** An operation is on its way: looks in each turn of the event loop, for as long as two wake-ups take. Native code says when not. */
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
