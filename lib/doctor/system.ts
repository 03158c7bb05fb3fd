// Small queries to the system that may have no answer.
import { execFile } from 'node:child_process';
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export type Env = Readonly<Record<string, string | undefined>>;

/** A file's trimmed text; undefined if it cannot be read. */
export function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Names in a folder; empty if it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The path of a program; undefined if it is not in PATH. */
export function programFile(name: string, env: Env): string | undefined {
  return (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** The output of a program; undefined if it is missing, fails or times out. */
export function output(
  program: string,
  args: readonly string[],
  env: Env,
  timeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(
      program,
      [...args],
      { env: { ...env }, timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: 2 ** 24 },
      (error, stdout) => {
        resolve(error === null ? stdout : undefined);
      },
    );
  });
}
