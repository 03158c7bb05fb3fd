// Lines of a run: of its standard output, of a file that grows, or of standard input.
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync, watch } from 'node:fs';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

export type OnLine = (line: string) => void;

/** Resolves at the end of the stream. */
export async function followStream(stream: Readable, onLine: OnLine): Promise<void> {
  for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) onLine(line);
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

/** Reads a file from its beginning, and what is appended to it until `signal` is aborted. */
export async function followFile(file: string, onLine: OnLine, signal: AbortSignal): Promise<void> {
  const descriptor = openSync(file, 'r');
  const decoder = new StringDecoder('utf8');
  const buffer = Buffer.alloc(chunk);
  let position = 0;
  let rest = '';
  const read = (): void => {
    // A run that began anew has cut its file.
    if (fstatSync(descriptor).size < position) position = 0;
    for (;;) {
      const count = readSync(descriptor, buffer, 0, chunk, position);
      if (count === 0) return;
      position += count;
      const lines = (rest + decoder.write(buffer.subarray(0, count))).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) onLine(line);
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
      watcher.on('change', () => {
        read();
      });
      // After the watcher began: nothing that is appended meanwhile is missed.
      read();
    });
    if (rest !== '') onLine(rest);
  } finally {
    closeSync(descriptor);
  }
}
