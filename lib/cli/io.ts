// What a command may touch of the process it runs in. Tests hand over streams of their own.
import { constants } from 'node:os';
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

export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Thrown where a signal ends a command that had something to end and to remove first. */
export class Interrupted extends Error {
  /** As a shell has it of a process that the signal ended. */
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** `process` fits as it is. */
export interface Io extends SignalSource {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The exit codes every command keeps to. */
export const exitCodes = { ok: 0, failure: 1, usage: 2 } as const;
