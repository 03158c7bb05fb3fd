/**
 * NCCL's algorithm and protocol for each size, and the ranks between which it uses sockets. Only its log tells. Logging
 * slows each call, so a separate process runs the sizes once, untimed.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { packageFile } from '../../package-folder.js';
import type { CaseResult } from '../../results/result.js';

/** NCCL's choice for a size. */
export interface NcclChoice {
  /** In capitals: `RING`, `TREE`, `NVLS`. */
  readonly algorithm: string;
  /** In capitals: `LL`, `LL128`, `SIMPLE`. */
  readonly protocol: string;
}

/** By the bytes in NCCL's log. */
export type NcclChoices = ReadonlyMap<number, NcclChoice>;

// Versions up to 2.21 log numbers.
const algorithms = ['TREE', 'RING', 'COLLNET_DIRECT', 'COLLNET_CHAIN', 'NVLS', 'NVLS_TREE', 'PAT'];
const protocols = ['LL', 'LL128', 'SIMPLE'];

const named = (names: readonly string[], text: string): string =>
  names[Number(text)] ?? text.toUpperCase();

/** The choices in a log. Leaves out sizes with several choices, as for different operations. */
export function parseNcclLog(text: string): NcclChoices {
  const choices = new Map<number, NcclChoice | undefined>();
  for (const [, bytes, algo = '', proto = ''] of text.matchAll(
    /(?<!\d)(\d+) Bytes -> Algo (\S+) proto (\S+)/g,
  )) {
    const choice = { algorithm: named(algorithms, algo), protocol: named(protocols, proto) };
    const size = Number(bytes);
    const before = choices.get(size);
    const same =
      !choices.has(size) ||
      (before?.algorithm === choice.algorithm && before.protocol === choice.protocol);
    choices.set(size, same ? choice : undefined);
  }
  return new Map([...choices].flatMap(([size, one]) => (one === undefined ? [] : [[size, one]])));
}

/** Ranks between which NCCL uses sockets by its log: each pair once, the lower rank first. */
export function socketPairs(log: string): [number, number][] {
  const ways = log.matchAll(/ : (\d+)\[\w+\] -> (\d+)\[\w+\] \[send\] via NET\/Socket\//g);
  const pairs = [...ways].map(([, from, to]): [number, number] => {
    const [a, b] = [Number(from), Number(to)];
    return a < b ? [a, b] : [b, a];
  });
  return [...new Map(pairs.map((pair) => [String(pair), pair])).values()];
}

/**
 * Runs a gradlink command with NCCL's log of connections and choices.
 *
 * @returns the log, empty if the command fails before NCCL starts
 */
export async function askNccl(argv: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gradlink-nccl-'));
  try {
    const log = join(folder, 'log');
    const child = spawn(process.execPath, [packageFile('bench/gradlink.js'), ...argv], {
      env: {
        ...process.env,
        NCCL_DEBUG: 'INFO',
        NCCL_DEBUG_SUBSYS: 'INIT,TUNING',
        NCCL_DEBUG_FILE: log,
      },
      stdio: 'ignore',
    });
    await new Promise<void>((ended) => {
      child.on('error', () => {
        ended();
      });
      child.on('close', () => {
        ended();
      });
    });
    return await readFile(log, 'utf8').catch(() => '');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Adds NCCL's choices to the cases as `algorithm` and `protocol`, if known.
 *
 * For collectives with a block per rank, some versions log the bytes of one block, others of all: the largest size
 * tells which.
 */
export function withChoices<Result extends Pick<CaseResult, 'parameters'>>(
  cases: readonly Result[],
  choices: NcclChoices,
): Result[] {
  const total = ({ parameters }: Result): number => Number(parameters.bytes);
  const largest = Math.max(0, ...cases.map(total));
  const logged = Math.max(0, ...choices.keys());
  const factor = largest > 0 && logged > 0 ? logged / largest : 1;
  return cases.map((one) => {
    const choice = choices.get(Math.round(total(one) * factor));
    return choice === undefined ? one : { ...one, parameters: { ...one.parameters, ...choice } };
  });
}
