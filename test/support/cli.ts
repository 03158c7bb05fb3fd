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
  readonly columns = 100;

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: Buffer | string, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

/** `gradlink ARGV`; `terminal`: standard error is one; `table`: other commands than the program's own. */
export async function gradlink(
  argv: readonly string[],
  { terminal = false, table }: { terminal?: boolean; table?: Commands } = {},
): Promise<Caught> {
  const stdout = new Sink(false);
  const stderr = new Sink(terminal);
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
