// Compares cores: which one is throttled, and which one runs other work.
import { readdirSync, readFileSync } from 'node:fs';
import { median } from 'simple-statistics';

import { allowedCores } from '../launch/cores.js';
import { native } from '../native/load.js';
import { groupBy } from '../results/grouping.js';
import { beside, lowerMedian, type Spread } from '../results/beside.js';
import type { CaseResult, Verdict } from '../results/result.js';
import { percentText } from '../results/units.js';
import { fair, good, partOf, poor } from './part.js';

const rounds = 15;
const roundSeconds = 0.02;
/** A core shared with one other thread is free half of the time. */
export const busyShare = 0.8;
/** If no other core is freer, the whole machine is busy. */
const freeShare = 0.9;
/** Passing load leaves a core free in some rounds; bound threads do not. */
const mostFreeRounds = 2;
/** Measurements before a core is reported: load that moves hits different cores. */
const looks = 3;
const stepsOfSample = 1e6;

export interface CoreFigures {
  readonly core: number;
  /** Compared only with cores of the same kind: others are slower by design. */
  readonly kind: string;
  /** By round: steps per second of CPU time, and the share of wall time that the core was available. */
  readonly stepsPerSecond: readonly number[];
  readonly shares: readonly number[];
}

export interface CoresFound {
  readonly verdict: Verdict;
  readonly values: Readonly<Record<string, number>>;
}

function names(cores: readonly CoreFigures[]): string {
  return cores.map(({ core }) => `cpu:${String(core)}`).join(', ');
}

const freeOf = ({ shares }: CoreFigures): number => median([...shares]);
const freeText = (share: number): string => percentText(share, [busyShare, freeShare]);
const rateOf = ({ stepsPerSecond }: CoreFigures): number => median([...stepsPerSecond]);

function secondsOf({ stepsPerSecond }: CoreFigures): Spread {
  const seconds = stepsPerSecond.map((rate) => (rate > 0 ? 1 / rate : Infinity));
  return { medianSeconds: median(seconds), fastestSeconds: Math.min(...seconds) };
}

function slowOf(figures: readonly CoreFigures[]): CoreFigures[] {
  return [...groupBy(figures, ({ kind }) => kind).values()].flatMap((alike) =>
    alike.filter((one) => {
      const others = alike.filter((other) => other !== one).map(secondsOf);
      return (beside(secondsOf(one), others)?.level ?? 'good') !== 'good';
    }),
  );
}

function busyOf(figures: readonly CoreFigures[]): CoreFigures[] {
  return figures.filter((one) => {
    const others = figures.filter((other) => other !== one).map(freeOf);
    const freeRounds = one.shares.filter((share) => share >= freeShare).length;
    return (
      freeOf(one) < busyShare &&
      freeRounds <= mostFreeRounds &&
      others.length > 0 &&
      lowerMedian(others)! >= freeShare
    );
  });
}

/**
 * Judges by the last measurement. A core is reported if it is an outlier in each of them.
 *
 * @param all the figures of all cores, per measurement
 * @param running describes the load of a core; empty if unknown
 */
export function judgeCores(
  all: readonly (readonly CoreFigures[])[],
  running: (core: number) => string = () => '',
): CoresFound {
  const figures = all.at(-1) ?? [];
  const always = (found: (look: readonly CoreFigures[]) => CoreFigures[]): CoreFigures[] => {
    const outliers = all.map((look) => new Set(found(look).map(({ core }) => core)));
    return figures.filter(({ core }) => outliers.every((cores) => cores.has(core)));
  };
  const [slow, busy] = [always(slowOf), always(busyOf)];
  const free = figures.map(freeOf);
  const rates = figures.map(rateOf);
  const leastFree = Math.min(...free);
  const values = {
    cores: figures.length,
    leastFreeShare: leastFree,
    slowestOfMedian: Math.min(...rates) / Math.max(lowerMedian(rates) ?? 0, Number.MIN_VALUE),
  };
  const judged = (verdict: Verdict): CoresFound => ({ verdict, values });
  if (busy.length > 0) {
    const share = freeText(Math.min(...busy.map(freeOf)));
    const others = freeText(lowerMedian(free.filter((one) => one >= freeShare)) ?? 0);
    const who = busy.map(({ core }) => running(core)).filter((text) => text !== '');
    const text = `${names(busy)} free for ${share} of the time, the others for ${others}`;
    return judged(
      poor(text, `something else runs there${who.length === 0 ? '' : `: ${who.join(', ')}`}`),
    );
  }
  if (slow.length > 0) {
    const likelyCause =
      'their clocks are throttled (heat, power, firmware settings), or a hypervisor shares them with other guests';
    const share = percentText(values.slowestOfMedian);
    return judged(poor(`${names(slow)} at ${share} of the others`, likelyCause));
  }
  const count = figures.length === 1 ? 'one core' : `${String(figures.length)} cores alike`;
  if (leastFree < busyShare) {
    const text = `${count}; at least ${freeText(leastFree)} of the time free`;
    return judged(fair(text, 'the machine is busy, which lowers the figures of this run'));
  }
  return judged(good(`${count}, free for ${freeText(leastFree)} of the time or more`));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

/** A core's kind by the kernel: its highest clock, or on Arm its capacity. */
function kindOf(core: number): string {
  const folder = `/sys/devices/system/cpu/cpu${String(core)}`;
  return ['cpufreq/cpuinfo_max_freq', 'cpu_capacity']
    .map((name) => textOf(`${folder}/${name}`))
    .join(' ');
}

/** Threads of others that run on a core now: `stress (pid 4711)`. */
export function runningOn(core: number): string {
  const found = new Set<string>();
  for (const pid of readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && Number(name) !== process.pid,
  )) {
    // proc(5): name in parentheses, state, and the processor 36 fields later.
    const [, name = '', rest = ''] = /^\d+ \((.*)\) (.*)$/s.exec(textOf(`/proc/${pid}/stat`)) ?? [];
    const fields = rest.split(' ');
    if (fields[0] === 'R' && Number(fields[36]) === core) found.add(`${name} (pid ${pid})`);
  }
  return [...found].join(', ');
}

/** Measures every second core at a time: movable load goes to the free half, and only bound threads stay. */
async function measure(cores: readonly number[]): Promise<CoreFigures[]> {
  const halves = [0, 1].map((side) => cores.filter((_, at) => at % 2 === side));
  const figures: CoreFigures[] = [];
  for (const half of halves.filter(({ length }) => length > 0)) {
    const { stepsPerSecond, shares } = await native().coreRates({
      cores: half,
      rounds,
      roundSeconds,
    });
    const part = (values: Float64Array, at: number): number[] => [
      ...values.subarray(at * rounds, (at + 1) * rounds),
    ];
    for (const [at, core] of half.entries()) {
      const kind = kindOf(core);
      figures.push({
        core,
        kind,
        stepsPerSecond: part(stepsPerSecond, at),
        shares: part(shares, at),
      });
    }
  }
  return figures.toSorted((a, b) => a.core - b.core);
}

/** Takes 0.6 s, or three times as long if a core is an outlier. */
export async function checkCores(): Promise<CaseResult[]> {
  const all: CoreFigures[][] = [];
  do all.push(await measure(allowedCores()));
  while (all.length < looks && judgeCores(all).verdict.level === 'poor');
  const figures = all.at(-1) ?? [];
  // The slowest core of each round.
  const samplesSeconds = Array.from({ length: rounds }, (_, round) =>
    Math.max(
      ...figures.map(({ stepsPerSecond }) => stepsOfSample / (stepsPerSecond[round] ?? NaN)),
    ),
  );
  const identity = { name: 'cores', parameters: {} };
  return [partOf(identity, { samplesSeconds, ...judgeCores(all, runningOn) })];
}

/** Whether other processes use a share of the cores now. */
export async function isBusy(): Promise<boolean> {
  const figures = await measure(allowedCores());
  return Math.min(...figures.map(freeOf)) < busyShare;
}
