// A server of a job: what `gradlink serve` runs.
import { useTcpAsServer } from '../communicator/joining/hosts-world.js';
import { named } from '../communicator/joining/roles.js';
import { GradlinkError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativeServer, ServerReport } from '../native/dist.js';
import { commandOf, profilerOf } from './command.js';
import { meetingName } from './distributed.js';
import { serverPlace } from './role.js';
import { ServerProfiler } from './server-profiler.js';
import type { ServerUpdater } from './updater.js';
import { aFunction, assertSignal, flag, integer, optionNames, optionsObject } from '../checks.js';

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
  /**
   * What a worker says with `sendCommandToServers`, and the number that it gave with it, or 0; the worker's call resolves
   * when this has returned.
   */
  onCommand?: ((command: string, worker: number, head: number) => void) | undefined;
  /**
   * How pushes change values, in place of assigning them, until worker 0 calls `setOptimizer`. What it throws rejects the
   * `pushPull`s that ran it, or, after a `push`, the next operation on the key; the value stays as it was, and the store
   * goes on. Keep what it needs from one push to the next by key, as the optimizers do.
   */
  updater?: ServerUpdater | undefined;
  /** A store has ended in good order. */
  onStore?: ((report: ServerReport) => void) | undefined;
}

/** Merge pipelines, far above the cores of any host. */
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
 * Serves the stores of this job, in the order in which its workers make them, until the signal is aborted or, where the
 * launcher gives no signal, the workers have ended. The place in the job is read from the environment.
 *
 * @throws GradlinkError what ended a store, naming the process that is to blame; ERR_UNSUPPORTED where this process is
 *   no server.
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
  /** Waits for the workers to make the next store. */
  #meeting: NativeServer | undefined;
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
      for (let store = 0; !this.#stopped; store += 1) await this.#meet(store);
      await Promise.all([exited, ...this.#stores]);
    } finally {
      signal?.removeEventListener('abort', stop);
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Waits until the workers make this store, and serves it while waiting for the next. */
  async #meet(store: number): Promise<void> {
    const server = this.#server(meetingName(store));
    this.#meeting = server;
    try {
      await server.meet();
    } catch (error) {
      this.#meetingFailed(error);
      return;
    } finally {
      this.#meeting = undefined;
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
      (worker, command) => this.#tell(command, worker, made),
      updater ?? null,
    );
    this.#profilers.set(made, new ServerProfiler(made, { server: rank - workers, rank }));
    return made;
  }

  /** Where no launcher of this host can tell that the workers are done, their processes end together with this one. */
  async #waitForExit(): Promise<void> {
    const waiting = this.#server('');
    this.#running.add(waiting);
    try {
      await waiting.waitForExit();
      // Those that are served end by themselves, as their workers have left.
      this.#endMeeting();
    } catch (error) {
      this.#meetingFailed(error);
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

  /** Of a store that has ended, whose workers no longer hear of it. */
  #endProfile(server: NativeServer): void {
    try {
      this.#profilers.get(server)?.end();
    } catch (error) {
      process.emitWarning(`the profile of a server: ${String(error)}`);
    }
  }

  /** @returns why the command failed, where the worker is to hear of it. */
  #tell(command: string, worker: number, server: NativeServer): string | undefined {
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

  #meetingFailed(error: unknown): void {
    // Asked to.
    if (this.#stopped) return;
    const lost = error instanceof GradlinkError && error.code === 'ERR_PEER_LOST';
    if (!lost) {
      this.#fail(named(error, this.#place));
      return;
    }
    // The stores that are served notice it themselves: they tell their workers, or go on where that is tolerated.
    if (!this.#toleratesLoss) this.#failure ??= { error: named(error, this.#place) };
    this.#endMeeting();
  }

  /** No further store. */
  #endMeeting(): void {
    this.#stopped = true;
    this.#meeting?.stop();
  }

  /** The first failure is what the others follow from. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#stop();
  }

  #stop(): void {
    this.#endMeeting();
    for (const server of this.#running) server.stop();
  }
}
