// What ranks computed and communicated when, as files that trace viewers show.
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { join, parse } from 'node:path';

import { GradlinkError } from '../errors.js';
import { monotonicSeconds } from '../time.js';
import {
  aFunction,
  aString,
  integer,
  listOf,
  maxInt32,
  nonEmpty,
  optionNames,
  optionsObject,
} from '../checks.js';
import { fileFailure, readRegular, writeFileAtomic } from './index.js';
import { parseJson } from './json-text.js';

/** Lanes of a rank, in the order in which they are shown. */
export const timelineLanes = ['compute', 'communication'] as const;
/** One of {@link timelineLanes}. */
export type TimelineLane = (typeof timelineLanes)[number];

/** Where a trace goes, and whose it is. */
export interface TimelineOptions<Lane extends string = TimelineLane> {
  /** The rank whose events these are; it is the process of the trace. 0 when absent. */
  readonly rank?: number | undefined;
  /** What the process is called; `rank R` when absent. */
  readonly label?: string | undefined;
  /** What the process has a lane for, in the order in which they are shown; {@link timelineLanes} when absent. */
  readonly lanes?: readonly Lane[] | undefined;
  /** Events gathered before they are written; 64 when absent. */
  readonly buffered?: number | undefined;
}

const timelineNames = optionNames<TimelineOptions<string>>({
  rank: true,
  label: true,
  lanes: true,
  buffered: true,
});
const lanesKind = listOf(aString);

/** What a trace's viewer shows of an event. */
export type TimelineArgs = Readonly<Record<string, string | number | boolean>>;

const maxBuffered = 2 ** 20;
const ending = '\n]}\n';

/**
 * What one rank computed and communicated when, as a Chrome trace (chrome://tracing, Perfetto): one process a rank, one
 * lane each for computing and communicating, or lanes of the caller's own. The file is valid JSON whenever it is looked at, also after a crash: each
 * write overwrites the closing brackets with events and brackets in one piece.
 *
 * Times are seconds of {@link monotonicSeconds}; in the file microseconds since the timeline was opened, whose place in
 * time `otherData.startTimeSinceEpochMicroseconds` tells, so that {@link mergeTimelines} can lay ranks side by side.
 */
export class Timeline<Lane extends string = TimelineLane> implements Disposable {
  readonly #start = monotonicSeconds();
  readonly #rank: number;
  readonly #limit: number;
  readonly #path: string;
  readonly #lanes: readonly string[];
  #file: number | undefined;
  /** Where the closing brackets are. */
  #end: number;
  #gathered: string[] = [];

  /** @throws GradlinkError ERR_SYSTEM where the file cannot be written. */
  constructor(path: string, options?: TimelineOptions<Lane>) {
    const given = optionsObject(options, timelineNames, 'Timeline');
    const { rank = 0, label = `rank ${rank}`, lanes = timelineLanes, buffered = 64 } = given;
    lanesKind(lanes, 'lanes');
    this.#lanes = [...lanes];
    this.#rank = integer(rank, 'rank', 0, maxInt32);
    this.#limit = integer(buffered, 'buffered', 1, maxBuffered);
    const head = {
      displayTimeUnit: 'ms',
      otherData: { rank, startTimeSinceEpochMicroseconds: epochMicroseconds() },
    };
    const events = [
      this.#metadata('process_name', 0, { name: label }),
      this.#metadata('process_sort_index', 0, { sort_index: rank }),
      ...this.#lanes.map((name, lane) => this.#metadata('thread_name', lane, { name })),
    ];
    const opening = `${JSON.stringify(head).slice(0, -1)},"traceEvents":[\n${events.join(',\n')}`;
    // In one step, so that a full disk leaves the timeline of the run before.
    writeFileAtomic(path, [opening, ending]);
    this.#path = path;
    this.#file = openSync(path, 'r+');
    this.#end = Buffer.byteLength(opening);
  }

  #metadata(name: string, lane: number, args: TimelineArgs): string {
    return JSON.stringify({ name, ph: 'M', pid: this.#rank, tid: lane, args });
  }

  #microseconds(seconds: number): number {
    return Math.round((seconds - this.#start) * 1e9) / 1e3;
  }

  /** Something that took from `startSeconds` to `endSeconds`. */
  add(
    lane: Lane,
    name: string,
    startSeconds: number,
    endSeconds: number,
    args: TimelineArgs = {},
  ): void {
    this.#push({
      name,
      ph: 'X',
      pid: this.#rank,
      tid: this.#lanes.indexOf(lane),
      ts: this.#microseconds(startSeconds),
      dur: Math.max(0, Math.round((endSeconds - startSeconds) * 1e9) / 1e3),
      args,
    });
  }

  /** A moment: a step begins, a rank is lost. */
  mark(lane: Lane, name: string, atSeconds = monotonicSeconds(), args: TimelineArgs = {}): void {
    this.#push({
      name,
      ph: 'i',
      s: 'p',
      pid: this.#rank,
      tid: this.#lanes.indexOf(lane),
      ts: this.#microseconds(atSeconds),
      args,
    });
  }

  /** Runs `work` and notes how long it took, also when it throws. */
  span<T>(lane: Lane, name: string, work: () => T, args: TimelineArgs = {}): T {
    aFunction(work, 'work');
    const start = monotonicSeconds();
    let result: T;
    try {
      result = work();
    } catch (error) {
      this.add(lane, name, start, monotonicSeconds(), args);
      throw error;
    }
    if (result instanceof Promise) {
      const end = () => this.add(lane, name, start, monotonicSeconds(), args);
      result.then(end, end);
    } else {
      this.add(lane, name, start, monotonicSeconds(), args);
    }
    return result;
  }

  #push(event: object): void {
    if (this.#file === undefined) return;
    this.#gathered.push(JSON.stringify(event));
    if (this.#gathered.length >= this.#limit) this.flush();
  }

  /** Writes what was gathered. */
  flush(): void {
    if (this.#file === undefined || this.#gathered.length === 0) return;
    const text = `,\n${this.#gathered.join(',\n')}`;
    this.#write(this.#file, text + ending);
    this.#end += Buffer.byteLength(text);
    this.#gathered = [];
  }

  #write(file: number, text: string): void {
    try {
      const bytes = Buffer.from(text);
      for (let done = 0; done < bytes.length;) {
        done += writeSync(file, bytes, done, bytes.length - done, this.#end + done);
      }
    } catch (cause) {
      this.#closeBrackets(file);
      throw fileFailure(this.#path, 'written', cause);
    }
  }

  /** Makes the file what it was before a write that failed, of a full disk: these bytes it had room for. */
  #closeBrackets(file: number): void {
    try {
      writeSync(file, ending, this.#end);
      ftruncateSync(file, this.#end + ending.length);
    } catch {
      // What is told is why the write before failed.
    }
  }

  /** Writes the rest; later events are dropped. Idempotent. */
  close(): void {
    const file = this.#file;
    if (file === undefined) return;
    try {
      this.flush();
    } finally {
      closeSync(file);
      this.#file = undefined;
    }
  }

  /** As `close()`, at the end of a `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

function epochMicroseconds(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1e3);
}

/** Where a rank writes its own: `trace.json` of rank 3 is `trace.rank-3.json`. */
export function timelineFile(file: string, rank: number): string {
  return partFile(file, `rank-${rank}`);
}

/** Where a server writes its own: `trace.json` of server 1 is `trace.server-1.json`. */
export function serverTimelineFile(file: string, server: number): string {
  return partFile(file, `server-${server}`);
}

function partFile(file: string, part: string): string {
  const { dir, name, ext } = parse(file);
  return join(dir, `${name}.${part}${ext}`);
}

interface TraceFile {
  readonly otherData: { readonly startTimeSinceEpochMicroseconds: number };
  readonly traceEvents: readonly { readonly ts?: number }[];
}

/** Two million events; what is longer no viewer opens, nor is it one string of the engine. */
const mostTraceBytes = 2 ** 28;

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function isTrace(value: unknown): value is TraceFile {
  const { otherData, traceEvents } = (isObject(value) ? value : {}) as Partial<TraceFile>;
  const start: unknown = isObject(otherData)
    ? otherData.startTimeSinceEpochMicroseconds
    : undefined;
  return typeof start === 'number' && Array.isArray(traceEvents) && traceEvents.every(isObject);
}

function readTrace(path: string): TraceFile {
  let bytes: Buffer;
  try {
    bytes = readRegular(path, mostTraceBytes);
  } catch (cause) {
    throw fileFailure(path, 'read', cause);
  }
  const wrong = (got: string): GradlinkError =>
    new GradlinkError('ERR_UNSUPPORTED', `${path}: expected a timeline of gradlink, got ${got}`);
  const trace = parseJson(bytes.toString('utf8'), wrong);
  if (!isTrace(trace)) throw wrong('other JSON');
  return trace;
}

const pathsKind = listOf(aString);

/**
 * Lays the timelines of several ranks side by side in one file, by the clocks of their hosts.
 *
 * @throws GradlinkError ERR_SYSTEM for what cannot be read, is no regular file or has more than 256 MiB; ERR_UNSUPPORTED
 * for what is no timeline.
 */
export function mergeTimelines(paths: readonly string[], into: string): void {
  pathsKind(paths, 'paths');
  nonEmpty(into, 'into');
  const traces = paths.map(readTrace);
  const starts = traces.map(({ otherData }) => otherData.startTimeSinceEpochMicroseconds);
  const first = Math.min(...starts);
  const traceEvents = traces.flatMap(({ traceEvents: events }, i) =>
    events.map((event) =>
      event.ts === undefined ? event : { ...event, ts: event.ts + starts[i]! - first },
    ),
  );
  const otherData = { ranks: traces.length, startTimeSinceEpochMicroseconds: first };
  const merged = JSON.stringify({ displayTimeUnit: 'ms', otherData, traceEvents });
  writeFileAtomic(into, [merged, '\n']);
}
