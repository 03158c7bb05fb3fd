import { readFileSync } from 'node:fs';
import {
  arch,
  availableParallelism,
  cpus,
  freemem,
  release,
  totalmem,
  type as osType,
} from 'node:os';

import { anObject } from '../checks.js';
import type { EnvironmentInfo } from './result.js';
import { shownVariables } from './shown-variables.js';

/** The variables shown in reports, from a fixed list of names, in alphabetical order. */
export function knownVariables(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  anObject(environment, 'environment');
  const known: Record<string, string> = {};
  for (const name of Object.keys(environment).sort()) {
    const value = environment[name];
    if (value !== undefined && shownVariables.has(name)) known[name] = value;
  }
  return known;
}

/**
 * Facts about this host. The addon's facts are passed in, so that reports can be written without it.
 *
 * @param native SIMD level and threads of the kernels; null if unknown
 */
export function describeEnvironment(native: {
  simdLevel: string | null;
  threads: number | null;
}): EnvironmentInfo {
  anObject(native, 'native');
  const processors = cpus();
  return {
    cpuModel: processors[0]?.model.trim() ?? 'unknown',
    availableCores: availableParallelism(),
    onlineCores: processors.length,
    simdLevel: native.simdLevel,
    threads: native.threads,
    memoryBytes: totalmem(),
    freeMemoryBytes: freemem(),
    lastLevelCacheBytes: lastLevelCache('/sys/devices/system/cpu/cpu0/cache'),
    operatingSystem: osType(),
    kernel: release(),
    architecture: arch(),
    nodeVersion: process.version,
    variables: knownVariables(process.env),
  };
}

/**
 * Size of a core's last cache level, from the kernel.
 *
 * @param directory folder with `index0`, `index1`, ...
 * @returns bytes, or null if unknown
 */
export function lastLevelCache(directory: string): number | null {
  let best: { level: number; bytes: number } | null = null;
  for (let index = 0; ; index += 1) {
    const level = Number(read(`${directory}/index${index}/level`));
    const size = /^(\d+)([KMG]?)$/.exec(read(`${directory}/index${index}/size`) ?? '');
    if (!Number.isInteger(level) || level <= 0 || size === null) break;
    const bytes = Number(size[1]) * (cacheUnits[size[2] ?? ''] ?? 1);
    if (best === null || level > best.level) best = { level, bytes };
  }
  return best?.bytes ?? null;
}

const cacheUnits: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
