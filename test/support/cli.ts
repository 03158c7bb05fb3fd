// Runs the command-line program in this process and catches what it writes.
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';

import type { Commands } from '../../lib/cli/commands.js';
import { main } from '../../lib/cli/main.js';
import type { Output } from '../../lib/cli/io.js';

export interface Caught {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Sink extends Writable implements Output {
  text = '';
  readonly isTTY: boolean;
  readonly columns: number;

  constructor(isTTY: boolean, columns: number) {
    super();
    this.isTTY = isTTY;
    this.columns = columns;
  }

  override _write(chunk: Buffer | string, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

/** How it is called. */
export interface Called {
  /** Standard error is a terminal. */
  readonly terminal?: boolean;
  /** Standard output and standard error are terminals of this width. */
  readonly columns?: number;
  /** Other commands than the program's own. */
  readonly table?: Commands;
}

/** `gradlink ARGV`. */
export async function gradlink(
  argv: readonly string[],
  { terminal = false, columns, table }: Called = {},
): Promise<Caught> {
  const stdout = new Sink(columns !== undefined, columns ?? 100);
  const stderr = new Sink(terminal || columns !== undefined, columns ?? 100);
  const signals = new EventEmitter();
  const io = {
    stdout,
    stderr,
    env: process.env,
    on: signals.on.bind(signals),
    off: signals.off.bind(signals),
  };
  const code = await main(argv, io, table);
  return { code, stdout: stdout.text, stderr: stderr.text };
}
