// The limit of processes that cannot access each other's arrays: core-to-core writes and reads. A copy within one
// core's caches would be faster, and is no limit for them.
import type { CaseInput } from '../../results/case.js';
import type { Crossing, CrossingPart } from '../../results/crossing.js';
import { nativeOf, type Communicator } from '../../communicator/communicator.js';
import { hostsOfRanks } from '../../communicator/joining/hosts.js';
import { GradlinkError } from '../../errors.js';
import { native } from '../../native/load.js';
import type { NativeBetweenCores, NativeBetweenCoresOptions } from '../../native/measure.js';
import { gatherNumbers } from '../job.js';
import type { Peers } from './shared-limit.js';
import { interpolateRate, type SizedRate } from './sized-limit.js';

/** Smaller sizes measure the call; larger ones leave a core's caches, but can pass in pieces that do not. */
const sizes = [4, 16, 64, 256, 1024].map((kibibytes) => kibibytes * 2 ** 10);
/** Close core numbers are mostly close on the chip, or share a core. */
const distances = [1, 2, 4, 8];
const warmup = 3;
const samples = 24;

/** In the order of native/measure/between_cores.h. */
const crossings = ['put', 'get', 'putAlone', 'getAlone'] as const;
type CrossingName = (typeof crossings)[number];
/** By ascending size. */
type Rates = Readonly<Record<CrossingName, SizedRate[]>>;

/** Times one of these on all ranks of a job. */
export type TimeBetweenCores = (
  options: Pick<NativeBetweenCoresOptions, 'bytes' | 'distance' | 'warmup' | 'samples'>,
) => Promise<NativeBetweenCores>;

const noRates = (): Rates => ({ put: [], get: [], putAlone: [], getAlone: [] });

/** The best rate of this size or smaller, because larger data can pass in pieces. */
export function rateInPieces(rates: readonly SizedRate[], bytes: number): number {
  let best = 0;
  const rising = rates.map((rate) => {
    best = Math.max(best, rate.bytesPerSecond);
    return { bytes: rate.bytes, bytesPerSecond: best };
  });
  return interpolateRate(rising, bytes);
}

/** The limits between processes of one host. All methods are collective, with the same results. */
export class CoresLimit {
  /** With plain stores, and bypassing the caches. */
  readonly #styles: readonly Rates[] = [noRates(), noRates()];

  /**
   * @param ranks number of the host's ranks, one process each
   * @param cores number of cores that they may use
   */
  constructor(
    private readonly peers: Peers,
    private readonly ranks: number,
    private readonly cores: number,
    private readonly time: TimeBetweenCores,
  ) {}

  /** Measures all sizes, or measures them again: the best counts. */
  async measure(): Promise<void> {
    for (const bytes of sizes) {
      for (const distance of distances.filter((one) => one < this.ranks)) {
        const mine = await this.time({ bytes, distance, warmup, samples });
        const all = await this.peers.gather([mine.wrong, ...mine.plain, ...mine.streaming]);
        if (all.some(([wrong = 0]) => wrong > 0)) {
          throw new GradlinkError(
            'ERR_INTERNAL',
            'a core read other bytes than the core before it wrote: the memory of this job cannot be trusted',
          );
        }
        for (const [style, rates] of this.#styles.entries()) {
          for (const [at, name] of crossings.entries()) {
            const column = all.map((row) => row[1 + style * crossings.length + at] ?? 0);
            note(rates[name], mine.bytes, Math.min(...column.filter((seconds) => seconds > 0)));
          }
        }
      }
    }
  }

  /** Undefined if nothing is transferred or the rate is unknown. */
  of({ parts, formula }: Crossing): CaseInput['betweenCores'] {
    const alike = parts.every(({ put, get }) => put === parts[0]?.put && get === parts[0].get);
    const times = parts.map((part) => this.seconds(part, alike));
    const busiest = Math.max(0, ...times);
    const together = times.reduce((sum, one) => sum + one, 0) / Math.max(this.cores, 1);
    const seconds = Math.max(busiest, together);
    const most = parts[times.indexOf(busiest)];
    if (most === undefined || !(seconds > 0) || !Number.isFinite(seconds)) return undefined;
    const bytes = most.put + most.get;
    return { bytes, bytesPerSecond: bytes / seconds, formula };
  }

  /** Per rank; if ranks differ, one may work while the others wait. */
  private seconds({ put, get }: CrossingPart, alike: boolean): number {
    const of = (rates: Rates): number => {
      const rate = (name: 'put' | 'get', bytes: number): number => {
        const together = rateInPieces(rates[name], bytes);
        return alike ? together : Math.max(together, rateInPieces(rates[`${name}Alone`], bytes));
      };
      const time = (bytes: number, bytesPerSecond: number) =>
        bytes === 0 ? 0 : bytes / bytesPerSecond;
      return time(put, rate('put', put)) + time(get, rate('get', get));
    };
    return Math.min(...this.#styles.map(of));
  }
}

function note(rates: SizedRate[], bytes: number, seconds: number): void {
  if (!Number.isFinite(seconds)) return;
  const at = rates.findIndex((rate) => rate.bytes === bytes);
  const now = bytes / seconds;
  if (at < 0) rates.push({ bytes, bytesPerSecond: now });
  else rates[at] = { bytes, bytesPerSecond: Math.max(now, rates[at]?.bytesPerSecond ?? 0) };
}

/** For a communicator with one rank per process. */
export function timerBetweenCores(world: Communicator): TimeBetweenCores {
  return (options) => native().timeBetweenCores(nativeOf(world), { ...options, timeoutMs: -1 });
}

/** Measures the limit between the processes of a job; undefined for one process or several hosts. */
export async function coresLimitOfJob(
  world: Communicator,
  availableCores: number,
): Promise<CoresLimit | undefined> {
  if (world.size === 1 || new Set(await hostsOfRanks(world)).size > 1) return undefined;
  const peers: Peers = {
    rank: world.rank,
    gather: (values) => gatherNumbers(world, values),
  };
  const cores = new CoresLimit(peers, world.size, availableCores, timerBetweenCores(world));
  await cores.measure();
  return cores;
}
