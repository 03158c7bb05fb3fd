// What can only be learned by loading somebody's library. Each probe runs in a process of its own, since a driver may
// crash or hang and the doctor may not.
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
  /** Read plus written, by a plain copy with these threads. */
  readonly copyBytesPerSecond: number;
  readonly wakeUpSeconds: number;
}

export interface GpusFound {
  readonly libraries: NativeGpuLibraries;
  readonly gpus: readonly NativeGpuInfo[];
  /** All of the machine, by NVML. */
  readonly installed: readonly NativeInstalledGpu[];
  /** From one ordinal to another. */
  readonly peers: readonly (Peer & { readonly from: number; readonly to: number })[];
}

export interface TfjsNodeFound {
  /** TensorFlow's version. */
  readonly tensorflow: string;
  /** The file of its library; null where the system does not say. */
  readonly library: string | null;
  readonly gpu: boolean;
  /** Why its operations fail; null where they work. */
  readonly failure: string | null;
}

/** What each probe sends. */
export interface Probes {
  readonly cores: CoresFound;
  readonly gpus: GpusFound;
  readonly openmpi: NativeMpiLibrary;
  readonly mpich: NativeMpiLibrary;
  readonly 'tfjs-node': TfjsNodeFound;
}

export type ProbeName = keyof Probes;

/** What was found, or why not. */
export type Probed<T> =
  | { readonly found: T }
  /** `broken`: the library is there, but crashed, hung or failed. */
  | { readonly reason: string; readonly broken: boolean };

/** What a probe's process sends to its parent. */
export type ProbeMessage =
  { readonly found: unknown } | { readonly reason: string; readonly code: string | null };

/**
 * Never fails: a process that crashes or does not answer is a reason.
 *
 * @param patienceMs after which it is killed
 * @param env of the process
 * @param rest what the probe is told besides
 */
export function probe<N extends ProbeName>(
  name: N,
  patienceMs: number,
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
    // What a library prints is not for the reader of the diagnosis.
    const child = fork(file, [name, ...rest], {
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, patienceMs);
    child.on('message', (message) => (answer = message as ProbeMessage));
    const end = (how: string): void => {
      clearTimeout(timer);
      resolve(conclude(answer, late ? `no answer within ${String(patienceMs / 1000)} s` : how));
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
