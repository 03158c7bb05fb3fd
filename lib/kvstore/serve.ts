// A server of a job: what `gradlink serve` runs.
import { GradlinkError } from '../errors.js';
import { native } from '../native.js';
import type { NativeServer, NativeServerReport } from '../native/dist.js';
import { meetingName } from './distributed.js';
import { serverPlace } from './place.js';

/** What one server did for one store; `merge` and `update` are seconds of all its threads together. */
export type ServerReport = NativeServerReport;

/** Options of {@link serveJob}. */
export interface ServeOptions {
  /** Ends the serving: pending stores end, and serveJob resolves. */
  signal?: AbortSignal | undefined;
  /** Merge pipelines of a store; one a core when absent. */
  threads?: number | undefined;
  /**
   * An asynchronous store goes on without workers that died. When absent: whether GRADLINK_TOLERATE_WORKER_LOSS is 1.
   */
  tolerateWorkerLoss?: boolean | undefined;
  /** What a worker says with `sendCommandToServers`; the worker's call resolves when this has returned. */
  onCommand?: ((command: string, worker: number) => void) | undefined;
  /** A store has ended in good order. */
  onStore?: ((report: ServerReport) => void) | undefined;
}

/**
 * Serves the stores of this job, in the order in which its workers make them, until the signal is aborted or, where the
 * launcher gives no signal, the workers have ended. The place in the job is read from the environment.
 *
 * @throws GradlinkError what ended a store, naming the process that is to blame; ERR_UNSUPPORTED where this process is
 *   no server.
 */
export async function serveJob(options: ServeOptions = {}): Promise<void> {
  await new Serving(options).run();
}

class Serving {
  readonly #options: ServeOptions;
  readonly #place = serverPlace();
  readonly #running = new Set<NativeServer>();
  readonly #stores: Promise<void>[] = [];
  #failure: { readonly error: unknown } | undefined;
  #stopped = false;

  constructor(options: ServeOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    const stop = (): void => {
      this.#stop();
    };
    if (signal?.aborted === true) return;
    signal?.addEventListener('abort', stop);
    try {
      for (let store = 0; !this.#stopped; store += 1) await this.#meet(store);
      await Promise.all(this.#stores);
    } finally {
      signal?.removeEventListener('abort', stop);
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Waits until the workers make this store, and serves it while waiting for the next. */
  async #meet(store: number): Promise<void> {
    const { backend, job, rank, workers, servers } = this.#place;
    const tolerateWorkerLoss =
      this.#options.tolerateWorkerLoss ?? process.env['GRADLINK_TOLERATE_WORKER_LOSS'] === '1';
    const server = new (native().NativeServer)(
      {
        ...{ backend, job, name: meetingName(store), rank, size: workers + servers },
        ...{ wholeJob: true, timeoutMs: Infinity },
      },
      { threads: this.#options.threads ?? 0, tolerateWorkerLoss },
      (worker, command) => {
        this.#tell(command, worker);
      },
    );
    this.#running.add(server);
    try {
      await server.meet();
    } catch (error) {
      this.#running.delete(server);
      this.#end(error);
      return;
    }
    this.#stores.push(this.#serve(server));
  }

  async #serve(server: NativeServer): Promise<void> {
    try {
      const report = await server.serve();
      this.#options.onStore?.(report);
    } catch (error) {
      this.#end(error);
    } finally {
      this.#running.delete(server);
    }
  }

  #tell(command: string, worker: number): void {
    try {
      this.#options.onCommand?.(command, worker);
    } catch (error) {
      this.#end(error);
    }
  }

  /** The first failure is what the others follow from. */
  #end(error: unknown): void {
    const asked = error instanceof GradlinkError && error.code === 'ERR_CLOSED';
    if (!asked) this.#failure ??= { error };
    this.#stop();
  }

  #stop(): void {
    this.#stopped = true;
    for (const server of this.#running) server.stop();
  }
}
