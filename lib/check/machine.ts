// The doctor's findings and the memory bandwidth as parts of a check.
import { freemem } from 'node:os';

import { gibibytes } from '../doctor/limits.js';
import { diagnose, type Finding } from '../doctor/index.js';
import { beyondCaches } from '../measure/machine/array-sizes.js';
import { measureMemoryLimit } from '../measure/machine/memory-limit.js';
import { containerLimits } from '../results/container-limits.js';
import type { CaseResult, EnvironmentInfo, Verdict } from '../results/result.js';
import { bandwidthText, countText, sidedText } from '../results/units.js';
import { version } from '../version.js';
import { fair, good, partOf, poor } from './part.js';

/** Findings about a job, or about optional packages, rather than about the machine. */
const others = /^(job|network|hosts?|hostfile|ssh|slurm|mpirun|openmpi|mpich|tfjs.*)(:|$)/;

/** GPUs with an unresponsive driver are a fault; a machine without GPUs is not. */
const broken = 'driver';

/**
 * Turns the doctor's findings into a verdict.
 *
 * @param name the part's name, left out of its lines
 * @param well the text if nothing is degraded
 */
export function findingsVerdict(name: string, findings: readonly Finding[], well: string): Verdict {
  const degraded = findings.filter(({ status }) => status === 'degraded');
  if (degraded.length === 0) return good(well);
  const text = degraded
    .map((one) => `${one.name}: `.replace(new RegExp(`^${name}: ?`), '') + one.text)
    .join('; ');
  const advice = degraded.flatMap((one) => one.advice ?? []).join('; ') || null;
  return degraded.some((one) => one.name === broken) ? poor(text, advice) : fair(text, advice);
}

export async function checkDoctor(env: NodeJS.ProcessEnv): Promise<CaseResult[]> {
  const { findings, seconds } = await diagnose({ packageVersion: version, env });
  const shown = findings.filter(({ name, status }) => status !== 'missing' && !others.test(name));
  const gpus = shown.filter(({ name }) => name.startsWith('gpu:'));
  const part = (parameters: { readonly gpu?: string }, of: readonly Finding[], well: string) =>
    partOf(
      { name: 'doctor', parameters },
      { samplesSeconds: [seconds], verdict: findingsVerdict(parameters.gpu ?? '', of, well) },
    );
  const ofHost = shown.filter((one) => !gpus.includes(one));
  return [
    part({}, ofHost, `${countText(ofHost.length, 'line')} as they should be`),
    ...gpus.map((one) => part({ gpu: one.name }, [one], one.text)),
  ];
}

/** Two arrays of the loops, and some spare memory. */
const spareBytes = 64 * 2 ** 20;
/** Other work uses the memory if the median is this much slower than the best pass. */
const unsteady = 1.5;

function memoryVerdict(bytesPerSecond: number, medianOfBest: number, threads: number): Verdict {
  const rate = `${bandwidthText(bytesPerSecond)} read and written by ${countText(threads, 'thread')}`;
  if (medianOfBest > unsteady) {
    const text = `${rate}; the median took ${sidedText(medianOfBest, 1, [unsteady])} times as long as the best`;
    return fair(text, 'something else uses the memory: repeat when the machine is quiet');
  }
  return good(`${rate}, steadily`);
}

/** A copy larger than any cache. */
export async function checkMemory({ lastLevelCacheBytes }: EnvironmentInfo): Promise<CaseResult[]> {
  const identity = { name: 'memory', parameters: {} };
  const needed = 2 * beyondCaches(lastLevelCacheBytes) + spareBytes;
  const { memoryBytes, memoryHighBytes, memoryLeftBytes } = containerLimits();
  const left = Math.min(memoryLeftBytes ?? Infinity, freemem());
  if (left < needed) {
    const bound = memoryBytes ?? memoryHighBytes;
    const of = bound === null ? '' : `, of ${gibibytes(bound.value)} by ${bound.file}`;
    const text = `${gibibytes(left)} left${of}: too little for this measurement, which needs ${gibibytes(needed)}`;
    const verdict = poor(
      text,
      bound === null ? 'stop what fills the memory' : 'raise the limit of the container',
    );
    return [partOf(identity, { samplesSeconds: [0], verdict })];
  }
  const { copyBytesPerSecond, threads, pass } = await measureMemoryLimit(lastLevelCacheBytes);
  const best = Math.min(...pass.seconds);
  const sorted = pass.seconds.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)] ?? best;
  const part = partOf(identity, {
    samplesSeconds: pass.seconds,
    bytes: pass.bytes,
    verdict: memoryVerdict(copyBytesPerSecond, middle / best, threads),
  });
  return [part];
}
