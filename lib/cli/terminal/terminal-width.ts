// How wide the lines may be that people read: of a terminal, or of the one that a job was started at.
import { fstatSync } from 'node:fs';

import type { Io, Output } from '../io.js';

/** Set for the processes of a job whose output is passed on to a terminal. */
export const columnsVariable = 'GRADLINK_COLUMNS';

function columnsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined;
}

/** Whether gradlink reads it, as it does of the processes that it starts: neither a file nor a shell's pipe is a socket. */
export function isPassedOn(output: Output): boolean {
  const { fd } = output as { readonly fd?: number };
  return fd !== undefined && fstatSync(fd).isSocket();
}

/** Characters of a line; Infinity where nothing limits them, as in a pipe or a file. */
export function terminalWidth(output: Output, env: Io['env']): number {
  if (output.isTTY === true) {
    // 0: a terminal that does not know.
    const { columns = 0 } = output;
    return columnsOf(env['COLUMNS']) ?? (columns === 0 ? Infinity : columns);
  }
  const told = columnsOf(env[columnsVariable]);
  return told !== undefined && isPassedOn(output) ? told : Infinity;
}

/** The environment of processes whose lines are passed on to an output, each behind a tag of some characters. */
export function withColumns(env: Io['env'], output: Output, tagged = 0): Io['env'] {
  const others = Object.entries(env).filter(([name]) => name !== columnsVariable);
  const width = terminalWidth(output, env);
  const told = width === Infinity ? [] : [[columnsVariable, String(Math.max(1, width - tagged))]];
  return Object.fromEntries([...others, ...told]) as Io['env'];
}
