// What a command may touch of the process it runs in. Tests hand over streams of their own.
import type { Writable } from 'node:stream';

/** A stream to write to; `isTTY`, `columns` and `rows` as on process.stderr. */
export type Output = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

/** Where SIGINT, SIGTERM and SIGHUP arrive: `process`, or an EventEmitter in tests. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/** `process` fits as it is. */
export interface Io extends SignalSource {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The exit codes every command keeps to. */
export const exitCodes = { ok: 0, failure: 1, usage: 2 } as const;
