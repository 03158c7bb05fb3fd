// Messages between pairs of ranks: all that `gradlink pairs` does but reading its options and printing.
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
import { openPairs, type Pair, type PairWorld } from './world.js';

const defaultRanks = 2;
/** OSU's. */
const sizesOfTwo: readonly number[] = Array.from({ length: 23 }, (_, power) => 2 ** power);
/** Where there are many pairs: one size that latency decides, one that bandwidth does. */
const sizesOfMany: readonly number[] = [8, 2 ** 20];
/** Of an answer to a window, as OSU's. */
const answerBytes = 4;

/** Who exchanges with whom, one round after the other; of the message rate the first half of the ranks with the second. */
export function roundsFor(kind: PairKind, size: number): Pair[][] {
  if (kind === 'message_rate') {
    const half = Math.floor(size / 2);
    return [Array.from({ length: half }, (_, rank) => [rank, rank + half] as const)];
  }
  return roundsOf(size).map((round) =>
    Array.from({ length: size }, (_, rank) => rank).flatMap((rank): Pair[] => {
      const partner = partnerIn(round, rank, size);
      return partner === undefined || partner < rank ? [] : [[rank, partner]];
    }),
  );
}

async function measurePoint(
  world: PairWorld,
  point: Point & { readonly samples: number },
  timeoutMs: number,
  advance: () => void,
): Promise<CaseResult[]> {
  const { kind, bytes, window, warmup, check: verify, samples } = point;
  const answer = kind === 'latency' ? bytes : answerBytes;
  const exchange = { bytes, answerBytes: answer, window, warmup, samples, verify, timeoutMs };
  const all: PairSamples[] = [];
  for (const pairs of roundsFor(kind, world.size)) {
    const found = await world.time(pairs, exchange, kind === 'bidirectional');
    all.push(...pairs.map((pair) => samplesOf(point, pair, found)));
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
  const rounds = kinds.reduce((sum, kind) => sum + roundsFor(kind, world.size).length, 0);
  const steps = new Steps(events, rounds * sizes.length);
  const all: CaseResult[] = [];
  for (const bytes of sizes) {
    const cases: CaseResult[] = [];
    let usable = true;
    for (const kind of kinds) {
      const { samples, warmup } = iterationsOf(kind, bytes, given);
      const window = kind === 'latency' ? 1 : given.window;
      const point = { kind, bytes, window, warmup, check, samples };
      try {
        cases.push(...(await measurePoint(world, point, timeoutMs, () => steps.advance())));
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
 * Times messages between all pairs of ranks: latency, bandwidth one way and both ways at once, and the rate of messages.
 * Every process of a job calls it alike and gets the same figures. What fails is part of the report, and the rest goes on
 * while the ranks can.
 *
 * @throws RangeError or TypeError with a code for options that cannot be
 * @throws GradlinkError ERR_TIMEOUT when ranks do not come
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
