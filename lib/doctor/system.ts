// Small questions to the system whose answer may be missing.
import { execFile } from 'node:child_process';
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export type Env = Readonly<Record<string, string | undefined>>;

/** A file's text without blanks around it; undefined where it cannot be read. */
export function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Names in a folder; none where it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Where a program is on the path of this environment. */
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

/** What a program prints; undefined where it is not there, fails or takes longer. */
export function output(
  program: string,
  args: readonly string[],
  env: Env,
  patienceMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(
      program,
      [...args],
      { env: { ...env }, timeout: patienceMs, killSignal: 'SIGKILL', maxBuffer: 2 ** 24 },
      (error, stdout) => {
        resolve(error === null ? stdout : undefined);
      },
    );
  });
}
