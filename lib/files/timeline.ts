// Timelines of the ranks' computation and communication, as files for trace viewers.
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

/** Lanes of a rank in display order. */
export const timelineLanes = ['compute', 'communication'] as const;
/** One of {@link timelineLanes}. */
export type TimelineLane = (typeof timelineLanes)[number];

/** Options of {@link Timeline}. */
export interface TimelineOptions<Lane extends string = TimelineLane> {
  /** The rank of the events, used as the trace's process. 0 when absent. */
  readonly rank?: number | undefined;
  /** The process name; `rank R` when absent. */
  readonly label?: string | undefined;
  /** The process's lanes in display order; {@link timelineLanes} when absent. */
  readonly lanes?: readonly Lane[] | undefined;
  /** Number of events per write; 64 when absent. */
  readonly buffered?: number | undefined;
}

const timelineNames = optionNames<TimelineOptions<string>>({
  rank: true,
  label: true,
  lanes: true,
  buffered: true,
});
const lanesKind = listOf(aString);

/** Details of an event for the viewer. */
export type TimelineArgs = Readonly<Record<string, string | number | boolean>>;

const maxBuffered = 2 ** 20;
const ending = '\n]}\n';

/**
 * A rank's timeline as a Chrome trace (chrome://tracing, Perfetto): one process per rank, with lanes for computing and
 * communicating, or custom ones. The file is valid JSON at any time, even after a crash: each write replaces the
 * closing brackets by events and brackets at once.
 *
 * Times are seconds of {@link monotonicSeconds}; the file has microseconds since the timeline was opened.
 * `otherData.startTimeSinceEpochMicroseconds` has the start, so that {@link mergeTimelines} can combine ranks.
 */
export class Timeline<Lane extends string = TimelineLane> implements Disposable {
  readonly #start = monotonicSeconds();
  readonly #rank: number;
  readonly #limit: number;
  readonly #path: string;
  readonly #lanes: readonly string[];
  #file: number | undefined;
  /** Position of the closing brackets. */
  #end: number;
  #gathered: string[] = [];

  /** @throws GradlinkError ERR_SYSTEM if the file cannot be written */
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
    // Atomically, so that a full disk keeps the previous run's timeline.
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

  /** An event from `startSeconds` to `endSeconds`. */
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

  /** An instant: the start of a step, the loss of a rank. */
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

  /** Runs `work` and records its duration, even if it throws. */
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

  /** Writes buffered events. */
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

  /** Restores the file after a failed write, for example on a full disk: there was room for these bytes before. */
  #closeBrackets(file: number): void {
    try {
      writeSync(file, ending, this.#end);
      ftruncateSync(file, this.#end + ending.length);
    } catch {
      // The first write's error is reported.
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

/** A rank's file: `trace.json` of rank 3 is `trace.rank-3.json`. */
export function timelineFile(file: string, rank: number): string {
  return partFile(file, `rank-${rank}`);
}

/** A server's file: `trace.json` of server 1 is `trace.server-1.json`. */
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

/** Two million events; no viewer opens more, and the engine's strings are limited. */
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
 * Combines the timelines of several ranks in one file, by their hosts' clocks.
 *
 * @throws GradlinkError ERR_SYSTEM if a file cannot be read, is not regular or exceeds 256 MiB; ERR_UNSUPPORTED if it
 *   is not a timeline.
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
