// Facts that need a library to be loaded. Each probe runs in its own process, since a driver may crash or hang and the
// doctor may not.
import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';

import type { Peer } from '../measure/machine/gpus.js';
import type { NativeMpiLibrary } from '../native/communicator.js';
import type { NativeGpuInfo, NativeGpuLibraries, NativeInstalledGpu } from '../native/gpu.js';
import { isCheckout, packageFile } from '../package-folder.js';

export interface CoresFound {
  readonly addon: string;
  readonly simdLevel: string;
  readonly threads: number;
  /** Read plus written by a plain copy with these threads. */
  readonly copyBytesPerSecond: number;
  readonly wakeUpSeconds: number;
}

export interface GpusFound {
  readonly libraries: NativeGpuLibraries;
  readonly gpus: readonly NativeGpuInfo[];
  /** All GPUs of the machine, by NVML. */
  readonly installed: readonly NativeInstalledGpu[];
  /** By ordinals. */
  readonly peers: readonly (Peer & { readonly from: number; readonly to: number })[];
}

export interface TfjsNodeFound {
  readonly tensorflow: string;
  /** The file of its library; null if unknown. */
  readonly library: string | null;
  readonly gpu: boolean;
  /** Why its operations fail; null if they work. */
  readonly failure: string | null;
}

export interface Probes {
  readonly cores: CoresFound;
  readonly gpus: GpusFound;
  readonly openmpi: NativeMpiLibrary;
  readonly mpich: NativeMpiLibrary;
  readonly 'tfjs-node': TfjsNodeFound;
}

export type ProbeName = keyof Probes;

/** The result, or the reason for its absence. */
export type Probed<T> =
  | { readonly found: T }
  /** `broken`: the library exists, but crashed, hung or failed. */
  | { readonly reason: string; readonly broken: boolean };

export type ProbeMessage =
  { readonly found: unknown } | { readonly reason: string; readonly code: string | null };

/**
 * Never fails: a crash or a timeout becomes a reason.
 *
 * @param timeoutMs after which it is killed
 * @param rest further arguments
 */
export function probe<N extends ProbeName>(
  name: N,
  timeoutMs: number,
  env: NodeJS.ProcessEnv,
  ...rest: readonly string[]
): Promise<Probed<Probes[N]>> {
  const file = packageFile('dist/probe-main.js');
  if (!existsSync(file)) {
    const remedy = isCheckout()
      ? 'nothing is built yet: npm run build'
      : 'the installation is incomplete: install the package of gradlink again';
    const reason = `dist/ is missing, ${remedy}`;
    return Promise.resolve({ reason, broken: true });
  }
  return new Promise((resolve) => {
    let answer: ProbeMessage | undefined;
    let late = false;
    // The library's own output is of no use to the reader.
    const child = fork(file, [name, ...rest], {
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, timeoutMs);
    child.on('message', (message) => (answer = message as ProbeMessage));
    const end = (how: string): void => {
      clearTimeout(timer);
      resolve(conclude(answer, late ? `no answer within ${String(timeoutMs / 1000)} s` : how));
    };
    child.on('error', (error) => {
      end(error.message);
    });
    child.on('close', (code, signal) => {
      end(signal === null ? `ended with status ${String(code)}` : `crashed (${signal})`);
    });
  });
}

function conclude<T>(answer: ProbeMessage | undefined, how: string): Probed<T> {
  if (answer === undefined) return { reason: how, broken: true };
  if ('found' in answer) return { found: answer.found as T };
  return { reason: answer.reason, broken: answer.code !== 'ERR_BACKEND_UNAVAILABLE' };
}
