// What commands of gradlink reach on GPUs: each in a process of its own, so that one that hangs is ended, and a library
// reads its settings anew.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { packageFile } from '../../lib/package-folder.js';
import { failedCase, waivedCase } from '../../lib/results/case.js';
import { readReport } from '../../lib/results/read-report.js';
import type { CaseResult, Report } from '../../lib/results/result.js';
import { reachedCase } from './target.js';

export interface CommandOptions {
  readonly gpu: number;
  readonly quick: boolean;
  readonly samples: number;
  /** So many milliseconds, or what is left of the run. */
  readonly within: (milliseconds: number) => number;
}

/** Runs a command and gives its report. */
export function reportOf(
  args: readonly string[],
  timeoutMs: number,
  env: Readonly<Record<string, string>> = {},
): Report {
  const folder = mkdtempSync(join(tmpdir(), 'gradlink-gpu-'));
  const output = join(folder, 'report.json');
  try {
    const { status, signal, stderr } = spawnSync(
      process.execPath,
      [packageFile('bench/gradlink.js'), ...args, '--format', 'json', '--output', output],
      {
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        encoding: 'utf8',
        env: { ...process.env, ...env },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    if (signal !== null) throw new Error(`it did not end within ${timeoutMs / 1e3} s`);
    if (existsSync(output)) return readReport(output);
    throw new Error(stderr.trim().split('\n').at(-1) ?? `status ${status}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A case of another report under this one's name. */
function take(
  gpu: number,
  name: string,
  result: CaseResult,
  { target, basis = '' }: { readonly target?: number; readonly basis?: string } = {},
): CaseResult {
  const identity = { name, parameters: { gpu } };
  if (result.status === 'waived') return waivedCase(identity, result.reason);
  if (result.status === 'error') return failedCase(identity, new Error(result.reason));
  const { limit, bytes, samplesSeconds: seconds } = result;
  return reachedCase(gpu, {
    name,
    seconds,
    bytes: limit?.mustMoveBytes ?? bytes,
    ...(limit === null
      ? {}
      : {
          limit: {
            bytesPerSecond: limit.copyBytesPerSecond,
            basis: `${basis}${limit.basis ?? 'copies of this GPU'}`,
          },
        }),
    ...(target === undefined ? {} : { target }),
  });
}

/** A network's gradients through a store whose four devices are one GPU. */
export function storeOnGpu({ gpu, quick, within }: CommandOptions): CaseResult[] {
  const gpus = [gpu, gpu, gpu, gpu].join(',');
  const { cases } = reportOf(
    [
      ...['measure', '--kv-store', 'device', '--gpus', gpus],
      ...['--network', 'resnet', '--num-layers', '50', '--num-batches', quick ? '2' : '20'],
    ],
    within(120_000),
  );
  const name = `store device, --gpus ${gpus}, resnet-50`;
  return cases.map((result) =>
    take(gpu, name, result, { target: 0.7, basis: 'the bytes that must move, by ' }),
  );
}

/** An all-reduce of ranks that are these GPUs. */
export function ncclOnGpus(
  name: string,
  gpus: readonly number[],
  { gpu, quick, samples, within }: CommandOptions,
  env: Readonly<Record<string, string>> = {},
): CaseResult[] {
  const size = quick ? '1M' : '256M';
  const { cases } = reportOf(
    [
      ...['collectives', 'all_reduce', '-b', size, '-e', size, '--gpus', gpus.join(',')],
      ...['-T', '30', '--iters', String(samples)],
    ],
    within(60_000),
    env,
  );
  return cases.map((result) =>
    take(gpu, `${name}, ${String(result.parameters.placement)}`, result),
  );
}

/** Only newer libraries take two ranks on one GPU, and only when told to; an older one says that it does not. */
export function ncclOnOneGpu(options: CommandOptions): CaseResult[] {
  const { gpu } = options;
  const name = 'NCCL all_reduce, 2 ranks on one GPU';
  try {
    return ncclOnGpus(name, [gpu, gpu], options, { NCCL_MULTI_RANK_GPU_ENABLE: '1' });
  } catch (error) {
    return [waivedCase({ name, parameters: { gpu } }, (error as Error).message)];
  }
}
