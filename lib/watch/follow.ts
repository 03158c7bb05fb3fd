// Lines of a run: of its standard output, of a file that grows, or of standard input.
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, readSync, watch } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';

import { LineSplitter } from '../launch/line-splitter.js';
import { inputError, openInput } from '../results/input-file.js';

/** Gets a line without its end, and its end: with a carriage return a program takes back what it shows. */
export type OnLine = (line: string, end: '\n' | '\r') => void;

const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** Gives each line; one that does not end comes in parts, so that it does not fill our memory. */
class Lines {
  private ending: '\n' | '\r' = '\n';
  /** A carriage return came last: with a line feed behind it, it would be the end of a line. */
  private returned = false;
  private readonly splitter: LineSplitter;

  constructor(onLine: OnLine) {
    this.splitter = new LineSplitter((line) => {
      onLine(line.toString('utf8').replace(/\n$/, ''), this.ending);
    });
  }

  write(chunk: Buffer): void {
    if (this.returned && chunk.length > 0) {
      this.returned = false;
      if (chunk[0] !== lineFeed) this.takenBack();
    }
    let start = 0;
    for (;;) {
      const at = chunk.indexOf(carriageReturn, start);
      if (at < 0) break;
      this.splitter.write(chunk.subarray(start, at));
      start = at + 1;
      if (start === chunk.length) this.returned = true;
      else if (chunk[start] !== lineFeed) this.takenBack();
    }
    if (start < chunk.length) this.splitter.write(chunk.subarray(start));
  }

  end(): void {
    this.splitter.end();
  }

  private takenBack(): void {
    this.ending = '\r';
    this.splitter.end();
    this.ending = '\n';
  }
}

/** Resolves at the end of the stream. */
export async function followStream(stream: Readable, onLine: OnLine): Promise<void> {
  const lines = new Lines(onLine);
  for await (const chunk of stream) lines.write(chunk as Buffer);
  lines.end();
}

/**
 * Runs a command and gives each line of what it prints, on standard output or standard error.
 *
 * @param signal ends it with SIGTERM
 * @returns its exit status; 128 and the signal's number where one ended it
 */
export async function followCommand(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
  onLine: OnLine,
  signal: AbortSignal,
): Promise<number> {
  const child = spawn(program, args, { env, stdio: ['inherit', 'pipe', 'pipe'] });
  signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  const ended = new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
  const [status] = await Promise.all([
    ended,
    followStream(child.stdout, onLine),
    followStream(child.stderr, onLine),
  ]);
  return status;
}

const chunk = 64 * 1024;
const expected = 'the output of a run';

/**
 * Reads a file from its beginning, and what is appended to it until `signal` is aborted.
 *
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) when it is no regular file or begins with no text, GradlinkError
 * (`ERR_SYSTEM`) when it cannot be opened
 */
export async function followFile(file: string, onLine: OnLine, signal: AbortSignal): Promise<void> {
  const descriptor = openInput(file, expected);
  const lines = new Lines(onLine);
  const buffer = Buffer.alloc(chunk);
  let position = 0;
  const read = (): void => {
    // A run that began anew has cut its file.
    if (fstatSync(descriptor).size < position) position = 0;
    for (;;) {
      const count = readSync(descriptor, buffer, 0, chunk, position);
      if (count === 0) return;
      const zero = buffer.subarray(0, count).indexOf(0);
      if (position === 0 && zero >= 0) {
        throw inputError(
          file,
          expected,
          `bytes that are not text (a zero at byte ${String(zero)})`,
        );
      }
      position += count;
      // The splitter keeps what it is given until the line has ended.
      lines.write(Buffer.from(buffer.subarray(0, count)));
    }
  };
  try {
    const watcher = watch(file);
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        watcher.close();
        resolve();
      };
      if (signal.aborted) {
        read();
        end();
        return;
      }
      signal.addEventListener('abort', end, { once: true });
      watcher.on('error', reject);
      const more = (): void => {
        try {
          read();
        } catch (error) {
          watcher.close();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      watcher.on('change', more);
      // After the watcher began: nothing that is appended meanwhile is missed.
      more();
    });
    lines.end();
  } finally {
    closeSync(descriptor);
  }
}
