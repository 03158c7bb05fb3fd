// Requests of a worker to the servers themselves.
import type { NativeKVStore } from '../native/kvstore.js';
import { nonEmpty } from '../checks.js';
import { commandText, profilerText } from './command.js';
import type { PendingOperations } from './pending.js';

export class ServerCalls {
  readonly #native: NativeKVStore;
  readonly #pending: PendingOperations;
  readonly #rank: number;
  #profiles = 0;

  constructor(native: NativeKVStore, pending: PendingOperations, rank: number) {
    this.#native = native;
    this.#pending = pending;
    this.#rank = rank;
  }

  /** Resolves when every server has processed everything sent before. */
  async settle(op: string): Promise<void> {
    await this.#pending.run(op, [], async () => {
      await this.#native.serverReports();
    });
  }

  async command(head: number | string, body: string | undefined): Promise<void> {
    this.#pending.assertOpen('sendCommandToServers');
    await this.#send('sendCommandToServers', commandText(head, body));
  }

  async profile(file: string | null): Promise<void> {
    const op = 'setServerProfiler';
    this.#pending.assertOpen(op);
    if (file !== null) nonEmpty(file, 'file');
    const by = `worker ${this.#rank}, call ${++this.#profiles}`;
    try {
      await this.#send(op, profilerText({ file, by, undo: false }));
    } catch (error) {
      // All servers or none: end those that have started. A failure here was already one before.
      const text = profilerText({ file: null, by, undo: true });
      if (file !== null) await this.#send(op, text).catch(() => undefined);
      throw error;
    }
  }

  async #send(op: string, text: string): Promise<void> {
    await this.#pending.run(op, [], () => this.#native.command(text, op));
  }
}
