// The limit of data within caches, by plain loops of that size, since memory bandwidth is no limit there.
import type { MemoryAccess as Access, Volume } from '../../results/bandwidth.js';
import type { CaseInput } from '../../results/case.js';
import type { CaseResult } from '../../results/result.js';
import { beyondCaches } from './array-sizes.js';
import { measureLoop } from './plain-loops.js';
import type { CoresLimit } from './cores-limit.js';
import type { Crossing } from '../../results/crossing.js';
import type { Peers, SharedLimit } from './shared-limit.js';

const smallest = 4 * 2 ** 10;

/** The size of a loop and its rate, both in bytes read plus written. */
export interface SizedRate {
  readonly bytes: number;
  readonly bytesPerSecond: number;
}

/** Log-linear interpolation between measured sizes, constant outside them. */
export function interpolateRate(rates: readonly SizedRate[], bytes: number): number {
  const above = rates.findIndex((rate) => rate.bytes >= bytes);
  if (above <= 0) return (above === 0 ? rates[0] : rates.at(-1))?.bytesPerSecond ?? 0;
  const [low, high] = [rates[above - 1]!, rates[above]!];
  const part = Math.log(bytes / low.bytes) / Math.log(high.bytes / low.bytes);
  return low.bytesPerSecond * (high.bytesPerSecond / low.bytesPerSecond) ** part;
}

/** The limit in a case. */
export type CaseLimit = Pick<CaseInput, 'copyBytesPerSecond' | 'loopBytes' | 'betweenCores'>;

/** Data between processes, and its limit. */
export interface Between {
  readonly cores: CoresLimit;
  readonly crossing: Crossing;
}

const mostRefinements = 3;

function limitOfCase(result: CaseResult) {
  return 'limit' in result ? result.limit : undefined;
}

/** Limits by size, over all processes. All methods are collective, with the same results. */
export class SizedLimit {
  readonly #rates = new Map<Access, SizedRate[]>();

  /**
   * @param shared the memory's limit, and which processes measure
   * @param largest bytes beyond all caches
   */
  constructor(
    private readonly peers: Peers,
    private readonly shared: Pick<SharedLimit, 'measures' | 'measuring'>,
    private readonly largest: number,
    private readonly loop: (bytes: number, access: Access) => Promise<number> = measureLoop,
  ) {}

  /** Measures some sizes, so that {@link at} can interpolate between them. */
  async prepare(sizes: readonly number[], access: Access): Promise<void> {
    const moved = sizes.filter((bytes) => bytes > 0).map((bytes) => this.within(bytes));
    if (moved.length === 0) return;
    const last = Math.max(...moved);
    let bytes = Math.min(...moved);
    for (; bytes < last; bytes *= 4) await this.refine(bytes, access);
    await this.refine(last, access);
  }

  /** Measures this size, or measures it again: the best counts. */
  async refine(bytes: number, access: Access): Promise<void> {
    const size = this.within(bytes);
    const own = this.shared.measures ? await this.loop(size / this.shared.measuring, access) : 0;
    const told = await this.peers.gather([own]);
    const together = told.reduce((sum, [rate = 0]) => sum + rate, 0);
    const rates = this.#rates.get(access) ?? [];
    const before = rates.find((rate) => rate.bytes === size)?.bytesPerSecond ?? 0;
    const others = rates.filter((rate) => rate.bytes !== size);
    const now = { bytes: size, bytesPerSecond: Math.max(before, together) };
    this.#rates.set(
      access,
      [...others, now].sort((a, b) => a.bytes - b.bytes),
    );
  }

  /** Bytes per second; 0 before any measurement. */
  at(bytes: number, access: Access): number {
    return interpolateRate(this.#rates.get(access) ?? [], this.within(bytes));
  }

  /**
   * Completes a case with the limit of its size. If the case is faster, the loop was disturbed or interpolated: it is
   * measured again.
   *
   * @param between processes that cannot access each other's arrays
   */
  async complete<Case extends CaseResult>(
    { mustMoveBytes, access = 'copy' }: Volume,
    completed: (limit: CaseLimit) => Case,
    between?: Between,
  ): Promise<Case> {
    if (this.at(mustMoveBytes, access) === 0) await this.refine(mustMoveBytes, access);
    const loopBytes = this.within(mustMoveBytes);
    const now = (): Case =>
      completed({
        copyBytesPerSecond: this.at(mustMoveBytes, access),
        loopBytes,
        betweenCores: between?.cores.of(between.crossing),
      });
    let result = now();
    for (let more = 0; more < mostRefinements && (await this.isAbove(result)); more += 1) {
      if (limitOfCase(result)?.kind === 'between cores') await between?.cores.measure();
      else await this.refine(mustMoveBytes, access);
      result = now();
    }
    return result;
  }

  /** Whether it is above for any process, since all measure again or none. */
  private async isAbove(result: CaseResult): Promise<boolean> {
    const own = (limitOfCase(result)?.ratio ?? 0) > 1;
    const told = await this.peers.gather([own ? 1 : 0]);
    return told.some(([above = 0]) => above > 0);
  }

  /** The size of the loop that limits these bytes. */
  within(bytes: number): number {
    return Math.min(Math.max(bytes, smallest), this.largest);
  }
}

/** For processes with a measured memory limit, on the same pages. */
export function sizedLimit(
  peers: Peers,
  shared: SharedLimit,
  lastLevelCacheBytes: number | null,
  hugePages = false,
): SizedLimit {
  // Read and written: twice the size beyond caches, for each measuring process.
  const largest = 2 * beyondCaches(lastLevelCacheBytes) * shared.measuring;
  return new SizedLimit(peers, shared, largest, (bytes, access) =>
    measureLoop(bytes, access, hugePages),
  );
}
