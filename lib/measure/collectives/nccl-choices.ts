/**
 * Which algorithm and protocol NCCL chose for each size, and between which ranks it goes over sockets. No function of the
 * library tells; its log does. Logging takes time at each call, so that a process of its own runs the sizes once and is
 * not timed.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { packageFile } from '../../package-folder.js';
import type { CaseResult } from '../../results/result.js';

/** What NCCL chose for a size. */
export interface NcclChoice {
  /** In capitals: `RING`, `TREE`, `NVLS`. */
  readonly algorithm: string;
  /** In capitals: `LL`, `LL128`, `SIMPLE`. */
  readonly protocol: string;
}

/** By the bytes that NCCL logs. */
export type NcclChoices = ReadonlyMap<number, NcclChoice>;

// Up to 2.21 the log has numbers.
const algorithms = ['TREE', 'RING', 'COLLNET_DIRECT', 'COLLNET_CHAIN', 'NVLS', 'NVLS_TREE', 'PAT'];
const protocols = ['LL', 'LL128', 'SIMPLE'];

const named = (names: readonly string[], text: string): string =>
  names[Number(text)] ?? text.toUpperCase();

/** What a log says was chosen. Sizes for which more than one choice was made, as for different operations, are left out. */
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

/** Ranks between which the log says that NCCL passes data over sockets: each two once, the lower first. */
export function socketPairs(log: string): [number, number][] {
  const ways = log.matchAll(/ : (\d+)\[\w+\] -> (\d+)\[\w+\] \[send\] via NET\/Socket\//g);
  const pairs = [...ways].map(([, from, to]): [number, number] => {
    const [a, b] = [Number(from), Number(to)];
    return a < b ? [a, b] : [b, a];
  });
  return [...new Map(pairs.map((pair) => [String(pair), pair])).values()];
}

/**
 * Runs a command of gradlink with NCCL's log of how it connects and what it chooses.
 *
 * @returns the log, empty where the command fails before NCCL begins
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
 * The cases with what NCCL chose for each as `algorithm` and `protocol`, where that is known.
 *
 * Of collectives that move a block for each rank some versions log the bytes of a block, others those of all blocks: the
 * largest size tells which.
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
