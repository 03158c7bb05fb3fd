// Lines of a run: from a command, a growing file, or standard input.
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, readSync, watch } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';

import { LineSplitter } from '../launch/line-splitter.js';
import { inputError, openInput } from '../results/input-file.js';

/** Receives a line and its ending: with a carriage return a program overwrites its line. */
export type OnLine = (line: string, end: '\n' | '\r') => void;

const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** Splits output into lines; an endless line comes in parts, to bound memory. */
class Lines {
  private ending: '\n' | '\r' = '\n';
  /** A carriage return came last: with a line feed next, both are one line ending. */
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
 * Runs a command and passes on each line of its standard output and error.
 *
 * @param signal ends it with SIGTERM
 * @returns its exit status, 128 + the signal's number if killed
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
 * Reads a file from its beginning and follows it until `signal` is aborted.
 *
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) if it is not a regular file or does not begin with text, GradlinkError
 *   (`ERR_SYSTEM`) if it cannot be opened
 */
export async function followFile(file: string, onLine: OnLine, signal: AbortSignal): Promise<void> {
  const descriptor = openInput(file, expected);
  const lines = new Lines(onLine);
  const buffer = Buffer.alloc(chunk);
  let position = 0;
  const read = (): void => {
    // A new run has truncated its file.
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
      // The splitter keeps its input until the line ends.
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
      // Reads after the watcher has started, so that no change is missed.
      more();
    });
    lines.end();
  } finally {
    closeSync(descriptor);
  }
}
