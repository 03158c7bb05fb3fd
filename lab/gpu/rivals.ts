// NVIDIA's own programs, where this machine has them built: the same case by them, beside ours, in one run.
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A program of NVIDIA's: by the variable that names its file, or in PATH. */
export interface Rival {
  readonly program: string;
  readonly variable: string;
}

export const nvbandwidth: Rival = { program: 'nvbandwidth', variable: 'GRADLINK_NVBANDWIDTH' };
export const allReducePerf: Rival = {
  program: 'all_reduce_perf',
  variable: 'GRADLINK_ALL_REDUCE_PERF',
};

type Env = Readonly<Record<string, string | undefined>>;

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Its file; undefined where there is none. */
export function findRival(
  { program, variable }: Rival,
  env: Env = process.env,
): string | undefined {
  const named = env[variable];
  if (named !== undefined && named !== '') return canRun(named) ? named : undefined;
  return (env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, program))
    .find(canRun);
}

/** What it prints; an error that says how it ended where it did not end well. */
export function runRival(
  file: string,
  args: readonly string[],
  timeoutMs: number,
  env: Readonly<Record<string, string>> = {},
): string {
  const { status, signal, stdout, stderr, error } = spawnSync(file, args, {
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const last = (text: string): string => text.trim().split('\n').at(-1) ?? '';
  if (signal !== null) throw new Error(`${file} did not end within ${timeoutMs / 1e3} s`);
  if (error !== undefined) throw error;
  if (status === 0) return stdout;
  throw new Error(`${file} ended with status ${status}: ${last(stderr) || last(stdout)}`);
}

/**
 * Bytes a second of one of nvbandwidth's cases on one GPU: the sum that it prints is then the figure itself.
 *
 * @throws Error where there is none: a case that the machine does not have is waived by name
 */
export function readNvbandwidth(text: string, name: string): number {
  const sum = new RegExp(`^SUM ${name} (\\d+(?:\\.\\d+)?)\\s*$`, 'm').exec(text)?.[1];
  if (sum !== undefined) return Number(sum) * 1e9;
  const waived = new RegExp(`^.*${name}.*waived.*$|^WAIVED.*$`, 'im').exec(text)?.[0];
  throw new Error(
    waived === undefined
      ? `expected a line "SUM ${name} NUMBER" of nvbandwidth, and there was none`
      : `nvbandwidth: ${waived.trim()}`,
  );
}

/**
 * Bytes a second (algbw) out of place and in place, from nccl-tests' line of one size.
 *
 * @throws Error where there is no such line, and where results were wrong
 */
export function readAllReducePerf(
  text: string,
  bytes: number,
): { readonly outOfPlace: number; readonly inPlace: number } {
  const line = text.split('\n').find((one) => new RegExp(`^\\s*${bytes}\\s`).test(one));
  // size, count, type, redop, root; then time, algbw, busbw and #wrong, twice.
  const cells = line?.trim().split(/\s+/) ?? [];
  const [outOfPlace, wrongOut, inPlace, wrongIn] = [6, 8, 10, 12].map((at) => Number(cells[at]));
  if (!(Number(outOfPlace) > 0) || !(Number(inPlace) > 0)) {
    throw new Error(`expected nccl-tests' line of ${bytes} bytes, got '${line ?? ''}'`);
  }
  if (Number(wrongOut) > 0 || Number(wrongIn) > 0) throw new Error(`wrong results: ${line ?? ''}`);
  return { outOfPlace: Number(outOfPlace) * 1e9, inPlace: Number(inPlace) * 1e9 };
}
