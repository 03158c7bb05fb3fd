// A job's server, run by `gradlink serve`.
import { useTcpAsServer } from '../communicator/joining/hosts-world.js';
import { named } from '../communicator/joining/roles.js';
import { GradlinkError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativeServer, ServerReport } from '../native/dist.js';
import { commandOf, profilerOf } from './command.js';
import { rendezvousName } from './distributed.js';
import { serverPlace } from './role.js';
import { ServerProfiler } from './server-profiler.js';
import type { ServerUpdater } from './updater.js';
import { aFunction, assertSignal, flag, integer, optionNames, optionsObject } from '../checks.js';

/** Options of {@link serveJob}. */
export interface ServeOptions {
  /** Ends serving: open stores end, and serveJob resolves. */
  signal?: AbortSignal | undefined;
  /** Merge pipelines per store; one per core when absent. */
  threads?: number | undefined;
  /**
   * Continues asynchronous stores without workers that died. When absent: whether GRADLINK_TOLERATE_WORKER_LOSS is 1.
   */
  tolerateWorkerLoss?: boolean | undefined;
  /**
   * Called for a worker's `sendCommandToServers` with its text and number (default 0); the worker's call resolves after
   * it returns.
   */
  onCommand?: ((command: string, worker: number, head: number) => void) | undefined;
  /**
   * Updates values with pushes, instead of assigning them, until worker 0 calls `setOptimizer`. An error rejects the
   * `pushPull`s that caused it or, after a `push`, the next operation on the key; the value stays as it was and the
   * store continues. Keep state between pushes by key, as optimizers do.
   */
  updater?: ServerUpdater | undefined;
  /** Called after a store has ended without error. */
  onStore?: ((report: ServerReport) => void) | undefined;
}

/** Far above the cores of any host. */
const maxThreads = 4096;
const serveNames = optionNames<ServeOptions>({
  signal: true,
  threads: true,
  tolerateWorkerLoss: true,
  onCommand: true,
  updater: true,
  onStore: true,
});

/**
 * Serves the stores of this job in the order in which workers open them, until the signal is aborted or, if the
 * launcher sends no signal, the workers have ended. Reads its rank from the environment.
 *
 * @throws GradlinkError that ended a store, naming the process that caused it; ERR_UNSUPPORTED if this process is not a
 *   server.
 */
export async function serveJob(options?: ServeOptions): Promise<void> {
  const given = optionsObject(options, serveNames, 'serveJob');
  if (given.signal !== undefined) assertSignal(given.signal);
  if (given.onCommand !== undefined) aFunction(given.onCommand, 'onCommand');
  if (given.updater !== undefined) aFunction(given.updater, 'updater');
  if (given.onStore !== undefined) aFunction(given.onStore, 'onStore');
  if (given.threads !== undefined) integer(given.threads, 'threads', 0, maxThreads);
  flag(given.tolerateWorkerLoss, 'tolerateWorkerLoss', false);
  await new Serving(given).run();
}

class Serving {
  readonly #options: ServeOptions;
  readonly #toleratesLoss: boolean;
  readonly #place = serverPlace();
  readonly #running = new Set<NativeServer>();
  readonly #profilers = new WeakMap<NativeServer, ServerProfiler>();
  /** Waits for the workers to open the next store. */
  #joining: NativeServer | undefined;
  readonly #stores: Promise<void>[] = [];
  #failure: { readonly error: unknown } | undefined;
  #stopped = false;

  constructor(options: ServeOptions) {
    this.#options = options;
    this.#toleratesLoss =
      options.tolerateWorkerLoss ?? process.env['GRADLINK_TOLERATE_WORKER_LOSS'] === '1';
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    const stop = (): void => {
      this.#stop();
    };
    if (signal?.aborted === true) return;
    const { backend, job, rank, workers, servers } = this.#place;
    if (backend === 'tcp') useTcpAsServer(rank, workers + servers, job);
    signal?.addEventListener('abort', stop);
    try {
      const exited = backend === 'shm' ? Promise.resolve() : this.#waitForExit();
      for (let store = 0; !this.#stopped; store += 1) await this.#serveNext(store);
      await Promise.all([exited, ...this.#stores]);
    } finally {
      signal?.removeEventListener('abort', stop);
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Waits until the workers open this store, then serves it while waiting for the next. */
  async #serveNext(store: number): Promise<void> {
    const server = this.#server(rendezvousName(store));
    this.#joining = server;
    try {
      await server.meet();
    } catch (error) {
      this.#joiningFailed(error);
      return;
    } finally {
      this.#joining = undefined;
    }
    this.#running.add(server);
    if (this.#stopped) server.stop();
    this.#stores.push(this.#serve(server));
  }

  #server(name: string): NativeServer {
    const { backend, job, rank, workers, servers } = this.#place;
    const { threads = 0, updater } = this.#options;
    const made: NativeServer = new (native().NativeServer)(
      {
        backend,
        job,
        name,
        rank,
        size: workers + servers,
        wholeJob: true,
        timeoutMs: Infinity,
      },
      {
        threads,
        tolerateWorkerLoss: this.#toleratesLoss,
      },
      (worker, command) => this.#runCommand(command, worker, made),
      updater ?? null,
    );
    this.#profilers.set(made, new ServerProfiler(made, { server: rank - workers, rank }));
    return made;
  }

  /** If no local launcher can tell when the workers are done, waits until their processes exit too. */
  async #waitForExit(): Promise<void> {
    const waiting = this.#server('');
    this.#running.add(waiting);
    try {
      await waiting.waitForExit();
      // Served stores end by themselves, because their workers have left.
      this.#stopJoining();
    } catch (error) {
      this.#joiningFailed(error);
    } finally {
      this.#running.delete(waiting);
    }
  }

  async #serve(server: NativeServer): Promise<void> {
    try {
      const report = await server.serve();
      this.#options.onStore?.(report);
    } catch (error) {
      const asked = error instanceof GradlinkError && error.code === 'ERR_CLOSED';
      if (!(asked && this.#stopped)) this.#fail(error);
    } finally {
      this.#running.delete(server);
      this.#endProfile(server);
    }
  }

  /** Ends the profile of a store that has ended; its workers can no longer be notified. */
  #endProfile(server: NativeServer): void {
    try {
      this.#profilers.get(server)?.end();
    } catch (error) {
      process.emitWarning(`the profile of a server: ${String(error)}`);
    }
  }

  /** @returns why the command failed, for the worker */
  #runCommand(command: string, worker: number, server: NativeServer): string | undefined {
    try {
      const profile = profilerOf(command);
      if (profile !== undefined) return this.#profilers.get(server)?.run(profile);
      const { head, body } = commandOf(command);
      this.#options.onCommand?.(body, worker, head);
    } catch (error) {
      this.#fail(error);
    }
    return undefined;
  }

  #joiningFailed(error: unknown): void {
    if (this.#stopped) return;
    const lost = error instanceof GradlinkError && error.code === 'ERR_PEER_LOST';
    if (!lost) {
      this.#fail(named(error, this.#place));
      return;
    }
    // Served stores notice a loss themselves, and report it or continue if that is tolerated.
    if (!this.#toleratesLoss) this.#failure ??= { error: named(error, this.#place) };
    this.#stopJoining();
  }

  #stopJoining(): void {
    this.#stopped = true;
    this.#joining?.stop();
  }

  /** Keeps the first failure, which caused the others. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#stop();
  }

  #stop(): void {
    this.#stopJoining();
    for (const server of this.#running) server.stop();
  }
}
