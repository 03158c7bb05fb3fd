// Messages between pairs of ranks: `gradlink pairs` without its options and printing.
import { mean } from 'simple-statistics';

import { argumentError, GradlinkError } from '../../errors.js';
import { failedCase } from '../../results/case.js';
import type { CaseResult, Report } from '../../results/result.js';
import {
  checkEvents,
  givenOptions,
  headOf,
  Steps,
  type Given,
  type RunEvents,
} from '../common-run.js';
import { partnerIn, roundsOf } from '../hosts/rounds.js';
import { rankCount } from '../job.js';
import {
  identityOf,
  pairCases,
  rateCase,
  samplesOf,
  type PairSamples,
  type Point,
} from './cases.js';
import { iterationsOf, pairsTable, type PairKind, type PairsOptions } from './pairs-options.js';
import { openPairs, type Exchange, type Pair, type PairWorld, type RankSeconds } from './world.js';

const defaultRanks = 2;
/** OSU's sizes. */
const sizesOfTwo: readonly number[] = Array.from({ length: 23 }, (_, power) => 2 ** power);
/** For many pairs: one size for latency, one for bandwidth. */
const sizesOfMany: readonly number[] = [8, 2 ** 20];
/** OSU's size of the answer to a window. */
const answerBytes = 4;
/** Limit of a round's samples: over 1 Gbit/s a window of 64 MiB takes half a second, and a few are enough. */
const mostSeconds = 3;

/**
 * The pairs of each round; for message rates the first half of the ranks with the second.
 *
 * @param eachWay adds a reversed round after each round
 * @param most maximum number of rounds before that
 */
export function roundsFor(kind: PairKind, size: number, eachWay = false, most?: number): Pair[][] {
  if (kind === 'message_rate') {
    const half = Math.floor(size / 2);
    return [Array.from({ length: half }, (_, rank) => [rank, rank + half] as const)];
  }
  const rounds = roundsOf(size, most).map((round) =>
    Array.from({ length: size }, (_, rank) => rank).flatMap((rank): Pair[] => {
      const partner = partnerIn(round, rank, size);
      return partner === undefined || partner < rank ? [] : [[rank, partner]];
    }),
  );
  if (!eachWay) return rounds;
  return rounds.flatMap((pairs) => [pairs, pairs.map(([from, to]) => [to, from] as const)]);
}

/**
 * Times a round. Without a given number of samples, slow messages get fewer; every rank decides from the same figures.
 */
async function timeRound(
  world: PairWorld,
  pairs: readonly Pair[],
  exchange: Exchange,
  bothWays: boolean,
  bounded: boolean,
): Promise<{ readonly found: readonly RankSeconds[]; readonly warmup: number }> {
  if (!bounded) {
    return { found: await world.time(pairs, exchange, bothWays), warmup: exchange.warmup };
  }
  const tried = async (samples: number): Promise<number> => {
    const trial = { ...exchange, warmup: 0, samples, verify: false };
    const found = await world.time(pairs, trial, bothWays);
    return Math.max(...found.map(({ seconds }) => mean(seconds)));
  };
  // The first sample is cold; the rest of the warm-up is more accurate, also about rare losses, unless it takes long.
  const first = await tried(1);
  const more = Math.min(exchange.warmup - 1, Math.floor(mostSeconds / 10 / first));
  const each = more < 1 ? first : await tried(more);
  const samples = Math.min(exchange.samples, Math.max(1, Math.floor(mostSeconds / each)));
  const found = await world.time(pairs, { ...exchange, warmup: 0, samples }, bothWays);
  return { found, warmup: 1 + Math.max(0, more) };
}

async function measurePoint(
  world: PairWorld,
  point: Point,
  exchange: Exchange,
  bounded: boolean,
  advance: () => void,
): Promise<CaseResult[]> {
  const { kind, eachWay, rounds } = point;
  const all: PairSamples[] = [];
  for (const pairs of roundsFor(kind, world.size, eachWay, rounds)) {
    const bothWays = kind === 'bidirectional';
    const { found, warmup } = await timeRound(world, pairs, exchange, bothWays, bounded);
    all.push(...pairs.map((pair) => samplesOf(point, pair, found, warmup)));
    advance();
  }
  all.sort(({ pair: [a, b] }, { pair: [c, d] }) => a - c || b - d);
  return kind === 'message_rate' ? [rateCase(point, world, all)] : pairCases(point, world, all);
}

async function measureAll(
  world: PairWorld,
  given: Given<typeof pairsTable>,
  events: RunEvents,
): Promise<CaseResult[]> {
  const { kinds, check, timeoutMs } = given;
  const { sizes = world.size === 2 ? sizesOfTwo : sizesOfMany } = given;
  const isEachWay = (kind: PairKind): boolean =>
    kind === 'bandwidth' && (given.eachWay ?? world.size > 2);
  const rounds = kinds.reduce(
    (sum, kind) => sum + roundsFor(kind, world.size, isEachWay(kind), given.rounds).length,
    0,
  );
  const steps = new Steps(events, rounds * sizes.length);
  const all: CaseResult[] = [];
  for (const bytes of sizes) {
    const cases: CaseResult[] = [];
    let usable = true;
    for (const kind of kinds) {
      const window = kind === 'latency' ? 1 : given.window;
      const answer = kind === 'latency' ? bytes : answerBytes;
      const { rounds: most } = given;
      const point = { kind, bytes, window, check, eachWay: isEachWay(kind), rounds: most };
      const exchange = {
        ...iterationsOf(kind, bytes, given),
        bytes,
        answerBytes: answer,
        window,
        verify: check,
        timeoutMs,
      };
      const bounded = given.iterations === undefined;
      try {
        const advance = (): void => steps.advance();
        cases.push(...(await measurePoint(world, point, exchange, bounded, advance)));
      } catch (error) {
        cases.push(failedCase(identityOf(point, world), error));
        usable &&= error instanceof GradlinkError ? error.usable : true;
        if (!usable) break;
      }
    }
    events.onCases?.(cases);
    all.push(...cases);
    if (!usable) break;
  }
  return all;
}

/**
 * Times messages between all pairs of ranks: latency, bandwidth in one and both directions, and message rate.
 * Collective in a job, with the same figures for every process. Failures are part of the report, and the rest continues
 * as long as the ranks can.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError ERR_TIMEOUT if ranks are missing
 */
export async function run(options: PairsOptions = {}, events: RunEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(pairsTable, options);
  const size = rankCount(given.ranks, defaultRanks);
  if (size < 2) throw argumentError('ERR_OUT_OF_RANGE', 'ranks', 'at least 2', size);
  const world = await openPairs(size, given);
  try {
    const tell = world.rank === 0 ? events : {};
    const head = headOf('pairs', given, {
      kinds: given.kinds.join(','),
      ranks: world.size,
      hosts: new Set(world.ranks.map(({ host }) => host)).size,
      backend: world.backend,
    });
    tell.onStart?.(head, world.ranks);
    return { ...head, cases: await measureAll(world, given, tell) };
  } finally {
    await world.close();
  }
}
