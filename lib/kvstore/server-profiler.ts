// Writes a server's work for one store as a timeline, while a worker wants it.
import { resolve } from 'node:path';

import { ownFile } from '../files/index.js';
import { Timeline, serverTimelineFile } from '../files/timeline.js';
import type { TimelineArgs } from '../files/timeline.js';
import { nativeTraceFields } from '../native/dist.js';
import type { NativeServer, NativeServerTrace } from '../native/dist.js';
import { monotonicSeconds } from '../time.js';
import type { ProfilerCommand } from './command.js';

/** Long compared with writing, short compared with the data that a killed server may lose. */
const drainEveryMs = 100;
const width = nativeTraceFields.length;
/** The first names of a trace are work, the others messages. */
const work = 3;

/** Files in use by stores of this process, so that no two write the same one. */
const open = new Set<string>();

export interface ServerNumber {
  readonly server: number;
  /** Its process number in the trace, unique among workers and servers, so that timelines can be merged. */
  readonly rank: number;
}

interface Running {
  readonly timeline: Timeline<string>;
  readonly lanes: readonly string[];
  readonly path: string;
  readonly by: string;
  readonly timer: NodeJS.Timeout;
}

export class ServerProfiler {
  readonly #native: NativeServer;
  readonly #number: ServerNumber;
  #running: Running | undefined;
  /** Why writing ended early; reported at the end of the profile. */
  #failure: string | undefined;

  constructor(native: NativeServer, number: ServerNumber) {
    this.#native = native;
    this.#number = number;
  }

  /** Runs a worker's command. @returns why it failed */
  run({ file, by, undo }: ProfilerCommand): string | undefined {
    try {
      if (file !== null) {
        this.#start(file, by);
      } else if (!undo || this.#running?.by === by) {
        this.end();
      }
      return undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return `setServerProfiler: server ${this.#number.server}: ${why}`;
    }
  }

  #start(file: string, by: string): void {
    const { server, rank } = this.#number;
    const path = resolve(serverTimelineFile(file, server));
    // All workers of a program may send the same command.
    if (this.#running?.path === path) return;
    if (this.#running !== undefined) {
      throw new Error(`${this.#running.path} is being written: setServerProfiler(null) ends it`);
    }
    if (open.has(path)) throw new Error(`${path} is being written for another store`);
    const { pipelines } = this.#native.takeTrace();
    const lanes = ['receive', ...Array.from({ length: pipelines }, (_, i) => `pipeline ${i}`)];
    const timeline = new Timeline(ownFile(path), { rank, label: `server ${server}`, lanes });
    open.add(path);
    this.#failure = undefined;
    this.#native.trace(true);
    const timer = setInterval(() => {
      this.#drain();
    }, drainEveryMs);
    timer.unref();
    this.#running = { timeline, lanes, path, by, timer };
  }

  /** Writes the rest. No effect if nothing is being written. */
  end(): void {
    const running = this.#running;
    if (running === undefined) return;
    this.#native.trace(false);
    this.#drain();
    this.#running = undefined;
    clearInterval(running.timer);
    open.delete(running.path);
    running.timeline.close();
    if (this.#failure !== undefined) throw new Error(this.#failure);
  }

  #drain(): void {
    const running = this.#running;
    if (running === undefined || this.#failure !== undefined) return;
    try {
      addEvents(running, this.#native.takeTrace());
      running.timeline.flush();
    } catch (error) {
      // The file stays valid; no further events are written.
      this.#failure = error instanceof Error ? error.message : String(error);
      this.#native.trace(false);
    }
  }
}

function addEvents(
  { timeline, lanes }: Running,
  { events, names, keys, lost }: NativeServerTrace,
): void {
  for (let at = 0; at < events.length; at += width) {
    const [name, lane, key, worker, pushes, bytes, begin, end] = events.subarray(at, at + width);
    const args: Record<string, string | number> = {};
    if (key! >= 0) args['key'] = keys[key!]!;
    if (worker! >= 0) args['worker'] = worker!;
    if (pushes! > 0) args['pushes'] = pushes!;
    args['bytes'] = bytes!;
    if (name! < work) {
      timeline.add(lanes[lane!]!, names[name!]!, begin!, end!, args);
    } else {
      timeline.mark(lanes[lane!]!, `receive ${names[name!]!}`, begin, args satisfies TimelineArgs);
    }
  }
  if (lost > 0) timeline.mark('receive', `${lost} events lost`, monotonicSeconds());
}
