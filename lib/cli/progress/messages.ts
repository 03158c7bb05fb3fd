// How a process that has no terminal says how far it is: a line of its standard error, to the process that started it
// and that knows a terminal. Who reads them never passes them on to anybody who did not ask for them.
import type { Io } from '../io.js';
import { isPassedOn } from '../terminal/terminal-width.js';

/** Set for processes whose standard error goes to one that takes these lines out. */
export const progressVariable = 'GRADLINK_PROGRESS';

/** So far; `over` once there is nothing more to say. */
export interface ProgressMessage {
  readonly done: number;
  readonly total: number;
  /** What is counted: `steps`. */
  readonly unit: string;
  readonly over?: true;
}

/** The record separator of ASCII begins no line that people read. */
const start = '\u001eprogress ';
const startBytes = Buffer.from(start);

export function progressLine(message: ProgressMessage): string {
  return `${start}${JSON.stringify(message)}\n`;
}

/** What such a line says; undefined for any other. */
export function readProgress(line: Buffer): ProgressMessage | undefined {
  if (!line.subarray(0, startBytes.length).equals(startBytes)) return undefined;
  try {
    return JSON.parse(line.toString('utf8', startBytes.length)) as ProgressMessage;
  } catch {
    return undefined;
  }
}

/** Whether somebody listens: the variable alone would be inherited by processes whose output goes elsewhere. */
export function hasListener({ stderr, env }: Io): boolean {
  if (env[progressVariable] === undefined) return false;
  return isPassedOn(stderr);
}

/** The environment of processes that are started: that somebody listens, or that nobody does. */
export function environmentFor(
  env: Io['env'],
  listening: boolean,
): Readonly<Record<string, string | undefined>> {
  const others = Object.entries(env).filter(([name]) => name !== progressVariable);
  return Object.fromEntries(listening ? [...others, [progressVariable, '1']] : others);
}
