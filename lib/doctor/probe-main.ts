// The program of one probe: loads what it is to look at, sends what it found to its parent, and ends.
//
//   node probe-main.js cores|gpus|openmpi|mpich
//   node probe-main.js tfjs-node FOLDER
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { mebibyte } from '../results/units.js';
import { lastLevelCache } from '../results/environment.js';
import { readMachine } from '../measure/machine/gpus.js';
import { native, nativePath } from '../native/load.js';
import { nativeMemoryLoops } from '../native/measure.js';
import type { CoresFound, GpusFound, ProbeMessage, ProbeName, TfjsNodeFound } from './probes.js';

/** Beyond most caches and still quick; `gradlink measure` is thorough. */
const smallest = 64 * mebibyte;
const largest = 192 * mebibyte;
const passes = 5;

async function cores(): Promise<CoresFound> {
  const addon = native();
  const threads = addon.numThreads();
  const cache = lastLevelCache('/sys/devices/system/cpu/cpu0/cache') ?? 0;
  const timing = await addon.memoryBandwidth({
    loop: nativeMemoryLoops.copy,
    bytes: Math.min(Math.max(smallest, 2 * cache), largest),
    arrays: 1,
    threads,
    warmup: 1,
    samples: passes,
    repeats: 1,
  });
  return {
    addon: nativePath(),
    simdLevel: addon.simdLevel(),
    threads,
    copyBytesPerSecond: timing.bytes / Math.min(...timing.seconds),
    wakeUpSeconds: addon.wakeUpSeconds(),
  };
}

function gpus(): GpusFound {
  const machine = readMachine();
  const ordinals = machine.gpus.map(({ ordinal }) => ordinal);
  return {
    libraries: native().gpuLibraries(),
    gpus: machine.gpus,
    installed: native().installedGpus(),
    peers: ordinals.flatMap((from) =>
      ordinals.filter((to) => to !== from).map((to) => ({ from, to, ...machine.peer(from, to) })),
    ),
  };
}

/** The used part of the package. */
interface TfjsNode {
  backend(): { isUsingGpuDevice: boolean; binding: { TF_Version: string } };
  scalar(value: number): { neg(): { dataSync(): unknown } };
}

async function tfjsNode(folder: string): Promise<TfjsNodeFound> {
  const file = pathToFileURL(join(folder, 'dist/index.js')).href;
  const { default: tf } = (await import(file)) as { default: TfjsNode };
  const { isUsingGpuDevice, binding } = tf.backend();
  let failure: string | null = null;
  try {
    tf.scalar(1).neg().dataSync();
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  const maps = readFileSync('/proc/self/maps', 'utf8').split('\n');
  const mapped = maps.find((line) => /\/libtensorflow(?:_cc)?\.so/.test(line));
  const library = mapped === undefined ? null : mapped.slice(mapped.indexOf('/'));
  return { tensorflow: binding.TF_Version, library, gpu: isUsingGpuDevice, failure };
}

async function look(name: ProbeName): Promise<unknown> {
  switch (name) {
    case 'cores':
      return await cores();
    case 'gpus':
      return gpus();
    case 'openmpi':
    case 'mpich':
      return native().mpiLibrary();
    case 'tfjs-node':
      return await tfjsNode(process.argv[3] ?? '');
  }
}

function send(message: ProbeMessage): void {
  process.send?.(message, () => {
    process.disconnect();
  });
}

try {
  send({ found: await look(process.argv[2] as ProbeName) });
} catch (error) {
  const code = error instanceof Error && 'code' in error ? String(error.code) : null;
  send({ reason: error instanceof Error ? error.message : String(error), code });
}
