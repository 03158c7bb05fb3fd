// What the doctor finds, and the memory's bandwidth.
import { freemem } from 'node:os';

import { gibibytes } from '../doctor/limits.js';
import { diagnose, type Finding } from '../doctor/index.js';
import { beyondCaches } from '../measure/machine/array-sizes.js';
import { measureMemoryLimit } from '../measure/machine/memory-limit.js';
import { containerLimits } from '../results/container-limits.js';
import type { CaseResult, EnvironmentInfo, Verdict } from '../results/result.js';
import { bandwidthText, countText } from '../results/units.js';
import { version } from '../version.js';
import { partOf } from './part.js';

/** Of the machine rather than of a job on it, or of packages that not everybody has. */
const others = /^(job|network|hosts?|hostfile|ssh|slurm|mpirun|openmpi|mpich|tfjs.*)(:|$)/;

/** A machine that has GPUs whose driver does not answer is broken; one without any is not. */
const broken = /^driver$/;

function verdictOf(name: string, findings: readonly Finding[]): Verdict {
  const degraded = findings.filter(({ status }) => status === 'degraded');
  if (degraded.length === 0) {
    const [only] = findings;
    const text =
      findings.length === 1
        ? (only?.text ?? '')
        : `${countText(findings.length, 'line')} as they should be`;
    return { level: 'good', text, likelyCause: null };
  }
  const text = degraded
    .map((one) => (one.name === name ? one.text : `${one.name}: ${one.text}`))
    .join('; ');
  const advice = degraded.map((one) => one.advice).filter((one) => one !== null);
  return {
    level: degraded.some((one) => broken.test(one.name)) ? 'poor' : 'fair',
    text,
    likelyCause: advice.length === 0 ? null : advice.join('; '),
  };
}

/** The doctor's lines of the host as one part, and each GPU's as another. */
export async function checkDoctor(env: NodeJS.ProcessEnv): Promise<CaseResult[]> {
  const { findings, seconds } = await diagnose({ packageVersion: version, env });
  const shown = findings.filter(({ name, status }) => status !== 'missing' && !others.test(name));
  const gpus = shown.filter(({ name }) => name.startsWith('gpu:'));
  const part = (parameters: { readonly gpu?: string }, of: readonly Finding[]): CaseResult =>
    partOf(
      { name: 'doctor', parameters },
      { samplesSeconds: [seconds], verdict: verdictOf(parameters.gpu ?? '', of) },
    );
  return [
    part(
      {},
      shown.filter((one) => !gpus.includes(one)),
    ),
    ...gpus.map((one) => part({ gpu: one.name }, [one])),
  ];
}

/** The loops' two arrays, and what they need beside them. */
const spareBytes = 64 * 2 ** 20;
/** Slower than the best pass by so much, it is other work that uses the memory. */
const unsteady = 1.5;

function memoryVerdict(bytesPerSecond: number, medianOfBest: number, threads: number): Verdict {
  const rate = `${bandwidthText(bytesPerSecond)} read and written by ${countText(threads, 'thread')}`;
  if (medianOfBest > unsteady) {
    const text = `${rate}; the median took ${medianOfBest.toFixed(1)} times as long as the best`;
    return {
      level: 'fair',
      text,
      likelyCause: 'something else uses the memory: repeat when the machine is quiet',
    };
  }
  return { level: 'good', text: `${rate}, steadily`, likelyCause: null };
}

/** A copy that no cache holds. */
export async function checkMemory({ lastLevelCacheBytes }: EnvironmentInfo): Promise<CaseResult[]> {
  const identity = { name: 'memory', parameters: {} };
  const needed = 2 * beyondCaches(lastLevelCacheBytes) + spareBytes;
  const { memoryBytes, memoryHighBytes, memoryLeftBytes } = containerLimits();
  const left = Math.min(memoryLeftBytes ?? Infinity, freemem());
  if (left < needed) {
    const bound = memoryBytes ?? memoryHighBytes;
    const of = bound === null ? '' : `, of ${gibibytes(bound.value)} by ${bound.file}`;
    const verdict: Verdict = {
      level: 'poor',
      text: `${gibibytes(left)} left${of}: too little to measure with, which takes ${gibibytes(needed)}`,
      likelyCause:
        bound === null ? 'stop what fills the memory' : 'raise the limit of the container',
    };
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
